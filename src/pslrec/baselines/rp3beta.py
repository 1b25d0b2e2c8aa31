"""Random walks of three steps over the graph of users and items."""

from typing import ClassVar

import numpy as np
import torch

from pslrec.baselines._base import (
    BASELINES,
    Baseline,
    SearchLimits,
    SearchSpace,
    binary_matrix,
)
from pslrec.baselines._walks import walk_matrix
from pslrec.checks import number_from_zero, whole_number
from pslrec.data import Interactions
from pslrec.kernels import dense_product


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
        self.weights = walk_matrix(
            interactions,
            neighbours=self.neighbours,
            transition_exponent=self.transition_exponent,
            popularity_exponent=self.popularity_exponent,
            normalize=self.normalize,
        )

    def score(self, users: np.ndarray) -> torch.Tensor:
        """Summed weights of the walks from the user's items."""
        return torch.from_numpy(dense_product(self.histories[users], self.weights))
