"""Random walks of three steps over the graph of users and items."""

from typing import ClassVar

import numpy as np
import torch
from scipy.sparse import diags

from pslrec.baselines._base import (
    BASELINES,
    Baseline,
    SearchLimits,
    SearchSpace,
    binary_matrix,
    counts_of,
    scaled,
)
from pslrec.baselines._neighbours import nearest_neighbours
from pslrec.checks import number_from_zero, whole_number
from pslrec.data import Interactions


@BASELINES.register("rp3beta")
class RP3Beta(Baseline):
    """Where a walk from the user to an item, back to a user and on to an item ends.

    A step goes to each neighbour with the same probability, so that the last two steps lead from
    item i to item j with the weight

        w_ij = sum over common users u of (1 / n_i)^alpha (1 / n_u)^alpha / n_j^beta

    with n the number of neighbours of an item or user. The score of j is the sum of w_ij over the
    user's items i.

    Args:
        neighbours: how many of the items j with the largest weights each item i keeps.
        transition_exponent: alpha; below 1 evens out rare and frequent steps, 1 is a plain walk.
        popularity_exponent: beta; 0 ranks by the walk alone, which favours popular items.
        normalize: whether the kept weights of each item i are scaled to a sum of 1.

    >>> log = Interactions.from_ids(["ann", "ann", "bob"], ["tea", "milk", "tea"])
    >>> baseline = RP3Beta(transition_exponent=1.0, popularity_exponent=0.0, normalize=False)
    >>> baseline.fit(log).score(np.array([1]))
    tensor([[0.2500, 0.0000]])

    Reference: Paudel et al., Updatable, accurate, diverse, and scalable recommendations for
        interactive applications, TiiS 2016; the exponent alpha: Cooper et al., Random walks in
        recommender systems, WWW 2014.
    """

    search_space: ClassVar[SearchSpace] = {
        "neighbours": (20, 50, 100, 200, 500),
        "transition_exponent": (0.4, 0.6, 0.8, 1.0, 1.2),
        "popularity_exponent": (0.0, 0.2, 0.4, 0.6, 0.8),
        "normalize": (False, True),
    }
    search_limits: ClassVar[SearchLimits] = {"neighbours": 2000}

    def __init__(
        self,
        *,
        neighbours: int = 100,
        transition_exponent: float = 0.6,
        popularity_exponent: float = 0.2,
        normalize: bool = False,
    ) -> None:
        self.neighbours = whole_number("neighbours", neighbours)
        self.transition_exponent = number_from_zero("transition_exponent", transition_exponent)
        self.popularity_exponent = number_from_zero("popularity_exponent", popularity_exponent)
        self.normalize = normalize

    def _fit(self, interactions: Interactions) -> None:
        self.histories = binary_matrix(interactions)
        by_item = self.histories.T.tocsr()
        user_counts, item_counts = counts_of(self.histories)
        of_start = _powers(item_counts, -self.transition_exponent)
        of_user = _powers(user_counts, -self.transition_exponent)
        of_end = _powers(item_counts, -self.popularity_exponent)
        walks = scaled(self.histories, user_scale=of_user, item_scale=of_end)

        def weights(block: slice) -> np.ndarray:
            dense: np.ndarray = (by_item[block] @ walks).toarray()
            weighted: np.ndarray = dense * of_start[block, None]
            return weighted

        nearest = nearest_neighbours(
            weights,
            n_items=interactions.n_items,
            neighbours=self.neighbours,
        )
        if self.normalize:
            sums = nearest.sum(axis=1).A1
            shares = diags(_powers(sums, -1.0))
            nearest = (shares @ nearest).tocsr()
        self.weights = nearest

    def score(self, users: np.ndarray) -> torch.Tensor:
        """Summed weights of the walks from the user's items."""
        scores = self.histories[users] @ self.weights
        return torch.from_numpy(scores.toarray())


def _powers(values: np.ndarray, exponent: float) -> np.ndarray:
    """Powers of what is positive; 0 stays 0, since nothing leads there."""
    powers = np.zeros(len(values), dtype=np.float32)
    is_positive = values > 0
    bases = values[is_positive].astype(np.float64)
    powers[is_positive] = bases**exponent
    return powers
