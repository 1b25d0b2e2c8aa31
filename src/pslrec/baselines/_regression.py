"""What each item of a history says about every other one, by the regression of EASE."""

import numpy as np
from scipy.sparse import csr_matrix

from pslrec.baselines.ease import EASE
from pslrec.data import Interactions

# For each item, on average. Beside vectors, which know of the rest, so many are nearly as good as all.
_ENTRIES_PER_ITEM = 200


def regression_matrix(interactions: Interactions, *, regularization: float) -> csr_matrix:
    """The weights of EASE from item to item, cut down to the largest ones.

    A weight is what an item adds to what the others say already, so it may be negative. Popular
    items have more of the large ones than others, so they are counted for all items together.

    Args:
        interactions: the training pairs.
        regularization: strength of the penalty.

    >>> from pslrec.data import planted_tastes
    >>> matrix = regression_matrix(planted_tastes(60, 30).interactions, regularization=50)
    >>> matrix.shape, bool((matrix.data < 0).any())
    ((30, 30), True)
    """
    weights = EASE(regularization=regularization).fit(interactions).weights.numpy()
    n_kept = _ENTRIES_PER_ITEM * len(weights)
    if n_kept < weights.size:
        sizes = np.abs(weights).ravel()
        sizes.partition(sizes.size - n_kept)
        smallest_kept = sizes[sizes.size - n_kept]
        weights[np.abs(weights) < smallest_kept] = 0.0
    return csr_matrix(weights)
