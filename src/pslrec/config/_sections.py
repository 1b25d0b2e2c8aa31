"""The sections of a configuration: what can be set, in which bounds, and what it means."""

import math
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from pslrec.artifacts import LARGEST_WEIGHT
from pslrec.data import Columns
from pslrec.kernels import DEVICE_NAMES, is_device_name
from pslrec.training import TrainingOptions

# Splits whose test part is of another distribution than training; published data sets that come
# split so have the name at the end of theirs.
SHIFTED_SPLITS = ("popularity", "temporal")

# Up to so many items, training on all of them is the default. The scores of a block take time and
# memory in proportion to the catalogue, so beyond that the users of a block share a sample of it.
LARGEST_CATALOG = 100_000
SHARED_BEYOND = 8192

# Epochs of "auto". Where an epoch has few steps, ten epochs would end before a small learning rate
# gets anywhere, so there are more until there are enough steps. A log that makes a single step
# should not be trained on and validated a thousand times, so there is an upper end as well.
FEWEST_EPOCHS = 10
MOST_EPOCHS = 100
AUTO_STEPS = 1600


# Limits that nobody comes near. A number beyond them is a typing error, which would otherwise be
# found by a full memory, by a run that never ends, or by a library that has no such numbers.
MOST = 2**31 - 1
MOST_RUN_EPOCHS = 1_000_000
LARGEST_RATE = 1e38  # about the largest number of single precision
LARGEST_RATING = 1e30
# Signed 64 bits, as torch's generators take them.
Seed = Annotated[int, Field(ge=-(2**63), lt=2**63)]
ListLength = Annotated[int, Field(gt=0, le=MOST)]


class Section(BaseModel):
    """A section that knows its settings and refuses others.

    Types are strict: a number in quotes, or true for 1, is a mistake.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        validate_default=True,
        protected_namespaces=(),
    )


class ColumnsSection(Section):
    """Names of the columns of a file; those not given are guessed from the usual spellings."""

    user: str | None = Field(None, description="column of the users")
    item: str | None = Field(None, description="column of the items")
    rating: str | None = Field(None, description='column of the ratings; "" ignores ratings')
    timestamp: str | None = Field(None, description='column of the times; "" ignores times')
    weight: str | None = Field(None, description='column of the weights; "" ignores weights')


class DataSection(Section):
    """Where interactions come from, and how they are divided."""

    source: str = Field("debian", description="a file, directory, zip, or the name of a data set")
    columns: ColumnsSection = ColumnsSection()
    format: str | None = Field(
        None, description="of the file; follows from the end of its name if not given"
    )
    separator: str | None = Field(
        None, description="between the fields of a text file; detected if not given"
    )
    header: bool | None = Field(
        None, description="whether the first line names the columns; detected if not given"
    )
    encoding: str | None = Field(
        None, description="of a text file, such as latin-1, cp1252 or utf-16; UTF-8 if not given"
    )
    split: str = Field("iid", description="how to divide interactions that do not come split")
    train_fraction: float | None = Field(
        None, gt=0, lt=1, description="share of the training part, 0.8 if not given"
    )
    split_seed: Seed = Field(0, description="seed of the split; 0 gives the published ones")
    validation: Literal["paper", "fraction", "none"] | None = Field(
        None,
        description="how validation is carved out of training; by protocol and split if not given",
    )
    validation_seed: Seed = Field(2024, description="seed of the validation part")
    minimum_rating: float | None = Field(
        None, ge=-LARGEST_RATING, le=LARGEST_RATING, description="remove interactions rated lower"
    )
    k_core: int = Field(
        0, ge=0, le=MOST, description="interactions that every user and item must have"
    )
    repair: bool = Field(
        False, description="drop test pairs that are in training, or never trained on"
    )
    out_of_core: Literal["auto", "on", "off"] = Field(
        "auto",
        description="prepare a log by pieces and train on files that are mapped into memory; about "
        "memory only: auto does so from 100 MB of Parquet files, or 1 GB of text, and for several "
        "processes",
    )

    def reading(self) -> dict[str, Any]:
        """How to read the source: the arguments of `pslrec.data.load`.

        >>> DataSection(columns={"user": "who"}).reading()["columns"].user
        'who'
        """
        return {
            "columns": Columns(**dict(self.columns)),
            "format": self.format,
            "separator": self.separator,
            "header": self.header,
            "encoding": self.encoding,
        }

    @property
    def is_shifted(self) -> bool:
        """Whether the test part is of another distribution than the training part."""
        ending = Path(self.source).stem.rpartition("-")[2]
        return self.split in SHIFTED_SPLITS or ending in SHIFTED_SPLITS


class ComponentSection(BaseModel):
    """A part chosen by name; its other settings are the arguments of its constructor."""

    model_config = ConfigDict(extra="allow", frozen=True, protected_namespaces=())
    name: str

    def options(self) -> dict[str, Any]:
        """The settings beside the name."""
        # Which of them exist depends on the part, so `component_options` checks them later.
        return dict(self.model_extra or {})


class BackboneSection(ComponentSection):
    """The backbone and its options."""

    name: str = "mf"


class LossSection(ComponentSection):
    """The loss and its options."""

    name: str = "psl-relu"


class NoiseSection(Section):
    """False negatives, for the paper's noise setting; probability 0 leaves it out."""

    probability: float = Field(0.0, ge=0, le=1, description="of a draw among the false negatives")
    fraction: float = Field(
        0.1, gt=0, lt=1, description="share of the training pairs declared false negatives"
    )
    scope: Literal["per-user", "global"] = Field(
        "per-user", description="draw some of each user's pairs, or among all pairs"
    )
    keep_positives: bool = Field(False, description="whether they stay positives as well")
    before_validation: bool = Field(
        False, description="declare them before the validation part is carved out"
    )
    hide_at_test: bool = Field(False, description="whether they are hidden from the ranked lists")
    seed: Seed = Field(0, description="of the draw")


MOST_NEGATIVES = 1_000_000


def _checked_negatives(value: object) -> object:
    if value is None or _is_count(value, MOST_NEGATIVES):
        return value
    if isinstance(value, str) and re.fullmatch(r"auto|catalog|shared:[1-9][0-9]{0,8}", value):
        return value
    raise PydanticCustomError(
        "negatives",
        "Input should be a number from 1 to 1,000,000, 'auto', 'catalog', or 'shared:N' with a "
        "number N such as 8192",
    )


def _is_count(value: object, largest: int) -> bool:
    # Python counts True as 1.
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    return 0 < value <= largest


class SamplingSection(Section):
    """Batches, and where negatives come from."""

    negatives: Annotated[int | str | None, BeforeValidator(_checked_negatives)] = Field(
        None,
        description='per positive, "catalog" for all there are, "shared:8192" for so many per '
        'block of users, or "auto" for the catalogue if it has at most 100,000 items; if not '
        "given, auto, or in the paper's protocol the loss's number",
    )
    batch_pairs: int = Field(
        1024,
        ge=1,
        le=MOST,
        description="positive pairs of a step, about so many with the catalogue",
    )
    replacement: bool = Field(True, description="whether an item may be drawn twice for a positive")
    include_positives: bool = Field(
        False, description="with the catalogue: a user's positives are negatives as well"
    )
    noise: NoiseSection = NoiseSection()

    def n_shared(self, n_items: int) -> int | None:
        """How many items the users of a block share as negatives; `None` for the whole catalogue.

        Args:
            n_items: of the catalogue.

        >>> SamplingSection(negatives="shared:64").n_shared(1000)
        64
        >>> SamplingSection(negatives="auto").n_shared(1000) is None
        True
        """
        if self.negatives == "auto" and n_items > LARGEST_CATALOG:
            return SHARED_BEYOND
        if isinstance(self.negatives, str) and self.negatives.startswith("shared:"):
            return int(self.negatives.removeprefix("shared:"))
        return None


def _checked_epochs(value: object) -> object:
    if value == "auto" or _is_count(value, MOST_RUN_EPOCHS):
        return value
    raise PydanticCustomError("epochs", "Input should be a number from 1 to 1,000,000, or 'auto'")


def _checked_device(value: str) -> str:
    if is_device_name(value):
        return value
    raise PydanticCustomError("device", f"Input should be {DEVICE_NAMES}")


class TrainingSection(Section):
    """The loop and its optimiser."""

    learning_rate: float = Field(0.01, gt=0, le=LARGEST_RATE, description="of Adam")
    schedule: Literal["constant", "cosine", "linear"] = Field(
        "constant", description="how the learning rate falls over the epochs"
    )
    weight_decay: float = Field(
        0.0,
        ge=0,
        le=LARGEST_RATE,
        description="coupled into the gradient, for every row at every step",
    )
    epochs: Annotated[int | Literal["auto"], BeforeValidator(_checked_epochs)] = Field(
        200,
        description='passes over the training pairs, or "auto": 10, or up to 100 until there are '
        "1,600 steps",
    )
    validate_every: int = Field(
        5, ge=1, le=MOST, description="epochs between two looks at the validation part"
    )
    patience: int = Field(
        0,
        ge=0,
        le=MOST,
        description="looks without a better one before stopping early; 0 never stops early",
    )
    checkpoint_seconds: float = Field(
        30.0, ge=0, le=MOST, description="time between two checkpoints"
    )
    seed: Seed = Field(2024, description="of everything random in training")
    refit: bool = Field(
        False,
        description="train again on training and validation data, for as many epochs as chosen",
    )
    warm_start: str | None = Field(
        None, description="directory of a finished run whose users and items to start from"
    )
    kernels: Literal["auto", "torch", "plain"] = Field(
        "auto",
        description="auto computes the loss by a fused operation where there is one, torch by the "
        "one that is written in torch, plain as the loss is written; about speed only",
    )
    device: Annotated[str, AfterValidator(_checked_device)] = Field(
        "cpu", description="where to train: cpu, cuda, cuda:1, mps, or auto for the first there is"
    )
    products: Literal["float32", "bfloat16"] = Field(
        "float32",
        description="type of the matrix products in the fused operation of torch; bfloat16 is "
        "faster on hardware that has it, and less exact",
    )
    compile: bool = Field(
        False, description="have torch.compile fuse the rest of the fused operation of torch"
    )

    def trainer_options(self, steps_per_epoch: int) -> TrainingOptions:
        """The settings as the trainer takes them.

        Args:
            steps_per_epoch: batches of an epoch, from which "auto" follows.

        >>> section = TrainingSection(epochs="auto")
        >>> [section.trainer_options(steps).epochs for steps in (1, 32, 160, 700)]
        [100, 50, 10, 10]
        """
        settings = self.model_dump(exclude={"refit", "warm_start"})
        if self.epochs == "auto":
            enough = math.ceil(AUTO_STEPS / steps_per_epoch)
            settings["epochs"] = min(max(enough, FEWEST_EPOCHS), MOST_EPOCHS)
        return TrainingOptions(**settings)


def _as_tuple(value: object) -> object:
    # TOML has lists; a single number is a list of one.
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, int):
        return (value,)
    return value


def _checked_weight(value: object) -> object:
    if value == "auto":
        return value
    # Python counts True as 1.
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and 0 <= float(str(value)) <= LARGEST_WEIGHT:
        return value
    raise PydanticCustomError("weight", "Input should be a number from 0 to 1,000,000, or 'auto'")


class WalksSection(Section):
    """What is added to the scores of vectors: random walks from a user's items, and a regression."""

    weight: Annotated[int | float | Literal["auto"], BeforeValidator(_checked_weight)] = Field(
        0.0,
        description="what a probability of 1 adds to a score; 0 leaves walks out, and auto chooses "
        "it on validation after training, with both exponents",
    )
    neighbours: int = Field(
        100, ge=1, le=MOST, description="items that a walk can lead to from each item"
    )
    transition_exponent: float = Field(
        0.8, ge=0, le=2, description="below 1, rare and frequent steps are evened out"
    )
    popularity_exponent: float = Field(
        0.2, ge=0, le=2, description="how much popular items count less as the end of a walk"
    )
    regression: Annotated[int | float | Literal["auto"], BeforeValidator(_checked_weight)] = Field(
        0.0,
        description="what the weights of SLIM add to a score, on average over the history; 0 leaves "
        "the regression out, and auto chooses it on validation after training, with its penalties",
    )
    regression_l1: float = Field(
        3.0,
        ge=0,
        le=1e9,
        description="of the regression: larger values leave fewer weights, in units of common users; "
        "items with no more of them than this have none",
    )
    regression_l2: float = Field(
        10.0, ge=1e-3, le=1e9, description="of the regression: larger values make weights smaller"
    )

    @property
    def open_weights(self) -> tuple[str, ...]:
        """Names of the weights that are left to be chosen after training."""
        names = []
        for name, weight in (("weight", self.weight), ("regression", self.regression)):
            if weight == "auto":
                names.append(f"walks.{name}")
        return tuple(names)


class AutoSection(Section):
    """Settings that are found instead of given."""

    mode: Literal["off", "fast", "on", "best"] = Field(
        "off",
        description="fast: find settings that were not given by rules alone, for a short training; "
        "on: by rules and a short race on validation; best: the dimension as well",
    )
    backbones: Annotated[tuple[str, ...], BeforeValidator(_as_tuple)] = Field(
        (), description="other backbones that are tried, where a whole training takes a second"
    )
    chosen: Annotated[tuple[str, ...], BeforeValidator(_as_tuple)] = Field(
        (), description="settings that were found; with any here, nothing is searched again"
    )


# Users up to whom all are ranked to choose an epoch, and how many are drawn beyond. The mean over
# so many is known to about one per cent of itself.
ALL_USERS_UP_TO = 200_000
USERS_DRAWN = 50_000


def _checked_users(value: object) -> object:
    if value in ("auto", "all") or _is_count(value, MOST):
        return value
    raise PydanticCustomError("users", "Input should be a number from 1, 'auto' or 'all'")


def _checked_test_users(value: object) -> object:
    if value == "all" or _is_count(value, MOST):
        return value
    raise PydanticCustomError("users", "Input should be a number from 1, or 'all'")


class EvaluationSection(Section):
    """How a model is evaluated."""

    k: Annotated[tuple[ListLength, ...], BeforeValidator(_as_tuple)] = Field(
        (5, 20, 50), min_length=1, description="lengths of the ranked lists"
    )
    protocol: Literal["strict", "paper"] = Field(
        "strict", description="what is hidden, and who counts; see the docs"
    )
    validation_users: Annotated[int | str, BeforeValidator(_checked_users)] = Field(
        "auto",
        description="users who are ranked to choose an epoch, the same in every epoch: a number "
        "that is drawn by `data.validation_seed`, all, or auto: all up to 200,000, beyond that "
        "50,000",
    )
    test_users: Annotated[int | str, BeforeValidator(_checked_test_users)] = Field(
        "all", description="users who are ranked at the end: all, or a number that is drawn"
    )
    memory_megabytes: int = Field(256, ge=16, le=MOST, description="what an evaluation may use")
    exchangeability: Literal["auto", "on", "off"] = Field(
        "auto",
        description="compare validation and test pairs with pairs held out at random from training:"
        " auto takes a sample of users if all would take more than a second",
    )

    def n_validation_users(self, n_users: int) -> int | None:
        """How many users are ranked to choose an epoch; `None` for all.

        Args:
            n_users: of the data set.

        >>> EvaluationSection().n_validation_users(200_000) is None
        True
        >>> EvaluationSection().n_validation_users(200_001)
        50000
        """
        wanted = self.validation_users
        if isinstance(wanted, int):
            return wanted
        if wanted == "auto" and n_users > ALL_USERS_UP_TO:
            return USERS_DRAWN
        return None

    def n_test_users(self) -> int | None:
        """How many users are ranked at the end; `None` for all."""
        if isinstance(self.test_users, int):
            return self.test_users
        return None
