"""A search for settings: chosen on validation, and the test part opened for the chosen ones alone."""

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from pslrec.artifacts import DirectoryInUseError, read_metrics
from pslrec.config import RunConfig, component_options
from pslrec.errors import ConfigError
from pslrec.evaluation import DEFAULT_METRICS
from pslrec.experiment import evaluate_chosen
from pslrec.files import write_text
from pslrec.losses import LOSSES
from pslrec.studies._candidates import Candidate, Trained
from pslrec.studies._cells import Cell, Trial
from pslrec.studies._importance import importances
from pslrec.studies._queues import Listed, Proposed, Queue
from pslrec.studies._space import SAMPLERS, Pruning, Range, Space, combinations
from pslrec.studies._study import Study
from pslrec.studies._warnings import edge_warnings, epoch_warnings, seed_warnings
from pslrec.studies._working import WAIT_SECONDS, Listener, run_cells, work_through

logger = logging.getLogger(__name__)
BEST_FILE = "best.toml"
SELECTION_K = 20
DEFAULT_TRIALS = 60


@dataclass(frozen=True)
class Effort:
    """How a search goes about it.

    Args:
        sampler: `grid` tries every combination, `random` and `tpe` propose them; by default `grid`
            for lists of values without a number of trials, otherwise `tpe`.
        pruner: gives up runs whose curve on validation is behind: `median`, `hyperband`, `halving`
            or `none`.
        trials: how many settings to try, not for a grid; 60 where there is no budget either.
        budget_seconds: stop after about that time, at the end of an epoch; the next call resumes.
        seed: of the sampler.
        workers: processes that share the trials.
    """

    sampler: str | None = None
    pruner: str = "none"
    trials: int | None = None
    budget_seconds: float | None = None
    seed: int = 2024
    workers: int = 1

    def __post_init__(self) -> None:
        if self.sampler is not None and self.sampler not in SAMPLERS:
            raise ConfigError(
                f"`sampler` must be one of {', '.join(SAMPLERS)}, got {self.sampler!r}"
            )
        if self.trials is not None and self.trials < 1:
            raise ConfigError(f"`trials` must be at least 1, got {self.trials}")
        if self.sampler == "grid" and self.trials is not None:
            raise ConfigError(
                "a grid tries all combinations; leave out `trials`, or choose `sampler` random or "
                "tpe"
            )

    def for_space(self, space: Space) -> "Effort":
        """With a sampler that suits the space."""
        if self.sampler is not None:
            return self
        has_ranges = any(isinstance(values, Range) for values in space.values())
        if has_ranges or self.trials is not None:
            return replace(self, sampler="tpe")
        return replace(self, sampler="grid")


@dataclass(frozen=True)
class TuningResult:
    """A search.

    Args:
        directory: where its files are.
        metric: by which trials are compared, on validation.
        space: what was searched.
        trials: all of them, best first; those without a value last.
        metrics: of the best one, with the test part; empty as long as nothing is chosen.
        is_complete: whether nothing is left to be tried, so that there is a choice.
        warnings: what speaks against the choice.
    """

    directory: Path
    metric: str
    space: Space
    trials: Sequence[Trial]
    metrics: Mapping[str, Any]
    is_complete: bool
    warnings: Sequence[str] = ()

    @property
    def best(self) -> Trial | None:
        """The finished trial with the highest value on validation."""
        return next((trial for trial in self.trials if trial.state == "finished"), None)

    def to_frame(self) -> pl.DataFrame:
        """The content of `results.csv`."""
        return pl.read_csv(self.directory / "results.csv")


def tune(
    config: RunConfig,
    space: Space | None = None,
    *,
    out: Path | None = None,
    metric: str | None = None,
    effort: Effort | None = None,
    seeds: int = 1,
    storage: str | None = None,
    listener: Listener | None = None,
) -> TuningResult:
    """Search a space for the settings that are best on validation, and evaluate them on test data.

    A search that was stopped is resumed by the same call, and several processes may make that call
    at the same time. Nothing that is finished in `out` is trained again.

    Args:
        config: what all trials have in common.
        space: values or ranges to try for each setting; the search space of the loss if not given.
        out: directory of the study; without it nothing is kept.
        metric: what trials are compared by; NDCG@20, or at the K that the loss aims at.
        effort: sampler, pruner, number of trials, budget, workers.
        seeds: train the two best with so many seeds, to warn if these cannot tell them apart.
        storage: address of a database for the books, such as `postgresql://host/name`.
        listener: is told what happens.

    >>> settings = {"data.source": "synthetic", "training.epochs": 1, "sampling.negatives": 5}
    >>> result = tune(RunConfig.from_settings(settings), {"training.learning_rate": [0.001, 0.1]})
    >>> len(result.trials), result.is_complete, "test" in result.metrics
    (2, True, True)
    """
    metric = metric or f"ndcg@{_aim(config)}"
    candidate = Trained(_prepared(config, metric))
    searched = candidate.space() if space is None else space
    effort = (effort or Effort()).for_space(searched)
    with ExitStack() as stack:
        directory = out or Path(stack.enter_context(TemporaryDirectory(prefix="pslrec-tune-")))
        study = open_search(candidate, searched, effort, directory, metric=metric, storage=storage)
        began = time.monotonic()
        trials, is_complete = search(study, candidate, searched, effort, listener)
        result = TuningResult(directory, metric, searched, trials, {}, is_complete)
        best = result.best
        if is_complete and best is None:
            raise ConfigError(f"no trial could be trained to its end; the first: {_reason(trials)}")
        if is_complete and best is not None:
            warnings = [*edge_warnings(best, searched), *epoch_warnings(best, candidate.epochs)]
            if seeds > 1:
                left = replace(effort, budget_seconds=_left(effort, began))
                compared = _seeded_trials(study, candidate, trials, seeds, left, listener)
                warnings += seed_warnings(compared, metric)
            metrics = _evaluated(best.directory)
            result = replace(result, metrics=metrics, warnings=warnings)
            write_text(directory / BEST_FILE, candidate.cell(best.settings).task.to_toml())
        write_search(study, result)
        return result


def open_search(
    candidate: Candidate,
    space: Space,
    effort: Effort,
    directory: Path,
    *,
    metric: str,
    storage: str | None,
) -> Study:
    """The study of a search; it stays the same as long as its trials can be compared."""
    asked = {name: value for name, value in candidate.asked.items() if name not in space}
    if effort.sampler != "grid":
        # A sampler learns from all trials, which must be of one space; a grid may be widened.
        asked["space"] = written_space(space)
    return Study(directory, kind="tuning", asked=asked, metric=metric, storage=storage)


def search(
    study: Study,
    candidate: Candidate,
    space: Space,
    effort: Effort,
    listener: Listener | None = None,
    *,
    wait: bool = True,
) -> tuple[list[Trial], bool]:
    """Try settings; gives the trials, best first, and whether nothing is left to be tried."""
    todo = _queue(candidate, space, effort)
    is_through = work_through(
        study,
        todo,
        candidate.train,
        budget_seconds=effort.budget_seconds,
        workers=effort.workers,
        wait=wait,
        keeps_going=False,
        listener=listener,
    )
    trials = ranked(todo.trials(study))
    has_one = any(trial.state == "finished" for trial in trials)
    # With a budget alone, time is what ends a search: all that a sampler proposed had its chance.
    is_open_ended = effort.sampler != "grid" and effort.trials is None
    return trials, is_through or (is_open_ended and has_one)


def _queue(candidate: Candidate, space: Space, effort: Effort) -> Queue:
    _check_space(candidate, space, effort)
    pruning = Pruning(effort.pruner, candidate.epochs, candidate.config.training.validate_every)
    if effort.sampler == "grid":
        # All of them are checked before anything is trained; a value given twice is one cell.
        cells: dict[str, Cell] = {}
        for settings in combinations(space):
            cell = candidate.cell(settings)
            cells.setdefault(cell.key, cell)
        return Listed(list(cells.values()), pruning)
    trials = effort.trials
    if trials is None and effort.budget_seconds is None:
        trials = DEFAULT_TRIALS
    return Proposed(space, str(effort.sampler), trials, candidate.cell, effort.seed, pruning)


def _check_space(candidate: Candidate, space: Space, effort: Effort) -> None:
    if not space:
        raise ConfigError("there is nothing to search: every setting of the space is fixed")
    for name, values in space.items():
        if isinstance(values, Range):
            ends: Sequence[Any] = (values.low, values.high)
            if values.integer:
                ends = (int(values.low), int(values.high))
        elif values:
            ends = values
        else:
            raise ConfigError(f"the search space has no value for `{name}`")
        for value in ends:
            candidate.cell({name: value})
        if name == "training.epochs" and "auto" in ends:
            raise ConfigError(
                "`training.epochs` in a search must be numbers; `auto` goes beside the space"
            )
        if name == "training.epochs" and effort.pruner != "none":
            raise ConfigError(
                "`training.epochs` cannot be searched with a pruner, which decides on the epochs "
                "itself"
            )


def ranked(trials: Sequence[Trial]) -> list[Trial]:
    """Best first: by value, finished before others at equal value; those without a value last."""

    def order(trial: Trial) -> tuple[float, bool, int]:
        value = float("-inf") if trial.value is None else trial.value
        return -value, trial.state != "finished", trial.number

    return sorted(trials, key=order)


def written_space(space: Space) -> dict[str, Any]:
    """A space as JSON can hold it."""
    return {
        name: asdict(values) if isinstance(values, Range) else list(values)
        for name, values in space.items()
    }


def _aim(config: RunConfig) -> int:
    loss = LOSSES[config.loss.name](**component_options(LOSSES, config.loss, "loss"))
    return loss.selection_k or SELECTION_K


def _prepared(config: RunConfig, metric: str) -> RunConfig:
    """The configuration, such that the metric is computed and there is something to choose on."""
    name, _, k = metric.partition("@")
    if name not in DEFAULT_METRICS or not k.isdecimal() or int(k) < 1:
        listed = ", ".join(f"{each}@20" for each in DEFAULT_METRICS)
        raise ConfigError(f"`metric` must be one of {listed}, or of another length, got {metric!r}")
    if config.resolved().data.validation == "none":
        raise ConfigError(
            "there is no validation part to choose on, and a search never chooses on the test "
            "part; set `data.validation` to fraction"
        )
    if config.training.refit:
        raise ConfigError(
            "a search chooses on validation; leave out `training.refit`, and refit what it chose"
        )
    # Pruners compare trials by epoch, so all of them get the same number.
    settings = {
        "evaluation.k": sorted({*config.evaluation.k, int(k)}),
        "training.epochs": Trained(config).epochs,
    }
    return RunConfig.from_settings(settings, base=config)


def _seeded_trials(
    study: Study,
    candidate: Trained,
    trials: Sequence[Trial],
    n_seeds: int,
    effort: Effort,
    listener: Listener | None,
) -> list[list[Trial]]:
    """The two best with further seeds, on validation, in a study of their own."""
    finalists = [trial for trial in trials if trial.state == "finished"][:2]
    first = candidate.config.training.seed
    cells = []
    for place, finalist in enumerate(finalists, 1):
        for seed in range(first + 1, first + n_seeds):
            cell = candidate.cell({**finalist.settings, "training.seed": seed})
            cells.append(Cell(cell.key, {"rank": place, "seed": seed}, cell.task))
    seeds_study = Study(
        study.directory / "seeds", kind="seeds", metric=study.metric, storage=study.storage
    )
    found = run_cells(
        seeds_study,
        cells,
        candidate.train,
        budget_seconds=effort.budget_seconds,
        workers=effort.workers,
        listener=listener,
    )
    groups = []
    for place, finalist in enumerate(finalists):
        again = found[place * (n_seeds - 1) : (place + 1) * (n_seeds - 1)]
        groups.append([finalist, *(trial for trial in again if trial.state == "finished")])
    return groups


def _left(effort: Effort, began: float) -> float | None:
    if effort.budget_seconds is None:
        return None
    return max(0.0, effort.budget_seconds - (time.monotonic() - began))


def _reason(trials: Sequence[Trial]) -> str:
    reasons = [trial.reason for trial in trials if trial.reason]
    return next(iter(reasons), "it has no value on validation")


def _evaluated(path: Path) -> dict[str, Any]:
    while not (path / "metrics.json").exists():
        try:
            return evaluate_chosen(path)
        except DirectoryInUseError:
            # Another process of the same search is doing it.
            time.sleep(WAIT_SECONDS)
    return read_metrics(path)


def write_search(study: Study, result: TuningResult) -> None:
    """Write `results.csv` and `results.json` of a search."""
    best = None
    if result.is_complete and result.best is not None:
        best = {"key": result.best.key, "settings": dict(result.best.settings)}
    study.write_results(
        result.trials,
        space=written_space(result.space),
        importances=importances(result.trials),
        is_complete=result.is_complete,
        best=best,
        warnings=list(result.warnings),
        metrics=dict(result.metrics),
    )
