"""The search itself: cell after cell, each a run directory, shared by as many processes as work on it."""

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pslrec.artifacts import DirectoryInUseError, read_metrics
from pslrec.config import RunConfig, component_options
from pslrec.errors import ConfigError
from pslrec.evaluation import DEFAULT_METRICS
from pslrec.experiment import (
    build_batches,
    evaluate_chosen,
    load_training_data,
    train_on_validation,
)
from pslrec.files import make_directory
from pslrec.losses import LOSSES
from pslrec.training import Event
from pslrec.tuning.grid import Cell, Grid, default_grid, grid_cells
from pslrec.tuning.outcomes import CellOutcome, TuningResult, ranked, read_outcome, write_results
from pslrec.tuning.schedule import Round, epochs_ahead, halving_rounds, single_round

logger = logging.getLogger(__name__)
SELECTION_K = 20
WAIT_SECONDS = 0.5


@dataclass(frozen=True)
class CellStarted:
    """Before a cell is trained, or trained further.

    Args:
        cell: which.
        n_done: cells of this round that are through.
        n_cells: cells of this round.
        until: the epoch up to which it is going to be trained.
    """

    cell: Cell
    n_done: int
    n_cells: int
    until: int


@dataclass(frozen=True)
class CellFinished:
    """After a cell was trained as far as its round goes.

    Args:
        outcome: what became of it.
        metric: what cells are compared by, on validation.
        best: the best value of it so far, of all cells.
        seconds_left: for the rest of the search, at the pace of this process so far.
    """

    outcome: CellOutcome
    metric: str
    best: float | None
    seconds_left: float


Listener = Callable[[CellStarted | CellFinished | Event], None]


def tune(
    config: RunConfig,
    grid: Grid | None = None,
    *,
    out: Path | None = None,
    metric: str | None = None,
    halving: bool = False,
    budget_seconds: float | None = None,
    listener: Listener | None = None,
) -> TuningResult:
    """Train every cell of a grid, choose the best on validation, and judge that one on the test part.

    Finished cells in `out` are not trained again and paused ones go on, so a search that was stopped is continued by the same
    call; several processes may make that call at the same time.

    Args:
        config: what all cells have in common.
        grid: values to try for each setting; the search space of the loss if not given.
        out: directory of the search; without it nothing is kept.
        metric: what cells are compared by; NDCG@20, or at the K that the loss aims at.
        halving: leave the worse two thirds of the cells after a ninth and a third of the epochs, and so on.
        budget_seconds: stop after about that time, at the end of an epoch; the next call goes on.
        listener: is told what happens.

    >>> settings = {"data.source": "synthetic", "training.epochs": 1, "sampling.negatives": 5}
    >>> result = tune(RunConfig.from_settings(settings), {"training.learning_rate": [0.001, 0.1]})
    >>> len(result.cells), result.is_complete, "test" in result.metrics
    (2, True, True)
    """
    chosen_grid = default_grid(config) if grid is None else grid
    metric = metric or f"ndcg@{_aim(config)}"
    config = _prepared(config, metric)
    cells = grid_cells(config, chosen_grid)
    with ExitStack() as stack:
        directory = out or Path(stack.enter_context(TemporaryDirectory(prefix="pslrec-tune-")))
        make_directory(directory)
        study = _Study(directory, cells, metric, listener or (lambda _: None))
        study.deadline = (
            float("inf") if budget_seconds is None else time.monotonic() + budget_seconds
        )
        n_open = sum(cell.state in ("open", "paused") for cell in study.ranking())
        logger.info("%d cells in %s, %d of them to train", len(cells), directory, n_open)
        is_complete = study.search(_rounds(cells, config, halving=halving))
        result = TuningResult(directory, metric, study.ranking(), {}, is_complete)
        if is_complete and result.best is None:
            write_results(result, chosen_grid)
            raise ConfigError(
                f"no cell could be trained to its end; the first: {_reason(result.cells)}"
            )
        if is_complete and result.best is not None:
            result = TuningResult(
                directory, metric, result.cells, _judged(result.best.directory), is_complete
            )
        write_results(result, chosen_grid)
        return result


def _aim(config: RunConfig) -> int:
    return (
        LOSSES[config.loss.name](**component_options(LOSSES, config.loss, "loss")).selection_k
        or SELECTION_K
    )


def _prepared(config: RunConfig, metric: str) -> RunConfig:
    """The configuration, such that the metric is computed and there is something to choose on."""
    name, _, k = metric.partition("@")
    if name not in DEFAULT_METRICS or not k.isdecimal() or int(k) < 1:
        listed = ", ".join(f"{each}@20" for each in DEFAULT_METRICS)
        raise ConfigError(f"`metric` must be one of {listed}, or of another length, got {metric!r}")
    if config.resolved().data.validation == "none":
        raise ConfigError(
            "there is no validation part to choose on, and a search never chooses on the test part; "
            "set `data.validation` to fraction"
        )
    if config.training.refit:
        raise ConfigError(
            "a search chooses on validation; leave out `training.refit`, and refit what it chose"
        )
    settings: dict[str, Any] = {"evaluation.k": sorted({*config.evaluation.k, int(k)})}
    if config.training.epochs == "auto":
        # Rounds are counted in epochs, so all cells get the same number.
        resolved = config.resolved()
        n_steps = len(build_batches(resolved, load_training_data(resolved)))
        settings["training.epochs"] = config.training.trainer_options(n_steps).epochs
    return RunConfig.from_settings(settings, base=config)


def _rounds(cells: Sequence[Cell], config: RunConfig, *, halving: bool) -> list[Round]:
    values = {cell.config.training.epochs for cell in cells}
    epochs = {value for value in values if value != "auto"}
    if len(epochs) < len(values):
        raise ConfigError(
            "`training.epochs` in a grid must be numbers; `auto` goes beside the grid"
        )
    if not halving:
        return single_round(len(cells), max(epochs))
    if len(epochs) > 1:
        raise ConfigError(
            "`training.epochs` can not be searched with halving, which decides on the epochs itself"
        )
    return halving_rounds(len(cells), epochs.pop(), validate_every=config.training.validate_every)


def _reason(cells: Sequence[CellOutcome]) -> str:
    return str(
        next(
            (each.found["failed"] for each in cells if each.found.get("failed")),
            "it has no validation value",
        )
    )


def _judged(path: Path) -> dict[str, Any]:
    while not (path / "metrics.json").exists():
        try:
            return evaluate_chosen(path)
        except DirectoryInUseError:
            time.sleep(WAIT_SECONDS)
    return read_metrics(path)


class _Study:
    def __init__(
        self, directory: Path, cells: Sequence[Cell], metric: str, listener: Listener
    ) -> None:
        self.directory, self.cells, self.metric, self.listener = directory, cells, metric, listener
        self.deadline = float("inf")
        self._epochs, self._seconds = 0, 0.0

    def ranking(self, cells: Sequence[Cell] | None = None) -> list[CellOutcome]:
        return ranked(
            [self._read(cell) for cell in (self.cells if cells is None else cells)], self.metric
        )

    def search(self, rounds: Sequence[Round]) -> bool:
        """Train round after round; whether all of them were made."""
        alive: Sequence[Cell] = self.cells
        for number, each in enumerate(rounds):
            if not self._train_round(alive, rounds[number:]):
                return False
            with_value = [
                one.cell for one in self.ranking(alive) if one.value(self.metric) is not None
            ]
            alive = with_value[: each.n_kept]
        return True

    def _train_round(self, alive: Sequence[Cell], rounds: Sequence[Round]) -> bool:
        until = rounds[0].epochs
        while waiting := [cell for cell in alive if not self._is_through(cell, until)]:
            has_trained = False
            for cell in waiting:
                if time.monotonic() >= self.deadline:
                    return False
                if self._is_through(cell, until):  # by another process, in the meantime
                    continue
                n_done = sum(self._is_through(other, until) for other in alive)
                has_trained |= self._train(
                    CellStarted(cell, n_done, len(alive), until), alive, rounds
                )
            if not has_trained:
                time.sleep(WAIT_SECONDS)
        return True

    def _train(self, start: CellStarted, alive: Sequence[Cell], rounds: Sequence[Round]) -> bool:
        """Train a cell up to the end of the round; false if another process is at it."""
        before, began = self._read(start.cell), time.monotonic()

        def pause(epoch: int) -> bool:
            return epoch >= start.until or time.monotonic() >= self.deadline

        self.listener(start)
        try:
            train_on_validation(
                start.cell.config, out=before.directory, pause=pause, listeners=[self.listener]
            )
        except DirectoryInUseError:
            return False
        outcome = self._read(start.cell)
        self._epochs += outcome.epochs - before.epochs
        self._seconds += time.monotonic() - began
        best = self.ranking()[0].value(self.metric)
        self.listener(CellFinished(outcome, self.metric, best, self._seconds_left(alive, rounds)))
        return True

    def _seconds_left(self, alive: Sequence[Cell], rounds: Sequence[Round]) -> float:
        if not self._epochs:
            return 0.0
        until, n_kept = rounds[0]
        here = sum(
            max(0, until - self._read(cell).epochs)
            for cell in alive
            if not self._is_through(cell, until)
        )
        later = epochs_ahead(rounds, n_kept) - n_kept * until
        return (here + later) * self._seconds / self._epochs

    def _read(self, cell: Cell) -> CellOutcome:
        return read_outcome(cell, self.directory)

    def _is_through(self, cell: Cell, until: int) -> bool:
        outcome = self._read(cell)
        return bool(outcome.found.get("is_finished")) or outcome.epochs >= until
