"""A comparison: every contestant is tuned alike, then trained with several seeds, then tested."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
from pslrec.reporting import Result, grouped
from pslrec.studies._attempt import Clock
from pslrec.studies._candidates import (
    SPACES,
    Candidate,
    Fitted,
    Trained,
    named_space,
    with_parts,
)
from pslrec.studies._cells import Cell, StageStarted, Trial
from pslrec.studies._comparison_files import METRICS, write_comparison
from pslrec.studies._searching import Effort, TuningResult, search, write_search
from pslrec.studies._space import Space
from pslrec.studies._statistics import Sample, pairs_of, ranks_of
from pslrec.studies._study import TABLE_FILE, Study
from pslrec.studies._working import Listener, run_cells
from pslrec.studies._works import PER_USER, run_cell

logger = logging.getLogger(__name__)


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

    def space_of(self, contestant: Candidate) -> Space:
        """What is searched for one of them."""
        fixed = {*self.fixed}
        if isinstance(contestant, Trained):
            fixed |= self.options.get(contestant.config.loss.name, {}).keys()
        return named_space(contestant, self.space, fixed=fixed)


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
    clock = Clock(budget_seconds)

    def tuned(contestant: Candidate, *, wait: bool) -> TuningResult:
        """Tune as far as possible, unless there is nothing to be tuned."""
        space = plan.space_of(contestant)
        directory = out / "tuning" / contestant.name.replace(" / ", "-")
        if not space or not plan.n_trials:
            return TuningResult(directory, plan.metric, space, [], {}, is_complete=True)
        effort = Effort(
            sampler="tpe",
            pruner=plan.pruner,
            trials=plan.n_trials,
            budget_seconds=clock.left,
            workers=workers,
        )
        if listener is not None and not (directory / TABLE_FILE).exists():
            listener(StageStarted(f"tuning {contestant.name}"))
        study, result = search(
            contestant,
            space,
            effort,
            directory,
            metric=plan.metric,
            storage=storage,
            listener=listener,
            wait=wait,
        )
        write_search(study, result)
        return result

    contestants = plan.contestants(config)
    # First what is free, so that several processes begin with different contestants.
    for contestant in contestants:
        tuned(contestant, wait=False)
    chosen = [tuned(contestant, wait=True) for contestant in contestants]
    if not all(result.is_complete for result in chosen):
        return None
    cells = _final_cells(contestants, chosen, config.training.seed, plan.n_seeds)
    if listener is not None and not (out / "comparison.json").exists():
        listener(StageStarted("running the chosen settings"))
    trials = run_cells(
        Study(out, kind="comparison", metric=plan.metric, storage=storage),
        cells,
        run_cell,
        budget_seconds=clock.left,
        workers=workers,
        keeps_going=False,
        listener=listener,
    )
    if not all(trial.is_over for trial in trials):
        return None
    found = summarized(config, plan, contestants, chosen, trials)
    write_comparison(found, out)
    return found


def _final_cells(
    contestants: Sequence[Candidate],
    chosen: Sequence[TuningResult],
    first_seed: int,
    n_seeds: int,
) -> list[Cell]:
    # What draws nothing at random is the same cell with every seed.
    cells: dict[str, Cell] = {}
    for contestant, result in zip(contestants, chosen, strict=True):
        for seed in range(first_seed, first_seed + n_seeds):
            cell = contestant.seeded(result.settings, seed)
            shown = {"contestant": contestant.name, "seed": seed}
            cells.setdefault(cell.key, Cell(cell.key, shown, cell.task))
    return list(cells.values())


def summarized(
    config: RunConfig,
    plan: ComparisonPlan,
    contestants: Sequence[Candidate],
    chosen: Sequence[TuningResult],
    trials: Sequence[Trial],
) -> dict[str, Any]:
    """The content of `comparison.json`.

    Args:
        config: what the contestants have in common.
        plan: what was asked.
        contestants: in the order of the plan.
        chosen: what tuning has found for each.
        trials: the runs of all of them.
    """
    runs = grouped(trials, lambda trial: trial.settings["contestant"])
    rows = []
    samples = []
    for contestant, each in zip(contestants, chosen, strict=True):
        own = runs[contestant.name]
        finished = [trial for trial in own if trial.state == "finished"]
        if not finished:
            logger.warning("%s is left out: %s", contestant.name, own[0].reason)
            continue
        values = Result({}, {metric: _by_seed(finished, metric) for metric in METRICS}, {})
        per_user = _per_user(finished, plan.metric)
        sample = Sample(contestant.name, values.ours[plan.metric], per_user)
        samples.append(sample)
        row: dict[str, Any] = {
            "name": contestant.name,
            "kind": "baseline" if isinstance(contestant, Fitted) else "loss",
            "settings": dict(each.settings),
            "n_trials": len(each.trials),
            "tuning_seconds": sum(trial.seconds for trial in each.trials),
            "warnings": list(each.warnings),
            "seconds": fmean(_training_seconds(trial) for trial in finished),
            "interval": list(sample.interval),
        }
        for metric, by_seed in values.ours.items():
            row[metric] = values.mean(metric)
            row[f"{metric}_deviation"] = values.deviation(metric)
            row[f"{metric}_by_seed"] = by_seed
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


def _by_seed(trials: Sequence[Trial], metric: str) -> dict[str, float]:
    return {str(trial.settings["seed"]): float(trial.found["test"][metric]) for trial in trials}


def _per_user(trials: Sequence[Trial], metric: str) -> np.ndarray:
    values = [read_tensors(trial.directory / PER_USER)[0][metric].numpy() for trial in trials]
    mean: np.ndarray = np.stack(values).mean(axis=0, dtype=np.float64)
    return mean
