"""A comparison: every contestant is tuned alike, then trained with several seeds, then tested."""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from pslrec.backbones import BACKBONES
from pslrec.baselines import BASELINES
from pslrec.config import RunConfig
from pslrec.errors import ConfigError
from pslrec.files import read_tensors
from pslrec.losses import LOSSES
from pslrec.studies._attempt import Attempt
from pslrec.studies._candidates import Candidate, Fitted, Trained, with_parts
from pslrec.studies._cells import Cell, StageStarted, Trial
from pslrec.studies._comparison_files import write_comparison
from pslrec.studies._space import Space, widened
from pslrec.studies._statistics import Sample, pairs_of, ranks_of
from pslrec.studies._study import Study
from pslrec.studies._tuning import Effort, TuningResult, open_search, search, write_search
from pslrec.studies._warnings import edge_warnings, epoch_warnings
from pslrec.studies._working import Listener, run_cells
from pslrec.studies._works import PER_USER

logger = logging.getLogger(__name__)
METRICS = ("ndcg@20", "recall@20")
SPACES = ("paper", "wide")


@dataclass(frozen=True)
class ComparisonPlan:
    """Who is compared, and how much is done for each.

    Args:
        losses: names; each is trained with every backbone.
        backbones: names.
        baselines: names.
        n_seeds: training seeds, counted up from that of the configuration.
        n_trials: settings to try for each contestant, by TPE on validation; 0 takes the settings
            as they are.
        space: `paper` takes the values that come with losses and baselines, `wide` ranges around
            them.
        metric: what trials are chosen by and contestants are compared by.
        pruner: gives up trials that are behind, see `Effort`.
        options: settings of single losses, by loss and dotted name; they are not searched.
        fixed: names of further settings that are not searched.
    """

    losses: Sequence[str] = ()
    backbones: Sequence[str] = ("mf",)
    baselines: Sequence[str] = ()
    n_seeds: int = 5
    n_trials: int = 20
    space: str = "paper"
    metric: str = "ndcg@20"
    pruner: str = "none"
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    fixed: Sequence[str] = ()

    def __post_init__(self) -> None:
        for registry, names in (
            (LOSSES, self.losses),
            (BACKBONES, self.backbones),
            (BASELINES, self.baselines),
        ):
            for name in names:
                registry[name]
        n_contestants = len(self.losses) * len(self.backbones) + len(self.baselines)
        if n_contestants < 2:
            raise ConfigError(f"a comparison needs at least two contestants, got {n_contestants}")
        if self.metric not in METRICS:
            raise ConfigError(f"`metric` must be one of {', '.join(METRICS)}, got {self.metric!r}")
        if self.space not in SPACES:
            raise ConfigError(f"`space` must be one of {', '.join(SPACES)}, got {self.space!r}")
        if self.n_seeds < 1 or self.n_trials < 0:
            raise ConfigError("`n_seeds` must be at least 1 and `n_trials` at least 0")

    def contestants(self, config: RunConfig) -> list[Candidate]:
        """Everything that is compared, in order."""
        found: list[Candidate] = []
        for backbone in self.backbones:
            for loss in self.losses:
                own = with_parts(config, loss=loss, backbone=backbone)
                own = RunConfig.from_settings(self.options.get(loss, {}), base=own)
                # `auto` is settled, as pruners and warnings count epochs.
                epochs = {"training.epochs": Trained(own).epochs}
                found.append(Trained(RunConfig.from_settings(epochs, base=own)))
        found += [Fitted(name, config) for name in self.baselines]
        return found


@dataclass(frozen=True)
class _Chosen:
    """What tuning has found for a contestant."""

    settings: Mapping[str, Any]
    n_trials: int = 0
    seconds: float = 0.0
    warnings: Sequence[str] = ()


def compare_contestants(
    config: RunConfig,
    plan: ComparisonPlan,
    *,
    out: Path,
    budget_seconds: float | None = None,
    workers: int = 1,
    storage: str | None = None,
    listener: Listener | None = None,
) -> dict[str, Any] | None:
    """Tune every contestant on validation, train the best settings with several seeds, and test.

    The test part is opened for the chosen settings alone. A comparison that was stopped is resumed
    by the same call, and several processes may make that call at the same time.

    Args:
        config: data, training and all else that contestants have in common.
        plan: who is compared, and how much is done for each.
        out: directory of the comparison; every search in it is a study of its own.
        budget_seconds: leave off after about that time.
        workers: processes that share the runs.
        storage: address of a database for the books.
        listener: is told what happens.

    Returns:
        The content of `comparison.json`; `None` if the time was over before the end.
    """
    if config.resolved().data.validation == "none":
        raise ConfigError(
            "there is no validation part to tune on, and nothing is chosen on the test part; "
            "set `data.validation` to fraction"
        )
    clock = _Clock(budget_seconds)
    contestants = plan.contestants(config)
    tuning = _Tuning(plan, out, clock, workers, storage, listener)
    # First what is free, so that several processes begin with different contestants.
    for contestant in contestants:
        tuning.work(contestant, wait=False)
    chosen = [tuning.work(contestant, wait=True) for contestant in contestants]
    if any(each is None for each in chosen):
        return None
    settled = [each for each in chosen if each is not None]
    cells = _final_cells(contestants, settled, plan, config.training.seed)
    if listener is not None and not (out / "comparison.json").exists():
        listener(StageStarted("running the chosen settings"))
    trials = run_cells(
        Study(out, kind="comparison", metric=plan.metric, storage=storage),
        [cell for group in cells for cell in group],
        run_contestant,
        budget_seconds=clock.left,
        workers=workers,
        keeps_going=False,
        listener=listener,
    )
    if not all(trial.is_over for trial in trials):
        return None
    by_key = {trial.key: trial for trial in trials}
    groups = [[by_key[cell.key] for cell in group] for group in cells]
    found = _summarized(config, plan, contestants, settled, groups)
    write_comparison(found, out)
    return found


def run_contestant(attempt: Attempt) -> dict[str, Any]:
    """The work function of the last stage, for losses and baselines alike."""
    if isinstance(attempt.cell.task, RunConfig):
        return Trained.run(attempt)
    return Fitted.run(attempt)


class _Clock:
    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds

    @property
    def left(self) -> float | None:
        if self._end is None:
            return None
        return max(0.0, self._end - time.monotonic())


@dataclass(frozen=True)
class _Tuning:
    plan: ComparisonPlan
    out: Path
    clock: _Clock
    workers: int
    storage: str | None
    listener: Listener | None

    def work(self, contestant: Candidate, *, wait: bool) -> _Chosen | None:
        """Tune as far as possible; `None` if that is not the whole of it."""
        space = self._space(contestant)
        if not space or not self.plan.n_trials:
            return _Chosen({})
        effort = Effort(
            sampler="tpe",
            pruner=self.plan.pruner,
            trials=self.plan.n_trials,
            budget_seconds=self.clock.left,
            workers=self.workers,
        )
        directory = self.out / "tuning" / contestant.name.replace(" / ", "-")
        study = open_search(
            contestant, space, effort, directory, metric=self.plan.metric, storage=self.storage
        )
        if self.listener is not None and not study.has_results:
            self.listener(StageStarted(f"tuning {contestant.name}"))
        trials, is_complete = search(study, contestant, space, effort, self.listener, wait=wait)
        is_complete = is_complete and all(trial.is_over for trial in trials)
        result = TuningResult(directory, self.plan.metric, space, trials, {}, is_complete)
        if not is_complete:
            write_search(study, result)
            return None
        best = result.best
        if best is None:
            raise ConfigError(f"no trial of {contestant.name} succeeded; see {directory}")
        warnings = edge_warnings(best, space)
        if isinstance(contestant, Trained):
            warnings += epoch_warnings(best, contestant.epochs)
        write_search(study, replace(result, warnings=warnings))
        seconds = sum(trial.seconds for trial in trials)
        return _Chosen(best.settings, len(trials), seconds, warnings)

    def _space(self, contestant: Candidate) -> Space:
        fixed = {*self.plan.fixed}
        if isinstance(contestant, Trained):
            fixed |= self.plan.options.get(contestant.config.loss.name, {}).keys()
        every = contestant.space()
        own = {name: values for name, values in every.items() if name not in fixed}
        if self.plan.space == "paper":
            return own

        def is_possible(settings: Mapping[str, Any]) -> bool:
            try:
                contestant.cell(settings)
            except ConfigError:
                return False
            return True

        return widened(own, is_possible)


def _final_cells(
    contestants: Sequence[Candidate],
    chosen: Sequence[_Chosen],
    plan: ComparisonPlan,
    first_seed: int,
) -> list[list[Cell]]:
    seeds = list(range(first_seed, first_seed + plan.n_seeds))
    groups = []
    for contestant, each in zip(contestants, chosen, strict=True):
        group = []
        for seed in contestant.seeds(seeds):
            group.append(contestant.seeded(each.settings, seed))
        groups.append(group)
    return groups


def _summarized(
    config: RunConfig,
    plan: ComparisonPlan,
    contestants: Sequence[Candidate],
    chosen: Sequence[_Chosen],
    groups: Sequence[Sequence[Trial]],
) -> dict[str, Any]:
    rows = []
    samples = []
    for contestant, each, trials in zip(contestants, chosen, groups, strict=True):
        finished = [trial for trial in trials if trial.state == "finished"]
        if not finished:
            logger.warning("%s is left out: %s", contestant.name, trials[0].reason)
            continue
        sample = _sample(contestant.name, finished, plan.metric)
        samples.append(sample)
        row: dict[str, Any] = {
            "name": contestant.name,
            "kind": "baseline" if isinstance(contestant, Fitted) else "loss",
            "settings": dict(each.settings),
            "n_trials": each.n_trials,
            "tuning_seconds": each.seconds,
            "warnings": list(each.warnings),
            "seconds": fmean(_training_seconds(trial) for trial in finished),
            "interval": list(sample.interval),
        }
        for metric in METRICS:
            by_seed = _sample(contestant.name, finished, metric)
            row[metric] = by_seed.mean
            row[f"{metric}_deviation"] = by_seed.deviation
            row[f"{metric}_by_seed"] = {str(key): v for key, v in by_seed.by_seed.items()}
        rows.append(row)
    if len(samples) < 2:
        raise ConfigError("fewer than two contestants could be trained, so nothing is compared")
    ranks = ranks_of(samples)
    for row in rows:
        row["rank"] = ranks.mean[row["name"]]
    rows.sort(key=lambda row: -row[plan.metric])
    order = [row["name"] for row in rows]
    samples.sort(key=lambda sample: order.index(sample.name))
    return {
        "kind": "comparison",
        "data": Path(config.data.source).stem,
        "metric": plan.metric,
        "protocol": config.evaluation.protocol,
        "n_seeds": plan.n_seeds,
        "n_trials": plan.n_trials,
        "space": plan.space,
        "n_users": len(samples[0].per_user),
        "contestants": rows,
        "pairs": pairs_of(samples),
        "critical_difference": ranks.critical,
        "groups": ranks.groups,
        "friedman_p": ranks.p_value,
    }


def _training_seconds(trial: Trial) -> float:
    return float(trial.found["seconds_per_epoch"] * trial.found["trained_epochs"])


def _sample(name: str, trials: Sequence[Trial], metric: str) -> Sample:
    by_seed = {}
    per_user = []
    for trial in trials:
        by_seed[trial.settings["seed"]] = float(trial.found["test"][metric])
        tensors, _ = read_tensors(trial.directory / PER_USER)
        per_user.append(tensors[metric].numpy())
    return Sample(name, by_seed, np.stack(per_user).astype(np.float64).mean(axis=0))
