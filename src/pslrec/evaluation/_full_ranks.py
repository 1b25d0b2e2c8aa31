"""Metrics that need the rank of every relevant item; on request only, as they sort all scores."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pslrec.evaluation._metrics import divide, metric


@dataclass(frozen=True, eq=False)
class FullRanks:
    """Where the relevant items of some users stand among all items that are not hidden.

    Args:
        rows: for each relevant item, the position of its user; ascending.
        n_above: items of a higher score.
        n_equal: other items of the same score.
        n_equal_before: those of them in a lower row, which are listed before it.
        n_candidates: items of each user that are not hidden.
        hidden: relevant items that are hidden themselves, so never recommended.
    """

    rows: np.ndarray
    n_above: np.ndarray
    n_equal: np.ndarray
    n_equal_before: np.ndarray
    n_candidates: np.ndarray
    hidden: np.ndarray


@metric("reciprocal_rank_sum", "ranks")
def reciprocal_rank_sum(ranks: FullRanks) -> np.ndarray:
    """Sum of 1 / rank over all relevant items, without a cut: the MRR of the PSL paper's text."""
    places = 1 + ranks.n_above + ranks.n_equal_before
    reciprocal = np.where(ranks.hidden, 0.0, 1.0 / places)
    n_users = len(ranks.n_candidates)
    return np.bincount(ranks.rows, reciprocal, minlength=n_users)


@metric("auc", "ranks")
def auc(ranks: FullRanks) -> np.ndarray:
    """Share of (relevant, other) pairs of items in the right order, equal scores counting a half.

    Other items are those neither hidden nor relevant. A relevant item that is hidden loses all its
    pairs; a user whose items are all relevant has no pairs and the value 0.5.
    """
    n_users = len(ranks.n_candidates)
    n_relevant = np.bincount(ranks.rows, minlength=n_users)
    shown = ~ranks.hidden
    shown_rows = ranks.rows[shown]
    n_shown = np.bincount(shown_rows, minlength=n_users)
    n_others = ranks.n_candidates - n_shown
    # Items below each relevant one, equal ones at half. Each of the n (n - 1) / 2 pairs of relevant
    # items adds exactly 1 to that, whatever its order, and is taken off again.
    n_candidates = ranks.n_candidates[ranks.rows]
    below = n_candidates - 1 - ranks.n_above - 0.5 * ranks.n_equal
    n_below = np.bincount(shown_rows, below[shown], minlength=n_users)
    right = n_below - n_shown * (n_shown - 1) / 2
    shares = divide(right, n_relevant * n_others)
    has_no_pairs = (n_others == 0) & (n_relevant > 0)
    return np.where(has_no_pairs, 0.5, shares)


def full_ranks(
    scores: np.ndarray,
    rows: np.ndarray,
    items: np.ndarray,
) -> FullRanks:
    """Ranks of the given items of the given rows.

    Args:
        scores: one row per user, minus infinity where an item is hidden.
        rows: for each relevant item, the row of its user; ascending.
        items: the relevant items.
    """
    values = scores[rows, items]
    n_above = np.empty(len(rows), dtype=np.int64)
    n_equal = np.empty_like(n_above)
    n_equal_before = np.zeros_like(n_above)
    n_users, n_items = scores.shape
    # Where the relevant items of each user start and stop.
    bounds = np.searchsorted(rows, np.arange(n_users + 1))
    n_candidates = np.count_nonzero(scores != -np.inf, axis=1)
    for row, (start, stop) in enumerate(pairwise(bounds)):
        ascending = np.sort(scores[row])
        # NaN is sorted to the end.
        if np.isnan(ascending[-1]):
            raise ValueError(
                "`scores` hold values that are not numbers (NaN); the model that made them has "
                "diverged"
            )
        here = slice(start, stop)
        # One sort and a binary search for each item, instead of comparing it with all others.
        left = np.searchsorted(ascending, values[here], side="left")
        right = np.searchsorted(ascending, values[here], side="right")
        n_above[here] = n_items - right
        n_equal[here] = right - left - 1
    # Equal scores are rare, so a loop over them costs little.
    for position in np.flatnonzero(n_equal):
        before = scores[rows[position], : items[position]]
        n_equal_before[position] = np.count_nonzero(before == values[position])
    return FullRanks(
        rows=rows,
        n_above=n_above,
        n_equal=n_equal,
        n_equal_before=n_equal_before,
        n_candidates=n_candidates,
        hidden=values == -np.inf,
    )
