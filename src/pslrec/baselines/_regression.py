"""What each item of a history says about every other one, by the regression of EASE."""

import numpy as np
from scipy.sparse import csr_matrix

from pslrec.baselines.ease import EASE
from pslrec.data import Interactions, Vocabulary

# For each item, on average. Beside vectors, which know of the rest, so many are nearly as good as all.
_ENTRIES_PER_ITEM = 200


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
    weights = EASE(regularization=regularization).fit(popular).weights.numpy()
    _cut(weights, _ENTRIES_PER_ITEM * len(items))
    starts, ends = weights.nonzero()
    parts = (weights[starts, ends], (items[starts], items[ends]))
    n_items = interactions.n_items
    return csr_matrix(parts, shape=(n_items, n_items))


def _among(interactions: Interactions, items: np.ndarray) -> Interactions:
    """The pairs with some of the items, whose rows count from 0."""
    places = np.full(interactions.n_items, -1)
    places[items] = np.arange(len(items))
    kept = interactions.select(places[interactions.items] >= 0)
    numbers = Vocabulary(np.arange(len(items)), kind="item")
    return Interactions(kept.users, places[kept.items], kept.user_vocabulary, numbers)


def _cut(weights: np.ndarray, n_kept: int) -> None:
    """Set all but the largest weights to 0."""
    if n_kept >= weights.size:
        return
    sizes = np.abs(weights).ravel()
    sizes.partition(sizes.size - n_kept)
    smallest_kept = sizes[sizes.size - n_kept]
    weights[np.abs(weights) < smallest_kept] = 0.0
