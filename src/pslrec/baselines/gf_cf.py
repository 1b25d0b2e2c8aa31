"""Two filters of the user's history on the graph of items, without any training."""

from typing import ClassVar

import numpy as np
import torch
from scipy.sparse import csr_matrix

from pslrec.baselines._base import (
    BASELINES,
    Baseline,
    SearchLimits,
    SearchSpace,
    binary_matrix,
    counts_of,
    scaled,
)
from pslrec.checks import number_from_zero, whole_number
from pslrec.data import Interactions
from pslrec.kernels import dense_product
from pslrec.seeding import generator

# Singular values below this share of the largest belong to directions without data.
_RANK_TOLERANCE = 1e-5
# More directions than asked for, and so many rounds, bring the last ones close to exact.
_SPARE_DIRECTIONS = 32
_ROUNDS = 8


@BASELINES.register("gf-cf")
class GFCF(Baseline):
    """A linear filter plus an ideal low-pass filter of the user's row r of the interactions X.

    With D the diagonal matrices of the numbers of interactions, `R = D_u^(-1/2) X D_i^(-1/2)`, and
    V its first right singular vectors,

        scores = r (R^T R + low_pass_weight D_i^(-1/2) V V^T D_i^(1/2))

    Nothing as large as items by items is kept: memory is items times `dimension`.

    Args:
        dimension: singular vectors of the low-pass filter; at most as many as R has.
        low_pass_weight: of the low-pass filter against the linear one.

    >>> log = Interactions.from_ids(["ann", "ann", "bob"], ["tea", "milk", "tea"])
    >>> GFCF(low_pass_weight=0.0).fit(log).score(np.array([1]))
    tensor([[0.3536, 0.7500]])

    Reference: Shen et al., How powerful is graph convolution for recommendation?, CIKM 2021.
    """

    search_space: ClassVar[SearchSpace] = {
        "dimension": (64, 128, 256),
        "low_pass_weight": (0.0, 0.1, 0.3, 1.0),
    }
    search_limits: ClassVar[SearchLimits] = {"dimension": 1024}

    def __init__(
        self,
        *,
        dimension: int = 256,
        low_pass_weight: float = 0.3,
    ) -> None:
        self.dimension = whole_number("dimension", dimension)
        self.low_pass_weight = number_from_zero("low_pass_weight", low_pass_weight)

    def _fit(self, interactions: Interactions) -> None:
        self.histories = binary_matrix(interactions)
        user_counts, item_counts = counts_of(self.histories)
        # A row or column without entries needs no scale: any number is multiplied by 0 there.
        user_lengths = np.sqrt(np.maximum(user_counts, 1))
        item_lengths = np.sqrt(np.maximum(item_counts, 1))
        self.normalized = scaled(
            self.histories,
            user_scale=1.0 / user_lengths,
            item_scale=1.0 / item_lengths,
        )
        self.by_item = self.normalized.T.tocsr()
        if self.low_pass_weight:
            vectors = _right_vectors(self.normalized, self.dimension)
        else:
            vectors = np.zeros((0, interactions.n_items))
        # Contiguous once, rather than copied by every product.
        into = (vectors / item_lengths).T
        out_of = vectors * item_lengths
        self.low_pass_in = np.ascontiguousarray(into, dtype=np.float32)
        self.low_pass_out = np.ascontiguousarray(out_of, dtype=np.float32)

    def score(self, users: np.ndarray) -> torch.Tensor:
        """The user's row after both filters."""
        rows = self.histories[users]
        # From the left: R^T R as a whole would be as large as items by items.
        at_users = rows @ self.by_item
        linear = dense_product(at_users, self.normalized)
        coordinates = rows @ self.low_pass_in
        low_pass = coordinates @ self.low_pass_out
        scores = linear + np.float32(self.low_pass_weight) * low_pass
        return torch.from_numpy(scores)


def _right_vectors(matrix: csr_matrix, rank: int) -> np.ndarray:
    """The right singular vectors of the largest singular values, one per row.

    By randomised subspace iteration (Halko et al., SIAM Review 2011): a random subspace is
    multiplied by the matrix and its transpose in turn until it holds the leading directions.
    """
    n_directions = min(rank + _SPARE_DIRECTIONS, *matrix.shape)
    # From a seed of its own, so that fitting twice gives the same.
    draws = generator(0, "gf-cf")
    shape = (matrix.shape[1], n_directions)
    basis = draws.standard_normal(shape, dtype=np.float32)
    transposed = matrix.T.tocsr()
    for _ in range(_ROUNDS):
        product = transposed @ (matrix @ basis)
        # Without this, all directions would turn into the first one.
        basis, _ = np.linalg.qr(product)
    _, values, rotation = np.linalg.svd(matrix @ basis, full_matrices=False)
    has_data = values > _RANK_TOLERANCE * values.max()
    kept = rotation[has_data][:rank]
    result: np.ndarray = kept @ basis.T
    return result
