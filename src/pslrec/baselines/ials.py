"""Matrix factorisation of all user-item pairs by alternating least squares."""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor

from pslrec.baselines._base import (
    BASELINES,
    Baseline,
    SearchLimits,
    SearchSpace,
    binary_matrix,
)
from pslrec.checks import positive_number, whole_number
from pslrec.data import Interactions
from pslrec.seeding import generator

# Rows are solved together up to this many bytes of gathered vectors and systems: large enough to
# keep LAPACK busy.
_BATCH_BYTES = 32 * 2**20

# Rows, their columns padded to one width, and their lengths.
_Batch = tuple[Tensor, Tensor, Tensor]


@BASELINES.register("ials")
class ImplicitALS(Baseline):
    """Vectors whose inner products s are near 1 for the user's items and near 0 for all others.

    Minimises, with n the number of interactions of a user (or item) and m the number of rows on the
    other side,

        sum over observed (1 - s)^2 + unobserved_weight * sum over all s^2
            + regularization * sum over vectors (n + unobserved_weight * m)^exponent |vector|^2

    by solving exactly for all users, then for all items, and so on. The confidence 1 + alpha of Hu
    et al. is, up to the scale of the scores, an `unobserved_weight` of 1 / alpha.

    Args:
        dimension: length of the vectors.
        unobserved_weight: how much a missing pair counts against an observed one.
        regularization: strength of the penalty on the vectors.
        exponent: of the frequency in the penalty; 0 penalises all vectors alike, 1 in proportion to
            how often they take part; in between, one `regularization` suits catalogues of very
            different size.
        epochs: rounds over users and items.
        seed: for the first vectors.

    Reference: Hu et al., Collaborative filtering for implicit feedback datasets, ICDM 2008; Rendle
        et al., Revisiting the performance of iALS on item recommendation benchmarks, RecSys 2022.
    """

    search_space: ClassVar[SearchSpace] = {
        "dimension": (64, 128, 256),
        "unobserved_weight": (0.01, 0.03, 0.1, 0.3, 1.0),
        "regularization": (0.03, 0.1, 0.3, 1.0),
    }
    search_limits: ClassVar[SearchLimits] = {"dimension": 512}

    def __init__(
        self,
        *,
        dimension: int = 64,
        unobserved_weight: float = 0.1,
        regularization: float = 0.3,
        exponent: float = 0.5,
        epochs: int = 10,
        seed: int = 2024,
    ) -> None:
        self.dimension = whole_number("dimension", dimension)
        self.unobserved_weight = positive_number("unobserved_weight", unobserved_weight)
        self.regularization = positive_number("regularization", regularization)
        self.exponent = exponent
        self.epochs = whole_number("epochs", epochs)
        self.seed = seed

    def _fit(self, interactions: Interactions) -> None:
        by_user = binary_matrix(interactions)
        by_item = by_user.T.tocsr()
        shape = (interactions.n_items, self.dimension)
        draws = generator(self.seed, "ials")
        noise = draws.standard_normal(shape, dtype=np.float32)
        # Scores start near 0, the target of most pairs.
        scale = 0.1 / np.sqrt(self.dimension)
        vectors = torch.from_numpy(scale * noise)
        self.item_vectors = vectors.to(torch.float32)
        # Which rows are solved together does not change from epoch to epoch.
        user_batches = list(self._batches(by_user))
        item_batches = list(self._batches(by_item))
        n_users = interactions.n_users
        n_items = interactions.n_items
        for _ in range(self.epochs):
            self.user_vectors = self._solve(user_batches, n_users, self.item_vectors)
            self.item_vectors = self._solve(item_batches, n_items, self.user_vectors)

    def _batches(self, matrix: csr_matrix) -> Iterator[_Batch]:
        """Rows of similar length, which need little padding: the number of the row after the last."""
        lengths = np.diff(matrix.indptr)
        order = np.argsort(lengths, kind="stable")
        start = 0
        while start < len(order):
            # Rows only get longer, so the width of the batch is that of its last row.
            widths = lengths[order[start:]]
            counts = np.arange(1, len(widths) + 1)
            bytes_per_vector = 4 * self.dimension
            costs = counts * (widths + self.dimension) * bytes_per_vector
            n_rows = int(np.searchsorted(costs, _BATCH_BYTES))
            stop = start + max(1, n_rows)
            rows = order[start:stop]
            width = int(lengths[rows[-1]])
            shape = (len(rows), width)
            padding = matrix.shape[1]
            columns = np.full(shape, padding, dtype=np.int64)
            is_filled = np.arange(width) < lengths[rows, None]
            columns[is_filled] = matrix[rows].indices
            yield (
                torch.from_numpy(rows),
                torch.from_numpy(columns),
                torch.from_numpy(lengths[rows]),
            )
            start = stop

    def _solve(
        self,
        batches: list[_Batch],
        n_rows: int,
        fixed: Tensor,
    ) -> Tensor:
        """The vectors of one side that are best for the fixed vectors of the other."""
        # All pairs count as unobserved in this sum, which is the same for every row.
        gram = self.unobserved_weight * (fixed.T @ fixed)
        # Padding adds nothing: it stands for a row of zeros.
        padding = fixed.new_zeros(1, self.dimension)
        padded = torch.cat([fixed, padding])
        solved = torch.empty(n_rows, self.dimension)
        for rows, columns, lengths in batches:
            taken = padded[columns]
            systems = torch.baddbmm(gram, taken.mT, taken)
            effect = lengths + self.unobserved_weight * len(fixed)
            effect = effect.to(torch.float32)
            penalty = self.regularization * effect**self.exponent
            diagonals = systems.diagonal(dim1=1, dim2=2)
            diagonals.add_(penalty[:, None])
            factor = torch.linalg.cholesky(systems)
            targets = taken.sum(dim=1).unsqueeze(2)
            solutions = torch.cholesky_solve(targets, factor)
            solved[rows] = solutions[:, :, 0]
        return solved

    def score(self, users: np.ndarray) -> Tensor:
        """Inner products of the users' vectors with those of all items."""
        users = np.asarray(users, dtype=np.int64)
        rows = torch.from_numpy(users)
        return self.user_vectors[rows] @ self.item_vectors.T
