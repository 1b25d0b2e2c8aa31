"""Items like those the user has, by how many users two items share."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from scipy.sparse import csr_matrix

from pslrec.baselines._base import BASELINES, Baseline, binary_matrix
from pslrec.data import Interactions
from pslrec.kernels import top_k

# Similarities are made dense for this many bytes of items at a time, then cut down to the neighbours.
_BLOCK_BYTES = 64 * 2**20


@BASELINES.register("item-knn")
class ItemKNN(Baseline):
    """Sum of the similarities between an item and those of its nearest neighbours that the user has.

    The similarity of two items with n_i and n_j users, c of them common, is `c / (sqrt(n_i n_j) + shrinkage)`.

    Args:
        neighbours: how many of the most similar items each item keeps; of equally similar ones, the lower rows.
        shrinkage: pulls similarities that rest on few users towards 0; with 0 they are plain cosines.

    Reference: Sarwar et al., Item-based collaborative filtering recommendation algorithms, WWW 2001.
    """

    search_space: ClassVar[Mapping[str, Sequence[Any]]] = {
        "neighbours": (20, 50, 100, 200, 500),
        "shrinkage": (0.0, 5.0, 10.0, 50.0, 100.0),
    }

    def __init__(self, *, neighbours: int = 100, shrinkage: float = 10.0) -> None:
        if neighbours < 1:
            raise ValueError(f"`neighbours` must be at least 1, got {neighbours}")
        if shrinkage < 0:
            raise ValueError(f"`shrinkage` must not be negative, got {shrinkage}")
        self.neighbours = neighbours
        self.shrinkage = shrinkage

    def _fit(self, interactions: Interactions) -> None:
        self.histories = binary_matrix(interactions)
        by_item = self.histories.T.tocsr()
        lengths = np.sqrt(np.diff(by_item.indptr)).astype(np.float32)
        n_items = interactions.n_items
        rows = max(1, _BLOCK_BYTES // (4 * n_items))
        blocks = [self._nearest(by_item, lengths, start, rows) for start in range(0, n_items, rows)]
        values, columns = (torch.cat(parts).numpy() for parts in zip(*blocks, strict=True))
        offsets = np.arange(n_items + 1) * values.shape[1]
        nearest = csr_matrix((values.ravel(), columns.ravel(), offsets), shape=(n_items, n_items))
        nearest.eliminate_zeros()
        self.similarities = nearest.T.tocsr()

    def _nearest(
        self, by_item: csr_matrix, lengths: np.ndarray, start: int, rows: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Similarities and rows of the nearest neighbours of some items."""
        common = (by_item[start : start + rows] @ self.histories).toarray()
        scale = lengths[start : start + rows, None] * lengths + np.float32(self.shrinkage)
        # An item without users has nothing in common with any, and with no shrinkage its scale is 0.
        similarities = common / np.maximum(scale, np.finfo(np.float32).tiny)
        np.fill_diagonal(similarities[:, start:], 0.0)
        return top_k(torch.from_numpy(similarities), self.neighbours)

    def score(self, users: np.ndarray) -> torch.Tensor:
        """Summed similarities to the user's items."""
        return torch.from_numpy((self.histories[users] @ self.similarities).toarray())
