"""Metrics of all lists together: how their places are spread over the catalogue, and micro averages."""

from dataclasses import dataclass

import numpy as np

from pslrec.evaluation._metrics import metric

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
    return exposure.n_hits / exposure.n_relevant if exposure.n_relevant else 0.0


@metric("coverage", "exposure")
def coverage(exposure: Exposure) -> float:
    """Share of the catalogue that is in at least one list."""
    return float(np.count_nonzero(exposure.counts) / len(exposure.counts))


@metric("gini", "exposure")
def gini(exposure: Exposure) -> float:
    """Gini coefficient of the items' places: 0 if all items appear equally often, near 1 if one takes all.

    >>> everything_equal = Exposure(np.array([3, 3, 3, 3]), np.ones(4), 0, 0)
    >>> one_takes_all = Exposure(np.array([0, 0, 0, 8]), np.ones(4), 0, 0)
    >>> gini(everything_equal), gini(one_takes_all)
    (0.0, 0.75)
    """
    if not exposure.n_places:
        return 0.0
    n_items = len(exposure.counts)
    ranks = np.arange(1, n_items + 1)
    return float(
        (2 * ranks - n_items - 1) @ np.sort(exposure.counts) / (n_items * exposure.n_places)
    )


@metric("average_popularity", "exposure")
def average_popularity(exposure: Exposure) -> float:
    """Mean number of training interactions of a recommended item, over all places; 0 without places."""
    return (
        float(exposure.counts @ exposure.popularity / exposure.n_places)
        if exposure.n_places
        else 0.0
    )


@metric("tail_share", "exposure")
def tail_share(exposure: Exposure) -> float:
    """Share of the places that go to items outside the head; 0 without places.

    The head is the fifth of the catalogue (rounded up) with most training interactions; of equal items, those
    in lower rows.
    """
    if not exposure.n_places:
        return 0.0
    n_head = int(np.ceil(HEAD_SHARE * len(exposure.counts)))
    tail = np.argsort(-exposure.popularity, kind="stable")[n_head:]
    return float(exposure.counts[tail].sum() / exposure.n_places)
