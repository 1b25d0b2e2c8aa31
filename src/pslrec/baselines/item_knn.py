"""Items like those the user has, by how many users two items share."""

from typing import ClassVar

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor

from pslrec.baselines._base import BASELINES, Baseline, SearchSpace, binary_matrix
from pslrec.checks import number_from_zero, whole_number
from pslrec.data import Interactions
from pslrec.kernels import top_k

# Similarities are made dense for this many bytes of items at a time, then cut down to the
# neighbours: all of them at once would fill the memory of a large catalogue.
_BLOCK_BYTES = 64 * 2**20


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
        lengths = np.sqrt(n_users_of_item).astype(np.float32)
        n_items = interactions.n_items
        rows = max(1, _BLOCK_BYTES // (4 * n_items))
        value_blocks = []
        column_blocks = []
        for start in range(0, n_items, rows):
            block_values, block_columns = self._nearest(by_item, lengths, start, rows)
            value_blocks.append(block_values)
            column_blocks.append(block_columns)
        values = torch.cat(value_blocks).numpy()
        columns = torch.cat(column_blocks).numpy()
        width = values.shape[1]
        offsets = np.arange(n_items + 1) * width
        parts = (values.ravel(), columns.ravel(), offsets)
        nearest = csr_matrix(parts, shape=(n_items, n_items))
        # Lists of items with few neighbours are filled up with similarities of 0.
        nearest.eliminate_zeros()
        # Row i is to hold the items that have i among their neighbours: these gain by a user's i.
        self.similarities = nearest.T.tocsr()

    def _nearest(
        self,
        by_item: csr_matrix,
        lengths: np.ndarray,
        start: int,
        rows: int,
    ) -> tuple[Tensor, Tensor]:
        """Similarities and rows of the nearest neighbours of some items."""
        block = slice(start, start + rows)
        common = (by_item[block] @ self.histories).toarray()
        shrinkage = np.float32(self.shrinkage)
        scale = lengths[block, None] * lengths + shrinkage
        # An item without users has nothing in common with any; without shrinkage its scale is 0.
        smallest = np.finfo(np.float32).tiny
        similarities = common / np.maximum(scale, smallest)
        # No item is a neighbour of its own.
        np.fill_diagonal(similarities[:, start:], 0.0)
        return top_k(torch.from_numpy(similarities), self.neighbours)

    def score(self, users: np.ndarray) -> Tensor:
        """Summed similarities to the user's items."""
        scores = self.histories[users] @ self.similarities
        return torch.from_numpy(scores.toarray())
