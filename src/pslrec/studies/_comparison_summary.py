"""The numbers of a comparison, from its runs."""

import logging
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
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
        sample = _sample(contestant.name, finished, plan.metric)
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
