"""Running cells, cheapest first: what is finished is not run again, what was interrupted goes on."""

import logging
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from pslrec import __version__
from pslrec.artifacts import read_metrics
from pslrec.config import RunConfig
from pslrec.errors import PslrecError
from pslrec.experiment import RunResult, run, train_on_validation
from pslrec.files import (
    exclusive,
    is_about_room,
    make_directory,
    read_text,
    write_tensors,
    write_text,
)
from pslrec.reproduction.cells import Cell
from pslrec.reproduction.cost import Costs
from pslrec.reproduction.ledgers import Ledger
from pslrec.reproduction.provision import Provision
from pslrec.training import (
    CheckpointSaved,
    EpochFinished,
    Event,
    TrainingDivergedError,
    TrainingInterrupted,
)

logger = logging.getLogger(__name__)
State = Literal["waiting", "running", "done", "busy", "failed", "absent", "stopped"]
PER_USER = "per_user.safetensors"
COMMIT = "commit"


class BudgetSpent(PslrecError):  # noqa: N818 - not an error of anybody
    """The time that was given is over; everything is saved."""


@dataclass
class Task:
    """A cell and how far it is.

    Args:
        cell: what to run.
        seconds: how long it will take, as far as one knows.
        state: `busy` is what another process works on.
        share: of its epochs that are done.
        message: why it failed, or its values.
        is_recorded: whether its row was there before, so that nothing had to be run.
    """

    cell: Cell
    seconds: float
    state: State = "waiting"
    share: float = 0.0
    message: str = ""
    is_recorded: bool = False

    @property
    def seconds_left(self) -> float:
        """How long it still takes."""
        return (1 - self.share) * self.seconds if self.state in ("waiting", "running") else 0.0


class Pace:
    """How much faster or slower than expected cells turn out here: what is known of them is of other machines and threads."""

    def __init__(self) -> None:
        self._expected = self._taken = 0.0

    def correct(self, tasks: Sequence[Task], expected: float, taken: float) -> None:
        """A cell has taken so long; expect the same of those that wait."""
        before = self._ratio()
        # What was expected had been corrected already.
        self._expected += expected / before
        self._taken += taken
        for task in tasks:
            if task.state == "waiting":
                task.seconds *= self._ratio() / before

    def _ratio(self) -> float:
        return self._taken / self._expected if self._expected else 1.0


Watcher = Callable[[Sequence[Task]], None]


class Executor:
    """Runs cells one after the other.

    Args:
        ledger: knows what is finished, and writes down what comes out.
        provision: where data come from.
        runs: the directory of run directories.
        deadline: of the monotonic clock, after which nothing goes on.
        until: the epoch at which cells are left for now and judged on validation only, unless they end before it.
        watch: is told whenever something changes.
    """

    def __init__(
        self,
        ledger: Ledger,
        provision: Provision,
        runs: Path,
        *,
        deadline: float = float("inf"),
        until: int | None = None,
        watch: Watcher = lambda _tasks: None,
    ) -> None:
        self.ledger, self.provision, self.runs, self._watch = ledger, provision, runs, watch
        self._deadline, self._until = deadline, until
        self._tasks: list[Task] = []
        self._pace = Pace()

    def run(self, cells: Sequence[Cell], costs: Costs) -> list[Task]:
        """Run what is not finished yet, cheapest first.

        Args:
            cells: what to run.
            costs: how long each will take.
        """
        tasks = self._tasks = self.plan(cells, costs)
        self._watch(tasks)
        try:
            self._attempt_all("waiting")
            # Another process may have been stopped in the middle of one.
            self._attempt_all("busy")
        except (BudgetSpent, TrainingInterrupted, KeyboardInterrupt) as stop:
            for task in tasks:
                if task.state == "running":
                    task.state, task.message = "stopped", str(stop)
            self._watch(tasks)
            raise
        return tasks

    def plan(self, cells: Sequence[Cell], costs: Costs) -> list[Task]:
        """What is finished, what is left and how long it will take, cheapest first; runs nothing."""
        tasks = sorted((self._task(cell, costs) for cell in cells), key=lambda task: task.seconds)
        for task in tasks:
            self._settle(task)
        return tasks

    def _task(self, cell: Cell, costs: Costs) -> Task:
        return Task(cell, costs.seconds(cell) * self._epochs(cell) / cell.epochs)

    def _epochs(self, cell: Cell) -> int:
        return min(self._until or cell.epochs, cell.epochs)

    def _attempt_all(self, state: State) -> None:
        for task in self._tasks:
            if task.state == state:
                task.state = "waiting"
                self._attempt(task)

    def _settle(self, task: Task) -> None:
        """Whether a cell is done already, or can not be run."""
        cell = task.cell
        known = self.ledger.find(cell)
        if known is not None:
            task.state, task.share, task.message, task.is_recorded = "done", 1.0, known, True
        elif not self.provision.is_there(cell.source, cell.variant):
            task.state, task.message = "absent", self.provision.how_to_get(cell.source)

    def _attempt(self, task: Task) -> None:
        if time.monotonic() > self._deadline:
            raise BudgetSpent("the time that was given is over; the same command goes on from here")
        path = task.cell.directory(self.runs)
        with exclusive(path.with_name(f"{path.name}.lock"), wait=False) as is_free:
            if not is_free:
                task.state, task.message = "busy", "another process works on it"
                return
            # Somebody else may have finished it since the list was made.
            self._settle(task)
            if task.state != "waiting":
                return
            task.state = "running"
            self._watch(self._tasks)
            expected = task.seconds
            try:
                metrics, commit = self._finish(task, path)
            except (BudgetSpent, TrainingInterrupted):
                raise
            except PslrecError as error:
                if is_about_room(error):
                    raise
                task.state, task.message = "failed", str(error)
                if isinstance(error, TrainingDivergedError):
                    self.ledger.record_failure(task.cell, current_commit())
            else:
                self.ledger.record(task.cell, metrics, commit)
                if task.share > 0:  # trained here, not found complete
                    self._pace.correct(self._tasks, expected, task.seconds)
                task.state, task.share, task.message = (
                    "done",
                    1.0,
                    self.ledger.find(task.cell) or "",
                )
        self._watch(self._tasks)

    def _finish(self, task: Task, path: Path) -> tuple[dict[str, Any], str]:
        """The metrics of a cell's run, and the commit that began it."""
        if all((path / name).exists() for name in ("metrics.json", PER_USER, COMMIT)):
            return read_metrics(path), read_text(path / COMMIT).strip()
        data = self.provision.path(task.cell.source, task.cell.variant)
        make_directory(path)
        if not (path / COMMIT).exists():
            write_text(path / COMMIT, f"{current_commit()}\n")
        metrics = self._trained(task, path, task.cell.config(data))
        return metrics, read_text(path / COMMIT).strip()

    def _trained(self, task: Task, path: Path, config: RunConfig) -> dict[str, Any]:
        until, listeners = self._until, [self._listener(task)]
        if until is not None and until < task.cell.epochs:
            found = train_on_validation(
                config, out=path, pause=lambda epoch: epoch >= until, listeners=listeners
            )
            if "failed" in found:
                raise TrainingDivergedError(found["failed"])
            return found
        result = run(config, out=path, resume=True, listeners=listeners)
        write_tensors(path / PER_USER, _per_user(result), {"protocol": result.test.protocol})
        return result.metrics

    def _listener(self, task: Task) -> Callable[[Event], None]:
        started, first = time.monotonic(), [0]

        def listen(event: Event) -> None:
            if isinstance(event, EpochFinished):
                first[0] = first[0] or event.epoch
                epochs = self._epochs(task.cell)
                task.share = event.epoch / epochs
                done = event.epoch - first[0] + 1
                task.seconds = (time.monotonic() - started) / done * epochs
                self._watch(self._tasks)
            elif (
                isinstance(event, CheckpointSaved)
                and time.monotonic() > self._deadline
                and task.share < 1
            ):
                raise BudgetSpent(
                    "the time that was given is over; the same command goes on from here"
                )

        return listen


def current_commit() -> str:
    """The commit of the code, or its version where there is no repository."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return f"v{__version__}"


def _per_user(result: RunResult) -> dict[str, torch.Tensor]:
    values = {
        name: torch.from_numpy(result.test.per_user[name]).float().contiguous()
        for name in ("recall@20", "ndcg@20")
    }
    return {"users": torch.from_numpy(result.test.users.copy()).long()} | values
