"""What several seeds can tell: whether a number lies inside the noise from seed to seed.

This is the one place that decides it, for reports and for reproductions alike. There are two
questions. A published value is a single run, so it is compared with the *prediction* interval of
one more run of ours. A claimed difference is a mean, so it is compared with the *confidence*
interval of a mean. Both are t-intervals, and both need three seeds.
"""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from statistics import fmean, stdev, variance
from typing import Literal

# The interval of two seeds reaches 12.7 standard errors to either side: it excludes nothing.
ENOUGH_SEEDS = 3
CONFIDENCE = 0.95
# Half a unit of the fourth decimal, to which the papers round what they print.
ROUNDING = 5e-5

Verdict = Literal["holds", "fails", "inside noise", "needs seeds"]
BySeed = dict[int, float]


@dataclass(frozen=True)
class SeedVerdict:
    """What the seeds say about a number that is claimed to be above 0.

    Args:
        verdict: `holds` if the whole interval is above 0, `fails` if it is below.
        value: the mean.
        interval: the 95 % confidence interval of the mean; `None` where there are too few seeds.
        seeds: how many there are, of either side where they are not paired.
    """

    verdict: Verdict
    value: float
    interval: tuple[float, float] | None
    seeds: str


def interval_factor(n: int) -> float:
    """How many standard errors the 95 % interval of a mean of `n` values reaches to either side.

    >>> round(interval_factor(3), 2)
    4.3
    """
    # Imported here: it takes half a second, which the Python door should not spend.
    from scipy import stats

    return float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1))


def is_inside_noise(ours: Collection[float], published: float) -> bool | None:
    """Whether one more seed of ours could give the published value; `None` below three seeds.

    The published value must lie within t s √(1 + 1/n) of our mean, with t of n - 1 degrees of
    freedom: the 95 % prediction interval of a single run. Half a unit of the last printed decimal
    is added to it.

    Args:
        ours: one value per seed.
        published: one run of somebody else, rounded to four decimals.

    >>> is_inside_noise([0.10, 0.11, 0.12], 0.13), is_inside_noise([0.10], 0.13)
    (True, None)
    """
    n = len(ours)
    if n < ENOUGH_SEEDS:
        return None
    reach = interval_factor(n) * stdev(ours) * math.sqrt(1 + 1 / n) + ROUNDING
    return abs(published - fmean(ours)) <= reach


def pair_noise(cells: Iterable[Collection[float]]) -> float | None:
    """How far apart two runs may lie that differ in the seed alone, as a share of their value.

    The 95 % interval of the difference of two runs, by the relative variance over seeds that all
    cells have together. `None` where there are too few seeds to tell.

    Args:
        cells: of each, one value per seed.

    >>> round(pair_noise([[0.10, 0.101, 0.099], [0.2, 0.202, 0.198]]), 3)
    0.039
    """
    degrees = 0
    total = 0.0
    for values in cells:
        if len(values) > 1:
            degrees += len(values) - 1
            total += (len(values) - 1) * variance(values) / fmean(values) ** 2
    if degrees + 1 < ENOUGH_SEEDS:
        return None
    return interval_factor(degrees + 1) * math.sqrt(2 * total / degrees)


def verdict_over_seeds(first: BySeed, second: BySeed | None = None) -> SeedVerdict:
    """Whether the first is above the second, or above 0, by more than the noise from seed to seed.

    Seeds that both sides have are paired, which takes out what a seed does to both. Where fewer
    than three are, but one side alone has three, the deviation of that side stands for the other
    side as well.

    Args:
        first: values by seed, at least one.
        second: what they are compared with; 0 if it is not given.

    >>> verdict_over_seeds({1: 0.020, 2: 0.022, 3: 0.021}).verdict
    'holds'
    >>> verdict_over_seeds({1: 0.02, 2: -0.03, 3: 0.01}).verdict
    'inside noise'
    >>> verdict_over_seeds({1: 0.02}).verdict
    'needs seeds'
    """
    if second is None:
        return _verdict_on_mean(list(first.values()))
    paired = [first[seed] - second[seed] for seed in first if seed in second]
    if len(paired) >= ENOUGH_SEEDS:
        return _verdict_on_mean(paired)

    difference = fmean(first.values()) - fmean(second.values())
    seeds = f"{len(first)} and {len(second)}"
    larger = max((first, second), key=len)
    if len(larger) < ENOUGH_SEEDS:
        return SeedVerdict("needs seeds", difference, None, seeds)
    # Of a difference of two independent means, with the one deviation that can be estimated.
    standard_error = stdev(larger.values()) * math.sqrt(1 / len(first) + 1 / len(second))
    return _verdict(difference, interval_factor(len(larger)) * standard_error, seeds)


def _verdict_on_mean(values: list[float]) -> SeedVerdict:
    n = len(values)
    mean = fmean(values)
    if n < ENOUGH_SEEDS:
        return SeedVerdict("needs seeds", mean, None, str(n))
    reach = interval_factor(n) * stdev(values) / math.sqrt(n)
    return _verdict(mean, reach, str(n))


def _verdict(value: float, reach: float, seeds: str) -> SeedVerdict:
    low = value - reach
    high = value + reach
    verdict: Verdict = "inside noise"
    if low > 0:
        verdict = "holds"
    elif high < 0:
        verdict = "fails"
    return SeedVerdict(verdict, value, (low, high), seeds)
