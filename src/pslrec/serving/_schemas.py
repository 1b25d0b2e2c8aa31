"""The requests and answers of the service; its OpenAPI description is made from them."""

import re
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, StrictInt, StrictStr


def _whole(value: object) -> object:
    # JSON knows one kind of number: 2.0 is as whole as 2.
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _from_digits(value: object) -> object:
    # Everything in a query is text.
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        return int(value)
    return value


_DIGITS = re.compile(r"\d{1,18}", re.ASCII)
_Whole = BeforeValidator(_whole)
# No vocabulary holds ids beyond these bounds, so nonsense is refused before it is looked up. Strict
# types, since pydantic would otherwise take `true` for 1 and "5" for 5.
Identifier = (
    Annotated[StrictInt, Field(ge=-(2**63), lt=2**64), _Whole]
    | Annotated[StrictStr, Field(max_length=1024)]
)
Length = Annotated[StrictInt, Field(ge=1, description="Length of the list."), _Whole]
Explained = Annotated[
    StrictInt,
    Field(
        ge=0,
        le=10,
        description="How many items of the history to return as reasons for each item.",
    ),
    _Whole,
]


class _Request(BaseModel):
    # A misspelt setting is an error; ignored, it would silently have no effect.
    model_config = ConfigDict(extra="forbid")


class RecommendRequest(_Request):
    """Users of the model to recommend items for."""

    users: Annotated[
        list[Identifier],
        Field(min_length=1, description="Ids of users; a number may be given as text."),
    ]
    k: Length = 20
    exclude_seen: Annotated[
        StrictBool, Field(description="Leave out items that the user has in the training data.")
    ] = True
    explain: Explained = 0
    with_history: Annotated[StrictBool, Field(description="Also return the items of the user.")] = (
        False
    )


class HistoryRequest(_Request):
    """The items of somebody who is not in the model, to recommend others for."""

    history: Annotated[
        list[Identifier], Field(min_length=1, description="Ids of items; repeated ones count once.")
    ]
    k: Length = 20
    exclude_seen: Annotated[
        StrictBool, Field(description="Leave out the items of the history.")
    ] = True
    explain: Explained = 0
    ignore_unknown: Annotated[
        StrictBool, Field(description="Ignore items that the model does not know.")
    ] = False


class SimilarQuery(_Request):
    """Items nearest to one."""

    k: Annotated[
        StrictInt, Field(ge=1, description="Length of the list."), BeforeValidator(_from_digits)
    ] = 20


class Reason(BaseModel):
    """An item of the history that is near a recommended item."""

    item: int | str
    similarity: float = Field(description="Cosine of the two items' vectors.")
    title: str | None = None


class Recommended(BaseModel):
    """An item of a list."""

    item: int | str
    score: float
    title: str | None = Field(default=None, description="If the service was given titles.")
    because: list[Reason] | None = Field(
        default=None, description="Reasons, nearest first, if they were asked for."
    )


class ItemOfHistory(BaseModel):
    """An item in the history of a user."""

    item: int | str
    title: str | None = None


class UserList(BaseModel):
    """A user and their items, best first."""

    user: int | str
    items: list[Recommended]
    history: list[ItemOfHistory] | None = None


class RecommendAnswer(BaseModel):
    """The lists, in the order of the requested users."""

    recommendations: list[UserList]
    model: str = Field(description="Which model answered; see `/version`.")


class HistoryAnswer(BaseModel):
    """The recommended items, best first."""

    items: list[Recommended]
    history: list[ItemOfHistory]
    ignored: list[int | str] = Field(
        description="Items of the history that the model does not know."
    )
    model: str


class SimilarAnswer(BaseModel):
    """Items nearest to one, nearest first; the score is the cosine of the vectors."""

    item: int | str
    title: str | None = None
    items: list[Recommended]
    model: str


class Health(BaseModel):
    """The service answers."""

    status: str


class Version(BaseModel):
    """What is being served."""

    pslrec: str
    run: str = Field(description="Name of the run's directory.")
    model: str = Field(
        description="The first digits of a hash of the model; changes with a reload."
    )
    loaded: str = Field(description="When, in UTC.")
    loss: str
    backbone: str
    users: int
    items: int
    titles: bool
    largest_k: int
    example_user: int | str
    example_history: list[int | str]


class Problem(BaseModel):
    """What went wrong, in one sentence."""

    error: str
