"""One trial while a process works on it."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pslrec.studies._cells import BudgetSpent, Cell
from pslrec.studies._study import NO_VALUE, Study
from pslrec.training import CheckpointSaved, EpochFinished, Event, TrainingStarted

if TYPE_CHECKING:
    from optuna.trial import Trial as OptunaTrial

SPENT = "the time that was given is over; the same command resumes here"


class Clock:
    """The time that is left of a budget.

    Args:
        budget_seconds: from now on; `None` for all the time there is.
    """

    def __init__(self, budget_seconds: float | None) -> None:
        # Of the monotonic clock, which all processes of a machine share.
        self._end = None
        if budget_seconds is not None:
            self._end = time.monotonic() + budget_seconds

    @property
    def left(self) -> float | None:
        """Seconds that are left, or `None`."""
        if self._end is None:
            return None
        return max(0.0, self._end - time.monotonic())

    @property
    def is_over(self) -> bool:
        """Whether nothing is left."""
        return self.left == 0


@dataclass
class Attempt:
    """What a work function is given: the cell, its directory, and when to stop.

    Args:
        study: it belongs to.
        cell: what to make.
        handle: Optuna's own.
        clock: ends it.
        watch: is told of training.
        left: why the work function was told to leave the trial, if it was.
    """

    study: Study
    cell: Cell
    handle: "OptunaTrial"
    clock: Clock
    watch: Callable[[Event], None]
    left: str = ""
    _started: float = field(default_factory=time.monotonic)
    _has_news: bool = False
    _n_epochs: int = 0

    def __post_init__(self) -> None:
        self._reported = set(self.study.trial(self.handle.number).curve)

    @property
    def directory(self) -> Path:
        """The run directory of the trial; it may hold a run to be resumed."""
        return self.study.run_directory(self.cell.key)

    def listen(self, event: Event) -> None:
        """Pass this on as a listener of training: for progress, and for what pruners look at."""
        if isinstance(event, TrainingStarted):
            self._n_epochs = event.n_epochs
        elif isinstance(event, EpochFinished):
            self._report(event)
        self.watch(event)

    def _report(self, event: EpochFinished) -> None:
        # Epochs after the last checkpoint are trained again when a run is resumed.
        if event.validation is not None and event.epoch not in self._reported:
            self._reported.add(event.epoch)
            self.handle.report(event.validation, event.epoch)
            self._has_news = True

    def pause(self, _epoch: int) -> bool:
        """Pass this on as `pause`: true when the budget is spent, or a pruner gives the trial up."""
        if self.clock.is_over:
            self.left = "paused"
        elif self._has_news:
            self._has_news = False
            if self.handle.should_prune():
                self.left = "pruned"
        return bool(self.left)

    def stop_when_due(self, event: Event) -> None:
        """Pass this on as a listener of work that cannot pause: stops it after a checkpoint."""
        is_saved = isinstance(event, CheckpointSaved) and event.epoch < self._n_epochs
        if is_saved and self.clock.is_over:
            raise BudgetSpent(SPENT)

    def finish(self, found: Mapping[str, Any]) -> None:
        """Write down what came out."""
        self._note(found=dict(found))
        if self.left == "paused":
            self.leave(SPENT)
        elif self.left == "pruned":
            self._end("PRUNED")
        else:
            value = found.get("validation", {}).get(self.study.metric, NO_VALUE)
            self.study.books.tell(self.handle.number, value)

    def fail(self, reason: str) -> None:
        """It failed, and would do so again."""
        self._note(reason=reason)
        self._end("FAIL")

    def _end(self, state: str) -> None:
        from optuna.trial import TrialState

        self.study.books.tell(self.handle.number, state=TrialState[state])

    def leave(self, reason: str) -> None:
        """Leave it for later; the next process that looks for work takes it up."""
        self._note(paused=True, reason=reason)

    def _note(self, **attributes: Any) -> None:
        before = self.handle.user_attrs.get("seconds", 0.0)
        now = time.monotonic()
        attributes["seconds"] = before + now - self._started
        self._started = now
        for name, value in attributes.items():
            self.handle.set_user_attr(name, value)
