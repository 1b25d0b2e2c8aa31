"""Items like those the user has, by how many users two items share."""

from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from pslrec.baselines._base import (
    BASELINES,
    Baseline,
    SearchLimits,
    SearchSpace,
    binary_matrix,
)
from pslrec.baselines._neighbours import cosine_scale, nearest_neighbours
from pslrec.checks import number_from_zero, whole_number
from pslrec.data import Interactions
from pslrec.kernels import dense_product


@BASELINES.register("item-knn")
class ItemKNN(Baseline):
    """Sum of the similarities of an item to those of its nearest neighbours that the user has.

    The similarity of two items with n_i and n_j users, c of them common, is
    `c / (sqrt(n_i n_j) + shrinkage)`.

    Args:
        neighbours: how many of the most similar items each item keeps; of equally similar ones, the
            lower rows.
        shrinkage: pulls similarities that rest on few users towards 0; with 0 they are plain
            cosines.

    Reference: Sarwar et al., Item-based collaborative filtering recommendation algorithms, WWW
        2001.
    """

    search_space: ClassVar[SearchSpace] = {
        "neighbours": (20, 50, 100, 200, 500),
        "shrinkage": (0.0, 5.0, 10.0, 50.0, 100.0),
    }
    search_limits: ClassVar[SearchLimits] = {"neighbours": 2000}

    def __init__(
        self,
        *,
        neighbours: int = 100,
        shrinkage: float = 10.0,
    ) -> None:
        self.neighbours = whole_number("neighbours", neighbours)
        self.shrinkage = number_from_zero("shrinkage", shrinkage)

    def _fit(self, interactions: Interactions) -> None:
        self.histories = binary_matrix(interactions)
        by_item = self.histories.T.tocsr()
        n_users_of_item = np.diff(by_item.indptr)

        def similarities(block: slice) -> np.ndarray:
            common = dense_product(by_item[block], self.histories)
            cosines: np.ndarray = common / cosine_scale(n_users_of_item, self.shrinkage, block)
            return cosines

        nearest = nearest_neighbours(
            similarities,
            n_items=interactions.n_items,
            neighbours=self.neighbours,
        )
        # Row i is to hold the items that have i among their neighbours: these gain by a user's i.
        self.similarities = nearest.T.tocsr()

    def score(self, users: np.ndarray) -> Tensor:
        """Summed similarities to the user's items."""
        return torch.from_numpy(dense_product(self.histories[users], self.similarities))
