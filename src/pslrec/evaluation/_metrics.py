"""Metrics of one user's ranked list, and the registry of all metrics.

There is one definition of each. Ranks count from 1 over the items that are not hidden; a `k` longer
than the list takes the whole list but stays `k` in denominators. A user without relevant items has
the value 0.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeVar

import numpy as np

from pslrec.registry import Registry

Basis = Literal["lists", "ranks", "exposure"]
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Metric:
    """A metric and what it is computed from.

    Args:
        function: makes one value per user of `(RankedLists, k)` or `(FullRanks)`, or one value in
            all of `(Exposure)`.
        basis: which of the three, in that order: `lists`, `ranks` or `exposure`.
    """

    function: Callable[..., Any]
    basis: Basis


METRICS: Registry[Metric] = Registry("metric")


def metric(name: str, basis: Basis) -> Callable[[Function], Function]:
    """Decorator that registers a function as a metric.

    Args:
        name: of the metric.
        basis: what the function gets, see `Metric`.
    """

    def decorate(function: Function) -> Function:
        METRICS.register(name)(Metric(function, basis))
        return function

    return decorate


# Without `eq`: comparing arrays gives an array, which is neither true nor false.
@dataclass(frozen=True, eq=False)
class RankedLists:
    """Which places of some users' lists are hits.

    Args:
        hits: one row per user, best place first.
        n_relevant: relevant items of each user, recommended or not.

    >>> lists = RankedLists(np.array([[True, False, True]]), np.array([2]))
    >>> lists.n_hits(2), lists.n_hits(10)
    (array([1], dtype=int32), array([2], dtype=int32))
    """

    hits: np.ndarray
    n_relevant: np.ndarray

    def __post_init__(self) -> None:
        # Sums over places round differently in another memory layout.
        object.__setattr__(self, "hits", np.ascontiguousarray(self.hits))

    @cached_property
    def cumulative(self) -> np.ndarray:
        """Hits up to and including each place."""
        return np.cumsum(self.hits, axis=1, dtype=np.int32)

    def n_hits(self, k: int) -> np.ndarray:
        """Hits of each user among the first `k` places."""
        last = min(k, self.hits.shape[1]) - 1
        return self.cumulative[:, last]


def divide(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Quotients, 0 where the denominator is 0.

    Args:
        numerator: of any shape.
        denominator: of a shape that fits.
    """
    shape = np.broadcast_shapes(np.shape(numerator), np.shape(denominator))
    quotient = np.zeros(shape)
    # Dividing first and replacing afterwards would warn.
    is_defined = np.asarray(denominator) != 0
    np.divide(numerator, denominator, out=quotient, where=is_defined)
    return quotient


@metric("recall", "lists")
def recall(lists: RankedLists, k: int) -> np.ndarray:
    """Hits over relevant items.

    >>> lists = RankedLists(np.array([[True, False, True, False]]), np.array([4]))
    >>> recall(lists, 3)
    array([0.5])
    """
    return divide(lists.n_hits(k), lists.n_relevant)


@metric("precision", "lists")
def precision(lists: RankedLists, k: int) -> np.ndarray:
    """Hits over `k`, also where the list is shorter than `k`."""
    return divide(lists.n_hits(k), np.array(k))


@metric("f1", "lists")
def f1(lists: RankedLists, k: int) -> np.ndarray:
    """Harmonic mean of the user's recall and precision: 2 hits / (k + relevant items)."""
    # Simplified: with hits h, the mean 2PR / (P + R) of R = h / relevant and P = h / k.
    return divide(2 * lists.n_hits(k), k + lists.n_relevant)


@metric("hit_rate", "lists")
def hit_rate(lists: RankedLists, k: int) -> np.ndarray:
    """1 if there is any hit, else 0; the share of users served when averaged."""
    return (lists.n_hits(k) > 0).astype(np.float64)


@metric("ndcg", "lists")
def ndcg(lists: RankedLists, k: int) -> np.ndarray:
    """Sum of 1 / log2(rank + 1) over the hits, over the same sum for the best list possible.

    The best list has min(k, relevant items) hits at its top.
    """
    discounts = 1.0 / np.log2(np.arange(2, k + 2))
    gained = _weigh_hits(lists, discounts)
    # The sum of the best list with 0, 1, 2, ... hits.
    ideal = np.concatenate([[0.0], np.cumsum(discounts)])
    n_possible = np.minimum(lists.n_relevant, k)
    return divide(gained, ideal[n_possible])


@metric("mrr", "lists")
def mrr(lists: RankedLists, k: int) -> np.ndarray:
    """1 / rank of the first hit, 0 without a hit."""
    # The first of the largest values; without a hit that is the first place, which does not count.
    first_hit = lists.hits[:, :k].argmax(axis=1)
    has_hit = lists.n_hits(k) > 0
    return np.where(has_hit, 1.0 / (1 + first_hit), 0.0)


@metric("mrr_hits", "lists")
def mrr_hits(lists: RankedLists, k: int) -> np.ndarray:
    """Mean of 1 / rank over the hits, 0 without a hit: the MRR@K of the PSL paper's appendix."""
    reciprocal_ranks = 1.0 / np.arange(1, k + 1)
    total = _weigh_hits(lists, reciprocal_ranks)
    return divide(total, lists.n_hits(k))


@metric("map", "lists")
def average_precision(lists: RankedLists, k: int) -> np.ndarray:
    """Sum over the hits of the precision down to their rank, over min(k, relevant items).

    So the best list possible has the value 1, as with NDCG; trec_eval divides by all relevant items
    instead.
    """
    hits = lists.hits[:, :k]
    ranks = np.arange(1, hits.shape[1] + 1)
    precisions = lists.cumulative[:, :k] / ranks
    total = (precisions * hits).sum(axis=1)
    n_possible = np.minimum(lists.n_relevant, k)
    return divide(total, n_possible)


def _weigh_hits(lists: RankedLists, weights: np.ndarray) -> np.ndarray:
    """The sum of the weights of the places that are hits, for each user."""
    width = min(len(weights), lists.hits.shape[1])
    hits = lists.hits[:, :width]
    # Not a matrix product, whose rounding would depend on how many users are ranked at a time.
    weighed = np.where(hits, weights[:width], 0.0)
    total: np.ndarray = weighed.sum(axis=1)
    return total
