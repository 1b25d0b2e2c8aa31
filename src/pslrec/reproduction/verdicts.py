"""Whether a difference holds, fails, or is inside the noise, by the confidence interval over seeds."""

import math
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Literal

from pslrec.reproduction.summaries import ENOUGH_SEEDS, interval_factor

Verdict = Literal["holds", "fails", "inside noise", "needs seeds"]
BySeed = dict[int, float]


@dataclass(frozen=True)
class Judgement:
    """What seeds say about a number that is claimed to be above 0.

    Args:
        verdict: `holds` if the whole interval is above 0, `fails` if it is below.
        value: the mean.
        interval: 95 %, of the mean; `None` where there are too few seeds.
        seeds: how many, of either side where they are not paired.
    """

    verdict: Verdict
    value: float
    interval: tuple[float, float] | None
    seeds: str


def judged(first: BySeed, second: BySeed | None = None) -> Judgement:
    """Whether the first is above the second, or above 0.

    Seeds that both have are paired. Where these are fewer than three but one side has three, its deviation stands for that
    of the other side as well.

    >>> judged({1: 0.020, 2: 0.022, 3: 0.021}).verdict, judged({1: 0.02, 2: -0.03, 3: 0.01}).verdict
    ('holds', 'inside noise')
    >>> judged({1: 0.02}).verdict
    'needs seeds'
    """
    if second is None:
        return _judgement(fmean(first.values()), _reach(list(first.values())), str(len(first)))
    common = [first[seed] - second[seed] for seed in first if seed in second]
    if len(common) >= ENOUGH_SEEDS:
        return _judgement(fmean(common), _reach(common), str(len(common)))
    value, counted = (
        fmean(first.values()) - fmean(second.values()),
        f"{len(first)} and {len(second)}",
    )
    larger = max((first, second), key=len)
    if len(larger) < ENOUGH_SEEDS:
        return _judgement(value, None, counted)
    spread = stdev(larger.values()) * math.sqrt(1 / len(first) + 1 / len(second))
    return _judgement(value, interval_factor(len(larger)) * spread, counted)


def _reach(values: list[float]) -> float | None:
    if len(values) < ENOUGH_SEEDS:
        return None
    return interval_factor(len(values)) * stdev(values) / math.sqrt(len(values))


def _judgement(value: float, reach: float | None, seeds: str) -> Judgement:
    if reach is None:
        return Judgement("needs seeds", value, None, seeds)
    low, high = value - reach, value + reach
    verdict: Verdict = "holds" if low > 0 else "fails" if high < 0 else "inside noise"
    return Judgement(verdict, value, (low, high), seeds)
