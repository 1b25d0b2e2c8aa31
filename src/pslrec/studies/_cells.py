"""What a study consists of: cells to run, and what became of each."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pslrec.errors import PslrecError
from pslrec.reporting import settings_in_words

State = Literal["waiting", "running", "paused", "finished", "pruned", "failed"]


class BudgetSpent(PslrecError):  # noqa: N818 - not an error of anybody
    """The time that was given is over; everything is saved."""


@dataclass(frozen=True)
class Cell:
    """One run of a study, before it is made.

    Args:
        key: tells it from all others of the study, and names its run directory; of letters, digits
            and `-_.@` only. A cell whose key the study knows is never made again.
        settings: what it is, by name, for tables: numbers, texts or truth values.
        task: what the work function needs to make it, such as a `RunConfig`; it is not stored.
        cost: how long it takes, in any unit, as far as one knows; for the time that is left.
    """

    key: str
    settings: Mapping[str, Any]
    task: Any = None
    cost: float = 1.0

    def described(self) -> str:
        """The settings in words, sections left out.

        >>> Cell("a", {"loss.temperature": 0.1, "training.seed": 3}).described()
        'temperature 0.1, seed 3'
        """
        return settings_in_words(self.settings)


@dataclass(frozen=True)
class Trial:
    """A cell and what became of it.

    Args:
        number: in the study, from 0.
        key: of the cell.
        settings: of the cell.
        state: `paused` was left by a process whose time was over, `pruned` had no prospects;
            `running` is also what a killed process left, until another one takes it up.
        directory: of its run.
        found: what the work function gave, such as the content of `metrics.json`.
        value: what trials are compared by, if there is such a thing.
        reason: why it failed, or why the last attempt at it did not succeed.
        seconds: that were spent on it.
        curve: values on validation by epoch.
    """

    number: int
    key: str
    settings: Mapping[str, Any]
    state: State
    directory: Path
    found: Mapping[str, Any] = field(default_factory=dict)
    value: float | None = None
    reason: str = ""
    seconds: float = 0.0
    curve: Mapping[int, float] = field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.state in ("finished", "pruned", "failed")


@dataclass(frozen=True)
class StageStarted:
    """Before a part of a study that has several.

    Args:
        title: in words.
    """

    title: str


@dataclass(frozen=True)
class TrialStarted:
    """Before a trial is made or resumed.

    Args:
        cell: which.
        n_done: trials that are over.
        n_trials: trials in all.
    """

    cell: Cell
    n_done: int
    n_trials: int


@dataclass(frozen=True)
class TrialEnded:
    """After a trial is over, or was left.

    Args:
        trial: what became of it.
        n_done: trials that are over.
        n_trials: trials in all.
        best: the highest value of all trials so far.
        seconds_left: for the rest, at the pace of this process so far; 0 if nothing is known.
    """

    trial: Trial
    n_done: int
    n_trials: int
    best: float | None
    seconds_left: float
