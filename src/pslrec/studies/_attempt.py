"""One trial while a process works on it."""

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pslrec.studies._cells import BudgetSpent, Cell
from pslrec.studies._study import NO_VALUE, Study
from pslrec.training import CheckpointSaved, EpochFinished, Event, TrainingStarted

if TYPE_CHECKING:
    from optuna.trial import Trial as OptunaTrial

SPENT = "the time that was given is over; the same command resumes here"


class Attempt:
    """What a work function is given: the cell, its directory, and when to stop.

    Args:
        study: it belongs to.
        cell: what to make.
        handle: Optuna's own.
        held: the lock of the trial.
    """

    def __init__(self, study: Study, cell: Cell, handle: "OptunaTrial", held: ExitStack) -> None:
        self.study = study
        self.cell = cell
        self.number = handle.number
        self.deadline = float("inf")
        self.watch: Callable[[Event], None] = lambda _event: None
        # Why the work function was told to leave the trial, if it was.
        self.left = ""
        self._handle = handle
        self._held = held
        self._started = time.monotonic()
        self._reported = set(
            handle.study.get_trials(deepcopy=False)[self.number].intermediate_values
        )
        self._has_news = False
        self._n_epochs = 0

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
            self._handle.report(event.validation, event.epoch)
            self._has_news = True

    def pause(self, _epoch: int) -> bool:
        """Pass this on as `pause`: true when the budget is spent, or a pruner gives the trial up."""
        if time.monotonic() >= self.deadline:
            self.left = "paused"
        elif self._has_news:
            self._has_news = False
            if self._handle.should_prune():
                self.left = "pruned"
        return bool(self.left)

    def stop_when_due(self, event: Event) -> None:
        """Pass this on as a listener of work that cannot pause: stops it after a checkpoint."""
        is_due = time.monotonic() >= self.deadline
        if isinstance(event, CheckpointSaved) and is_due and event.epoch < self._n_epochs:
            raise BudgetSpent(SPENT)

    def finish(self, found: Mapping[str, Any]) -> None:
        """Write down what came out."""
        from optuna.trial import TrialState

        self._note(found=dict(found))
        if self.left == "paused":
            self.leave(SPENT)
        elif self.left == "pruned":
            self.study.books.tell(self.number, state=TrialState.PRUNED)
        else:
            value = found.get("validation", {}).get(self.study.metric, NO_VALUE)
            self.study.books.tell(self.number, value)

    def fail(self, reason: str) -> None:
        """It failed, and would do so again."""
        from optuna.trial import TrialState

        self._note(reason=reason)
        self.study.books.tell(self.number, state=TrialState.FAIL)

    def leave(self, reason: str) -> None:
        """Leave it for later; the next process that looks for work takes it up."""
        self._note(paused=True, reason=reason)

    def _note(self, **attributes: Any) -> None:
        before = self._handle.user_attrs.get("seconds", 0.0)
        now = time.monotonic()
        attributes["seconds"] = before + now - self._started
        self._started = now
        for name, value in attributes.items():
            self._handle.set_user_attr(name, value)

    def __enter__(self) -> "Attempt":
        if self._handle.user_attrs.get("paused"):
            self._handle.set_user_attr("paused", False)
            self._handle.set_user_attr("reason", "")
        return self

    def __exit__(self, *_error: object) -> None:
        self._held.close()
