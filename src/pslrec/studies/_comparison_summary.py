"""The numbers of a comparison, from its runs."""

import logging
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np

from pslrec.config import RunConfig
from pslrec.errors import ConfigError
from pslrec.files import read_tensors
from pslrec.studies._candidates import Candidate, Fitted
from pslrec.studies._cells import Trial
from pslrec.studies._plan import METRICS, ComparisonPlan
from pslrec.studies._searching import TuningResult
from pslrec.studies._statistics import Sample, pairs_of, ranks_of
from pslrec.studies._works import PER_USER

logger = logging.getLogger(__name__)


def summarized(
    config: RunConfig,
    plan: ComparisonPlan,
    contestants: Sequence[Candidate],
    chosen: Sequence[TuningResult],
    groups: Sequence[Sequence[Trial]],
) -> dict[str, Any]:
    """The content of `comparison.json`.

    Args:
        config: what the contestants have in common.
        plan: what was asked.
        contestants: in the order of the plan.
        chosen: what tuning has found for each.
        groups: the runs of each, by seed.
    """
    rows = []
    samples = []
    for contestant, each, trials in zip(contestants, chosen, groups, strict=True):
        finished = [trial for trial in trials if trial.state == "finished"]
        if not finished:
            logger.warning("%s is left out: %s", contestant.name, trials[0].reason)
            continue
        by_seed = _by_seed(finished, plan.metric)
        sample = Sample(contestant.name, by_seed, _per_user(finished, plan.metric))
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
        for metric in METRICS:
            values = _by_seed(finished, metric)
            row[metric] = fmean(values.values())
            row[f"{metric}_deviation"] = None
            if len(values) > 1:
                row[f"{metric}_deviation"] = stdev(values.values())
            row[f"{metric}_by_seed"] = {str(seed): value for seed, value in values.items()}
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


def _by_seed(trials: Sequence[Trial], metric: str) -> dict[int, float]:
    return {trial.settings["seed"]: float(trial.found["test"][metric]) for trial in trials}


def _per_user(trials: Sequence[Trial], metric: str) -> np.ndarray:
    values = [read_tensors(trial.directory / PER_USER)[0][metric].numpy() for trial in trials]
    mean: np.ndarray = np.stack(values).mean(axis=0, dtype=np.float64)
    return mean
