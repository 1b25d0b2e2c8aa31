"""Cells as trials of a study: what is finished is not run again, what was stopped is resumed."""

import hashlib
import json
import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pslrec import __version__
from pslrec.errors import PslrecError
from pslrec.files import make_directory, read_text, write_text
from pslrec.reproduction._cells import Cell
from pslrec.reproduction._provision import Provision
from pslrec.studies import (
    Attempt,
    BudgetSpent,
    Clock,
    Study,
    StudyEvent,
    Trial,
    TrialEnded,
    TrialStarted,
    run_cell,
    run_cells,
)
from pslrec.studies import Cell as StudyCell
from pslrec.training import EpochFinished

State = Literal["waiting", "running", "done", "busy", "failed", "absent", "stopped"]
COMMIT = "commit"
# What tells runs apart in the names of their directories.
NAMED = (
    "dataset",
    "backbone",
    "loss",
    "form",
    "setting",
    "noise",
    "negatives",
    "protocol",
    "temperature",
    "learning_rate",
    "seed",
)


@dataclass(eq=False)
class Task:
    """A cell and how far it is.

    Args:
        cell: what to run.
        seconds: how long it will take, as far as one knows.
        state: `busy` is what another process works on.
        share: of its epochs that are done.
        message: why it failed, or its values.
        recorded: its row, if that was there before, so that nothing has to be run.
    """

    cell: Cell
    seconds: float
    state: State = "waiting"
    share: float = 0.0
    message: str = ""
    recorded: Mapping[str, str] | None = None

    def end(self, state: State, message: str = "") -> None:
        """Nothing more happens to it, for the reason that is given."""
        self.state = state
        self.message = message

    @property
    def seconds_left(self) -> float:
        """How long it still takes."""
        if self.state not in ("waiting", "running"):
            return 0.0
        return (1 - self.share) * self.seconds


Watcher = Callable[[Sequence[Task]], None]


def key_of(cell: Cell) -> str:
    """The name of a cell's run: readable, with a few digits of all settings."""
    columns = cell.columns()
    words = []
    for name in NAMED:
        if columns[name] not in ("", "0.0"):
            words.append(re.sub(r"[^a-z0-9.@-]+", "-", columns[name].lower()).strip("-"))
    content = json.dumps([cell.source, cell.split, dict(cell.settings)], sort_keys=True)
    digits = hashlib.blake2b(content.encode(), digest_size=4).hexdigest()
    return "_".join([*words, digits])


def make_cell(attempt: Attempt) -> dict[str, Any]:
    """Run a cell; what is kept says at which commit it was begun."""
    path = attempt.directory / COMMIT
    if not path.exists():
        make_directory(attempt.directory)
        write_text(path, f"{current_commit()}\n")
    return {**run_cell(attempt), COMMIT: read_text(path).strip()}


def current_commit() -> str:
    """The commit of the code, or its version where there is no repository."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return f"v{__version__}"


@dataclass
class Runner:
    """Runs the tasks that wait; the state of every task says what became of it.

    Args:
        tasks: of one command in the order to run them, finished ones as well.
        study: of the paper.
        provision: where data come from.
        record: writes down what came out of a cell, and gives it in words.
        watch: is told whenever something changes.
        clock: when its time is over, nothing is begun.
    """

    tasks: Sequence[Task]
    study: Study
    provision: Provision
    record: Callable[[Cell, Mapping[str, Any]], str]
    watch: Watcher
    clock: Clock
    _by_key: dict[str, Task] = field(default_factory=dict)
    _running: Task | None = None
    _began: float = 0.0
    _first_epoch: int = 0

    def run(self, *, workers: int = 1) -> None:
        """Run those that wait.

        Args:
            workers: processes to run them in.
        """
        self.watch(self.tasks)
        cells = []
        for task in self.tasks:
            if task.state == "waiting":
                try:
                    cell = self._prepared(task)
                except PslrecError as error:
                    task.end("failed", str(error))
                    self.watch(self.tasks)
                else:
                    self._by_key[cell.key] = task
                    cells.append(cell)
        trials = run_cells(
            self.study,
            cells,
            make_cell,
            budget_seconds=self.clock.left,
            workers=workers,
            wait=False,
            listener=self._listen,
        )
        for trial in trials:
            self._settle(trial)
        self.watch(self.tasks)
        if any(task.state == "stopped" for task in self.tasks):
            raise BudgetSpent("the time that was given is over; the same command resumes here")

    def _prepared(self, task: Task) -> StudyCell:
        cell = task.cell
        config = cell.config(self.provision.path(cell.source, cell.split))
        return StudyCell(key_of(cell), cell.columns(), task=config, cost=task.seconds)

    def _listen(self, event: StudyEvent) -> None:
        if isinstance(event, TrialStarted):
            self._running = self._by_key[event.cell.key]
            self._running.state = "running"
            self._began = time.monotonic()
            self._first_epoch = 0
        elif isinstance(event, TrialEnded):
            self._settle(event.trial)
            self._correct(event.seconds_left)
        elif isinstance(event, EpochFinished) and self._running is not None:
            self._advance(self._running, event.epoch)
        else:
            return
        self.watch(self.tasks)

    def _advance(self, task: Task, epoch: int) -> None:
        # A resumed run does not begin at the first epoch.
        self._first_epoch = self._first_epoch or epoch
        n_seen = epoch - self._first_epoch + 1
        task.share = epoch / task.cell.epochs
        task.seconds = (time.monotonic() - self._began) / n_seen * task.cell.epochs

    def _settle(self, trial: Trial) -> None:
        task = self._by_key[trial.key]
        if task.state in ("done", "failed"):
            return
        # A cell that was left, though there was time, ended in an error.
        is_left = task.state == "running" and not self.clock.is_over
        if trial.state == "finished":
            task.end("done", self.record(task.cell, trial.found))
        elif trial.state == "failed" or is_left:
            task.end("failed", trial.reason)
        elif self.clock.is_over:
            task.end("stopped")
        else:
            task.end("busy", "another process works on it")

    def _correct(self, seconds_left: float) -> None:
        """Expect of those that wait what the study expects of all of them together."""
        waiting = [task for task in self.tasks if task.state == "waiting"]
        expected = sum(task.seconds for task in waiting)
        if seconds_left and expected:
            for task in waiting:
                task.seconds *= seconds_left / expected
