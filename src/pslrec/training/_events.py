"""What a trainer tells while it works; progress bars and logs listen."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class TrainingStarted:
    """Before the first step.

    Args:
        n_epochs: epochs of the whole run.
        n_batches: steps of one pass over the data.
        epoch: where it starts; above 0 when a run is resumed.
        batch: the step of that epoch where it starts.
    """

    n_epochs: int
    n_batches: int
    epoch: int
    batch: int


@dataclass(frozen=True)
class EstimateMade:
    """After the first steps, once.

    Args:
        seconds: of training that are left, without validation.
        memory: bytes of a training step by what they are for.
    """

    seconds: float
    memory: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class BatchFinished:
    """After each step.

    Args:
        epoch: counted from 0, as it is not finished.
        batch: steps of this pass so far.
        loss: of this step.
    """

    epoch: int
    batch: int
    loss: float


@dataclass(frozen=True)
class EpochFinished:
    """After each epoch, and its validation if there was one.

    Args:
        epoch: counted from 1.
        loss: mean over the epoch's batches.
        seconds: of training.
        validation: the value by which epochs are chosen, if the epoch was evaluated.
        is_best: whether this epoch is the best one so far.
    """

    epoch: int
    loss: float
    seconds: float
    validation: float | None
    is_best: bool


@dataclass(frozen=True)
class CheckpointSaved:
    """After a checkpoint was written."""

    epoch: int
    batch: int


@dataclass(frozen=True)
class TryStarted:
    """While `auto` chooses settings: before each short training.

    Args:
        settings: what is tried, in words.
        number: of the try, from 1.
        n_tries: how many there are at the most; 0 if that is not known.
        n_trainings: how many trainings the try takes, on as many validation parts.
    """

    settings: str
    number: int
    n_tries: int
    n_trainings: int


@dataclass(frozen=True)
class TryAdvanced:
    """After each step of a training that `auto` makes in order to choose settings.

    Args:
        done: the share of this training that is over.
    """

    done: float


@dataclass(frozen=True)
class SettingsTried:
    """While `auto` chooses settings: after each short training.

    Args:
        settings: what was tried, in words.
        validation: its value.
        seconds: what it took.
    """

    settings: str
    validation: float
    seconds: float


@dataclass(frozen=True)
class SettingsChosen:
    """When `auto` has chosen, before training starts.

    Args:
        sentence: what was chosen and why.
    """

    sentence: str


@dataclass(frozen=True)
class WalksTried:
    """After training, while walks and a regression are chosen: after each try.

    Args:
        number: of the try, from 1.
        validation: its value.
    """

    number: int
    validation: float


@dataclass(frozen=True)
class WalksChosen:
    """After training, when walks and a regression have been chosen or left out.

    Args:
        sentence: what was chosen and why.
    """

    sentence: str


Event = (
    TryStarted
    | TryAdvanced
    | SettingsTried
    | SettingsChosen
    | TrainingStarted
    | EstimateMade
    | BatchFinished
    | EpochFinished
    | CheckpointSaved
    | WalksTried
    | WalksChosen
)
Listener = Callable[[Event], None]
