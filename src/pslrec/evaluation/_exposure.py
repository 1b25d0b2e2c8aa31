"""Metrics of all lists together: how they spread over the catalogue, and micro averages."""

from dataclasses import dataclass

import numpy as np

from pslrec.evaluation._metrics import metric

# The usual cut: in most catalogues a fifth of the items has most of the interactions.
HEAD_SHARE = 0.2


@dataclass(frozen=True, eq=False)
class Exposure:
    """What the lists of all users, cut at one `k`, add up to.

    Args:
        counts: how many lists each item is in.
        popularity: training interactions of each item.
        n_hits: hits in all lists.
        n_relevant: relevant items of all users, recommended or not.
    """

    counts: np.ndarray
    popularity: np.ndarray
    n_hits: int
    n_relevant: int

    @property
    def n_places(self) -> int:
        """Places filled in all lists together."""
        return int(self.counts.sum())


@metric("micro_hit_ratio", "exposure")
def micro_hit_ratio(exposure: Exposure) -> float:
    """All hits over all relevant items, 0 without any: the HitRatio of the PSL authors' code."""
    if not exposure.n_relevant:
        return 0.0
    return exposure.n_hits / exposure.n_relevant


@metric("coverage", "exposure")
def coverage(exposure: Exposure) -> float:
    """Share of the catalogue that is in at least one list."""
    n_listed = np.count_nonzero(exposure.counts)
    return float(n_listed / len(exposure.counts))


@metric("gini", "exposure")
def gini(exposure: Exposure) -> float:
    """Gini coefficient of the items' places: 0 if all appear equally often, near 1 for one item.

    >>> everything_equal = Exposure(np.array([3, 3, 3, 3]), np.ones(4), 0, 0)
    >>> one_takes_all = Exposure(np.array([0, 0, 0, 8]), np.ones(4), 0, 0)
    >>> gini(everything_equal), gini(one_takes_all)
    (0.0, 0.75)
    """
    if not exposure.n_places:
        return 0.0
    n_items = len(exposure.counts)
    ranks = np.arange(1, n_items + 1)
    # The sum over all pairs of items of the difference of their counts, without a loop over pairs:
    # in ascending order each count is added for every smaller one and subtracted for every larger.
    coefficients = 2 * ranks - n_items - 1
    total = coefficients @ np.sort(exposure.counts)
    return float(total / (n_items * exposure.n_places))


@metric("average_popularity", "exposure")
def average_popularity(exposure: Exposure) -> float:
    """Mean number of training interactions of the item at a place; 0 without places."""
    if not exposure.n_places:
        return 0.0
    return float(exposure.counts @ exposure.popularity / exposure.n_places)


@metric("tail_share", "exposure")
def tail_share(exposure: Exposure) -> float:
    """Share of the places that go to items outside the head; 0 without places.

    The head is the fifth of the catalogue (rounded up) with most training interactions; of equal
    items, those in lower rows.
    """
    if not exposure.n_places:
        return 0.0
    n_head = int(np.ceil(HEAD_SHARE * len(exposure.counts)))
    # Stable, so that equal items keep the order of their rows.
    by_popularity = np.argsort(-exposure.popularity, kind="stable")
    tail = by_popularity[n_head:]
    return float(exposure.counts[tail].sum() / exposure.n_places)
