"""Trying settings: how much, in which way, and what came out."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from pslrec.errors import ConfigError
from pslrec.reporting import settings_in_words, verdict_over_seeds
from pslrec.studies._attempt import Clock
from pslrec.studies._candidates import Candidate
from pslrec.studies._cells import Cell, Trial
from pslrec.studies._importance import importances
from pslrec.studies._queues import Listed, Proposed, Queue
from pslrec.studies._space import SAMPLERS, Pruning, Range, Space, combinations, is_at_edge
from pslrec.studies._study import Study
from pslrec.studies._working import Listener, Worker
from pslrec.studies._works import train_cell

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
    def settings(self) -> Mapping[str, Any]:
        """The best ones; nothing where nothing was searched."""
        return self.best.settings if self.best is not None else {}

    @property
    def best(self) -> Trial | None:
        """The finished trial with the highest value on validation."""
        return next((trial for trial in self.trials if trial.state == "finished"), None)

    def to_frame(self) -> pl.DataFrame:
        """The content of `results.csv`."""
        return pl.read_csv(self.directory / "results.csv")


def search(
    candidate: Candidate,
    space: Space,
    effort: Effort,
    directory: Path,
    *,
    metric: str,
    storage: str | None,
    listener: Listener | None,
    wait: bool = True,
) -> tuple[Study, TuningResult]:
    """Try settings; a search whose trials can be compared with those of before is resumed.

    Raises:
        ConfigError: nothing is left to be tried, and nothing was successful.
    """
    asked = {name: value for name, value in candidate.asked.items() if name not in space}
    if effort.sampler != "grid":
        # A sampler learns from all trials, which must be of one space; a grid may be widened.
        asked["space"] = written_space(space)
    study = Study(directory, kind="tuning", asked=asked, metric=metric, storage=storage)
    todo = _queue(study, candidate, space, effort)
    worker = Worker(
        todo,
        train_cell,
        Clock(effort.budget_seconds),
        workers=effort.workers,
        wait=wait,
        keeps_going=False,
        listener=listener,
    )
    is_through = worker.run()
    trials = ranked(todo.trials())
    result = TuningResult(directory, metric, space, trials, {}, is_complete=False)
    is_complete = is_through and all(trial.is_over for trial in trials)
    if effort.sampler != "grid" and effort.trials is None and result.best is not None:
        # With a budget alone, time is what ends a search: all that was proposed had its chance.
        is_complete = True
    if not is_complete:
        return study, result
    if result.best is None:
        reasons = [trial.reason for trial in trials if trial.reason]
        reason = next(iter(reasons), "it has no value on validation")
        raise ConfigError(
            f"no trial could be trained to its end for {candidate.name}; the first: {reason}"
        )
    warnings = edge_warnings(result.best, space)
    warnings += epoch_warnings(result.best, candidate.epochs)
    return study, replace(result, is_complete=True, warnings=warnings)


def _queue(study: Study, candidate: Candidate, space: Space, effort: Effort) -> Queue:
    _check_space(candidate, space, effort)
    pruning = Pruning(effort.pruner, candidate.epochs, candidate.config.training.validate_every)
    if effort.sampler == "grid":
        # All of them are checked before anything is trained; a value given twice is one cell.
        cells: dict[str, Cell] = {}
        for settings in combinations(space):
            cell = candidate.cell(settings)
            cells.setdefault(cell.key, cell)
        return Listed(study, list(cells.values()), pruning=pruning)
    trials = effort.trials
    if trials is None and effort.budget_seconds is None:
        trials = DEFAULT_TRIALS
    sampler = str(effort.sampler)
    return Proposed(study, space, sampler, trials, candidate.cell, effort.seed, pruning=pruning)


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


def edge_warnings(best: Trial, space: Space) -> list[str]:
    """Settings whose best value is among the outermost, so that a better one may lie beyond."""
    found = []
    for name, values in space.items():
        if is_at_edge(best.settings[name], values):
            value = best.settings[name]
            found.append(
                f"`{name}` = {value} is at the edge of its search space; try values beyond it"
            )
    return found


def epoch_warnings(best: Trial, epochs: int) -> list[str]:
    """Whether training ended while it was still getting better."""
    last = best.settings.get("training.epochs", epochs)
    if best.found.get("best_epoch") != last or last == 1:
        return []
    return [
        f"the best epoch, {last}, is the last one; training may not have been long enough: raise "
        "`training.epochs`"
    ]


def seed_warnings(groups: Sequence[Sequence[Trial]], metric: str) -> list[str]:
    """Whether the noise from seed to seed hides which of the two best is better.

    Args:
        groups: trials of the best settings with several seeds, and of the second best.
        metric: of validation.
    """
    if len(groups) < 2:
        return []
    by_seed = []
    for trials in groups:
        by_seed.append({trial.found["seed"]: trial.value or 0.0 for trial in trials})
    first, second = by_seed
    verdict = verdict_over_seeds(first, second)
    if verdict.verdict == "holds":
        return []
    runner_up = settings_in_words(groups[1][0].settings)
    n_seeds = min(len(first), len(second))
    means = []
    for values in by_seed:
        means.append(f"{sum(values.values()) / len(values):.4f}")
    sentence = (
        f"{n_seeds} seeds cannot tell the best settings from the second best ({runner_up}): "
        f"validation {metric} {means[0]} and {means[1]} on average"
    )
    if verdict.verdict == "fails":
        sentence += "; with other seeds the second best is better"
    return [sentence]


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
