"""What a comparison says: means, intervals, tests, effects and ranks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import Any

import numpy as np
from scipy import stats

from pslrec.evaluation import compare, holm, t_test

LEVEL = 0.05


@dataclass(frozen=True)
class Sample:
    """Values of one contestant on the test part.

    Args:
        name: of the contestant.
        by_seed: the mean over users, by seed; a single one where nothing is drawn at random.
        per_user: the mean over seeds, for each user.
    """

    name: str
    by_seed: Mapping[Any, float]
    per_user: np.ndarray

    @property
    def mean(self) -> float:
        """Over seeds."""
        return fmean(self.by_seed.values())

    @property
    def interval(self) -> tuple[float, float]:
        """Bootstrap interval of the mean, over users."""
        return compare(np.zeros(len(self.per_user)), self.per_user).interval


def pairs_of(samples: Sequence[Sample]) -> list[dict[str, Any]]:
    """Every pair of contestants, tested over users and over seeds.

    Both tests are paired and two-sided, Wilcoxon's over users and Student's over seeds, and both
    are corrected by Holm's method for the number of pairs. Effects are mean differences divided by
    the standard deviation of the differences.
    """
    rows = []
    for first, second in combinations(samples, 2):
        over_users = compare(second.per_user, first.per_user)
        differences = first.per_user.astype(np.float64) - second.per_user
        row: dict[str, Any] = {
            "first": first.name,
            "second": second.name,
            "difference": over_users.difference,
            "relative": _ratio(over_users.difference, second.mean),
            "interval": list(over_users.interval),
            "users_p": over_users.wilcoxon,
            "users_effect": _effect(differences),
            "n_users": over_users.n_users,
        }
        rows.append(row | _over_seeds(first, second))
    for kind in ("users", "seeds"):
        tested = [row for row in rows if row[f"{kind}_p"] is not None]
        for row, corrected in zip(tested, holm([row[f"{kind}_p"] for row in tested]), strict=True):
            row[f"{kind}_p_holm"] = corrected
    for row in rows:
        row["verdict"] = _verdict(row)
    return rows


def _over_seeds(first: Sample, second: Sample) -> dict[str, Any]:
    found: dict[str, Any] = {
        "seeds_p": None,
        "seeds_p_holm": None,
        "seeds_effect": None,
        "n_seeds": 0,
    }
    differences = np.array(_by_common_seed(first, second))
    if len(differences) < 2:
        return found
    found["n_seeds"] = len(differences)
    found["seeds_effect"] = _effect(differences)
    found["seeds_p"] = t_test(differences)
    return found


def _by_common_seed(first: Sample, second: Sample) -> list[float]:
    """Differences by seed; what does not depend on the seed is the same for each of them."""
    seeds = max((first.by_seed, second.by_seed), key=len)
    found = []
    for seed in seeds:
        values = []
        for sample in (first, second):
            if len(sample.by_seed) == 1:
                values.append(sample.mean)
            elif seed in sample.by_seed:
                values.append(sample.by_seed[seed])
        if len(values) == 2:
            found.append(values[0] - values[1])
    return found


def _effect(differences: np.ndarray) -> float | None:
    deviation = differences.std(ddof=1)
    if deviation == 0:
        return None
    return float(differences.mean() / deviation)


def _ratio(difference: float, base: float) -> float | None:
    if not base:
        return None
    return difference / base


def _verdict(row: Mapping[str, Any]) -> str:
    """Whether both tests agree that there is a difference."""
    for kind in ("users", "seeds"):
        p_value = row[f"{kind}_p_holm"]
        if p_value is not None and p_value >= LEVEL:
            return "not told apart"
    return "better" if row["difference"] > 0 else "worse"


@dataclass(frozen=True)
class Ranks:
    """Places of the contestants, averaged over users.

    Args:
        mean: by name, best first; 1 is the best place.
        critical: two mean ranks that differ by less cannot be told apart (Nemenyi).
        groups: names that cannot be told apart, largest groups only.
        p_value: of Friedman's test, that all are alike; `None` for two contestants.
    """

    mean: Mapping[str, float]
    critical: float
    groups: Sequence[Sequence[str]]
    p_value: float | None


def ranks_of(samples: Sequence[Sample]) -> Ranks:
    """Rank the contestants for every user, equal values sharing a place.

    Args:
        samples: at least two, of the same users.
    """
    values = np.stack([sample.per_user for sample in samples])
    places = stats.rankdata(-values, axis=0)
    means = {}
    for sample, place in zip(samples, places.mean(axis=1), strict=True):
        means[sample.name] = float(place)
    ordered = dict(sorted(means.items(), key=lambda pair: pair[1]))
    n, n_users = len(samples), values.shape[1]
    quantile = stats.studentized_range.ppf(1 - LEVEL, n, np.inf) / math.sqrt(2)
    critical = float(quantile * math.sqrt(n * (n + 1) / (6 * n_users)))
    p_value = None
    if n > 2:
        p_value = float(stats.friedmanchisquare(*values).pvalue)
    return Ranks(ordered, critical, _groups(ordered, critical), p_value)


def _groups(ordered: Mapping[str, float], critical: float) -> list[list[str]]:
    names = list(ordered)
    groups: list[list[str]] = []
    reached = 0
    for start, name in enumerate(names):
        end = start
        while end < len(names) and ordered[names[end]] - ordered[name] < critical:
            end += 1
        # A group within the one before says nothing new.
        if end - start > 1 and end > reached:
            groups.append(names[start:end])
            reached = end
    return groups
