"""What each item of a history says about every other one, by the regression of EASE."""

from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_matrix

from pslrec.baselines._base import binary_matrix
from pslrec.baselines.ease import EASE
from pslrec.data import Interactions, Vocabulary

# For each item, on average. Beside vectors, which know of the rest, so many are nearly as good as all.
_ENTRIES_PER_ITEM = 200
# Relative to the largest number of the inverse.
_LARGEST_ERROR = 0.01
_ROWS = 1024


class _QuickEASE(EASE):
    """EASE in half the time and two thirds of the memory."""

    precision: ClassVar[type[np.floating[Any]]] = np.float32


def regression_matrix(
    interactions: Interactions, *, regularization: float, most_items: int
) -> csr_matrix:
    """The weights of EASE from item to item, cut down to the largest ones.

    A weight is what an item adds to what the others say already, so it may be negative. Popular
    items have more of the large ones than others, so they are counted for all items together.

    Args:
        interactions: the training pairs.
        regularization: strength of the penalty.
        most_items: of larger catalogues the most popular items alone take part, as the cost grows
            with the third power of their number.

    >>> from pslrec.data import planted_tastes
    >>> log = planted_tastes(60, 30).interactions
    >>> matrix = regression_matrix(log, regularization=50, most_items=20)
    >>> matrix.shape, len(set(matrix.nonzero()[0])), bool((matrix.data < 0).any())
    ((30, 30), 20, True)
    """
    # Of equally popular ones the first.
    by_popularity = np.argsort(-interactions.item_counts(), kind="stable")
    items = np.sort(by_popularity[:most_items])
    popular = _among(interactions, items)
    weights = _weights(popular, regularization)
    starts, ends = _places_of_largest(weights, _ENTRIES_PER_ITEM * len(items))
    parts = (weights[starts, ends], (items[starts], items[ends]))
    n_items = interactions.n_items
    return csr_matrix(parts, shape=(n_items, n_items))


def _weights(interactions: Interactions, regularization: float) -> np.ndarray:
    """Those of EASE, in single precision unless that may leave too few digits."""
    if _is_precise(interactions, regularization):
        try:
            return _QuickEASE(regularization=regularization).fit(interactions).weights.numpy()
        except ValueError:
            # Rounding has made the matrix singular. EASE itself says what else may be wrong.
            pass
    return EASE(regularization=regularization).fit(interactions).weights.numpy()


def _is_precise(interactions: Interactions, regularization: float) -> bool:
    """Whether single precision is enough, by an estimate of what rounding does to the inverse."""
    histories = binary_matrix(interactions)
    lengths = histories.sum(axis=1)
    # No eigenvalue of the matrix of items by items is above its largest sum of a row, and none of it
    # and the regularization together is below the latter.
    largest = float((histories.T @ lengths).max())
    error = float(np.finfo(np.float32).eps) * largest / regularization
    return error <= _LARGEST_ERROR


def _among(interactions: Interactions, items: np.ndarray) -> Interactions:
    """The pairs with some of the items, whose rows count from 0."""
    places = np.full(interactions.n_items, -1)
    places[items] = np.arange(len(items))
    kept = interactions.select(places[interactions.items] >= 0)
    numbers = Vocabulary(np.arange(len(items)), kind="item")
    return Interactions(kept.users, places[kept.items], kept.user_vocabulary, numbers)


def _places_of_largest(weights: np.ndarray, n_kept: int) -> tuple[np.ndarray, np.ndarray]:
    """Row and column of the largest weights, whatever their sign; ties may add some."""
    smallest_kept = np.float32(0.0)
    if n_kept < weights.size:
        sizes = np.abs(weights).ravel()
        sizes.partition(sizes.size - n_kept)
        smallest_kept = sizes[sizes.size - n_kept]
        del sizes
    starts = []
    ends = []
    # A block at a time: the matrix is the largest thing in memory.
    for first in range(0, len(weights), _ROWS):
        block = weights[first : first + _ROWS]
        is_kept = (np.abs(block) >= smallest_kept) & (block != 0)
        rows, columns = np.nonzero(is_kept)
        starts.append(first + rows)
        ends.append(columns)
    return np.concatenate(starts), np.concatenate(ends)
