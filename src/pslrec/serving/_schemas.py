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


def _from_word(value: object) -> object:
    return {"true": True, "false": False}.get(str(value), value)


_DIGITS = re.compile(r"\d{1,18}", re.ASCII)
_Whole = BeforeValidator(_whole)
# No vocabulary holds ids beyond these bounds, so nonsense is refused before it is looked up. Strict
# types, since pydantic would otherwise take `true` for 1 and "5" for 5.
Identifier = (
    Annotated[StrictInt, Field(ge=-(2**63), lt=2**64), _Whole]
    | Annotated[StrictStr, Field(max_length=1024)]
)
Length = Annotated[StrictInt, Field(ge=1, description="Length of the list."), _Whole]
Details = Annotated[
    StrictBool, Field(description="Also return what the item table says about each item.")
]
DetailsInQuery = Annotated[Details, BeforeValidator(_from_word)]
Where = Annotated[
    Annotated[StrictStr, Field(max_length=2000)] | None,
    Field(
        description="A condition on the item table, such as "
        '`genre == "Comedy" and year >= 1990`; the documentation has its grammar.'
    ),
]
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


class _ListRequest(_Request):
    """What all requests for lists have in common: their length, reasons, and rules."""

    k: Length = 20
    explain: Explained = 0
    details: Details = False
    items: Annotated[
        list[Identifier] | None, Field(description="Ids of the items to choose from.")
    ] = None
    exclude: Annotated[list[Identifier], Field(description="Ids of items to leave out.")] = []
    where: Where = None
    at_most: Annotated[
        dict[str, Annotated[StrictInt, Field(ge=1, lt=2**31), _Whole]],
        Field(
            max_length=10,
            description="How many items of a list may have the same value in a column of the "
            "item table, by column.",
        ),
    ] = {}
    ignore_unknown: Annotated[
        StrictBool, Field(description="Ignore ids that the model does not know.")
    ] = False


class RecommendRequest(_ListRequest):
    """Users of the model to recommend items for."""

    users: Annotated[
        list[Identifier],
        Field(min_length=1, description="Ids of users; a number may be given as text."),
    ]
    exclude_seen: Annotated[
        StrictBool, Field(description="Leave out items that the user has in the training data.")
    ] = True
    with_history: Annotated[StrictBool, Field(description="Also return the items of the user.")] = (
        False
    )
    exclude_by_user: Annotated[
        dict[str, list[Identifier]],
        Field(description="Ids of items to leave out for one of the users, by user."),
    ] = {}


class HistoryRequest(_ListRequest):
    """The items of somebody who is not in the model, to recommend others for."""

    history: Annotated[
        list[Identifier], Field(min_length=1, description="Ids of items; repeated ones count once.")
    ]
    exclude_seen: Annotated[
        StrictBool, Field(description="Leave out the items of the history.")
    ] = True


class SimilarQuery(_Request):
    """Items nearest to one."""

    k: Annotated[
        StrictInt, Field(ge=1, description="Length of the list."), BeforeValidator(_from_digits)
    ] = 20
    where: Where = None
    details: DetailsInQuery = False


class SearchQuery(_Request):
    """Items by a part of their title or id."""

    text: Annotated[
        StrictStr,
        Field(
            max_length=200,
            description="Part of a title or id; of a word its beginning counts more.",
        ),
    ]
    k: Annotated[
        StrictInt,
        Field(ge=1, le=50, description="Length of the list."),
        BeforeValidator(_from_digits),
    ] = 10
    details: DetailsInQuery = False


ItemDetails = Annotated[
    dict[str, str | float | bool] | None,
    Field(description="Values of the item table by column, if they were asked for."),
]


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
    details: ItemDetails = None
    because: list[Reason] | None = Field(
        default=None, description="Reasons, nearest first, if they were asked for."
    )


class ItemOfHistory(BaseModel):
    """An item in the history of a user."""

    item: int | str
    title: str | None = None
    details: ItemDetails = None


class UserList(BaseModel):
    """A user and their items, best first."""

    user: int | str
    items: list[Recommended]
    history: list[ItemOfHistory] | None = None


class RecommendAnswer(BaseModel):
    """The lists, in the order of the requested users."""

    recommendations: list[UserList]
    ignored: list[int | str] = Field(description="Users that the model does not know.")
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
    details: ItemDetails = None
    items: list[Recommended]
    model: str


class SearchAnswer(BaseModel):
    """Items whose title or id holds the text, best matches first."""

    items: list[ItemOfHistory]
    model: str


class RandomUser(BaseModel):
    """A user of the model, drawn at random from those who have items."""

    user: int | str
    model: str


class Column(BaseModel):
    """A column of the item table."""

    name: str
    kind: str = Field(description="text, number or truth.")
    values: list[str] = Field(description="The most frequent texts, if there are not too many.")


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
    columns: list[Column] = Field(description="Columns of the item table, for conditions.")
    largest_k: int
    example_user: int | str
    example_history: list[int | str]


class Problem(BaseModel):
    """What went wrong, in one sentence."""

    error: str
