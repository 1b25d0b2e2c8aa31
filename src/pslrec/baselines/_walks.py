"""Where random walks over the graph of users and items lead, as a sparse matrix."""

import numpy as np
from scipy.sparse import csr_matrix, diags

from pslrec.baselines._base import binary_matrix, counts_of, scaled
from pslrec.data import Interactions
from pslrec.kernels import largest_of_product


def walk_matrix(
    interactions: Interactions,
    *,
    neighbours: int,
    transition_exponent: float,
    popularity_exponent: float,
    normalize: bool,
) -> csr_matrix:
    """The weights of walks of two steps, from an item to a user and on to another item.

        w_ij = sum over common users u of (1 / n_i)^alpha (1 / n_u)^alpha / n_j^beta

    with n the number of neighbours of an item or user.

    Args:
        interactions: repeated pairs count once.
        neighbours: how many of the items j with the largest weights each item i keeps.
        transition_exponent: alpha.
        popularity_exponent: beta.
        normalize: whether the kept weights of each item i are scaled to a sum of 1.

    >>> log = Interactions.from_ids(["ann", "ann", "bob"], ["tea", "milk", "tea"])
    >>> options = {"neighbours": 5, "transition_exponent": 1.0, "popularity_exponent": 0.0}
    >>> walk_matrix(log, **options, normalize=False).toarray()
    array([[0.  , 0.5 ],
           [0.25, 0.  ]], dtype=float32)
    """
    histories = binary_matrix(interactions)
    user_counts, item_counts = counts_of(histories)
    of_start = _powers(item_counts, -transition_exponent)
    of_user = _powers(user_counts, -transition_exponent)
    of_end = _powers(item_counts, -popularity_exponent)
    to_users = (diags(of_start) @ histories.T).tocsr()
    to_items = scaled(histories, user_scale=of_user, item_scale=of_end)
    nearest = largest_of_product(to_users, to_items, neighbours)
    if not normalize:
        return nearest
    sums = nearest.sum(axis=1).A1
    shares = diags(_powers(sums, -1.0))
    return (shares @ nearest).tocsr()


def _powers(values: np.ndarray, exponent: float) -> np.ndarray:
    """Powers of what is positive; 0 stays 0, since nothing leads there."""
    powers = np.zeros(len(values), dtype=np.float32)
    is_positive = values > 0
    bases = values[is_positive].astype(np.float64)
    powers[is_positive] = bases**exponent
    return powers
