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

# Rows are solved together up to this many bytes of gathered vectors and systems: enough to share the
# price of a call, and little enough to stay in the cache of a processor.
_BATCH_BYTES = 4 * 2**20
# Nor may the longest row be longer than the shortest by more than this factor: the systems of shorter
# rows are padded to its size.
_LONGEST_TO_SHORTEST = 1.25

# Rows, their columns padded to one width, and their lengths.
_Batch = tuple[Tensor, Tensor, Tensor]


@BASELINES.register("ials")
class ImplicitALS(Baseline):
    """Vectors whose inner products s are near 1 for the user's items and near 0 for all others.

    Minimises, with n the number of interactions of a user (or item) and m the number of rows on the
    other side,

        sum over observed (1 - s)^2 + unobserved_weight * sum over all s^2
            + regularization * sum over vectors (n + unobserved_weight * m)^exponent |vector|^2

    by solving exactly for all users, then for all items, and so on. A row with n interactions costs
    a system of size n or `dimension`, whichever is smaller, so that sparse data are fitted fast at
    any dimension. The confidence 1 + alpha of Hu et al. is, up to the scale of the scores, an
    `unobserved_weight` of 1 / alpha.

    Args:
        dimension: length of the vectors.
        unobserved_weight: how much a missing pair counts against an observed one.
        regularization: strength of the penalty on the vectors.
        exponent: of the frequency in the penalty; 0 penalises all vectors alike, 1 in proportion to
            how often they take part; in between, one `regularization` suits catalogues of very
            different size.
        reference_exponent: if given, the penalty is scaled so that its sum over all vectors of length
            1 is what it would be with this exponent. One `regularization` then suits several values
            of `exponent`, which makes them searchable one after the other.
        epochs: rounds over users and items.
        seed: for the first vectors.

    Reference: Hu et al., Collaborative filtering for implicit feedback datasets, ICDM 2008; Rendle
        et al., Revisiting the performance of iALS on item recommendation benchmarks, RecSys 2022.
    """

    search_space: ClassVar[SearchSpace] = {
        # Less weight asks for more penalty. The grids are fine, so that a search that changes one
        # option at a time can follow; half or twice the best penalty costs a tenth of NDCG.
        "regularization": (0.2, 0.3, 0.4, 0.5, 0.7),
        "unobserved_weight": (0.01, 0.02, 0.05, 0.1, 0.2, 0.4),
        # Popular items may want much more penalty than their share.
        "exponent": (0.5, 1.0, 1.5),
        "reference_exponent": (0.5,),
        # Last, as it costs most and hardly moves the best of the others.
        "dimension": (64, 128, 256),
    }
    search_limits: ClassVar[SearchLimits] = {"dimension": 512}

    def __init__(
        self,
        *,
        dimension: int = 64,
        unobserved_weight: float = 0.1,
        regularization: float = 0.3,
        exponent: float = 0.5,
        reference_exponent: float | None = None,
        epochs: int = 16,
        seed: int = 2024,
    ) -> None:
        self.dimension = whole_number("dimension", dimension)
        self.unobserved_weight = positive_number("unobserved_weight", unobserved_weight)
        self.regularization = positive_number("regularization", regularization)
        self.exponent = exponent
        self.reference_exponent = reference_exponent
        self.epochs = whole_number("epochs", epochs)
        self.seed = seed

    def _fit(self, interactions: Interactions) -> None:
        by_user = binary_matrix(interactions)
        by_item = by_user.T.tocsr()
        self.item_vectors = self.initial_vectors(interactions.n_items)
        self._scale = self._penalty_scale(by_user)
        # Which rows are solved together does not change from epoch to epoch.
        user_batches = list(self._batches(by_user))
        item_batches = list(self._batches(by_item))
        n_users = interactions.n_users
        n_items = interactions.n_items
        for _ in range(self.epochs):
            self.user_vectors = self._solve(user_batches, n_users, self.item_vectors)
            self.item_vectors = self._solve(item_batches, n_items, self.user_vectors)

    def _penalty_scale(self, by_user: csr_matrix) -> float:
        """What makes the penalties of all vectors add up as with the reference exponent."""
        if self.reference_exponent is None:
            return 1.0
        n_users, n_items = by_user.shape
        of_users = np.diff(by_user.indptr) + self.unobserved_weight * n_items
        of_items = np.bincount(by_user.indices, minlength=n_items)
        effects = np.concatenate([of_users, of_items + self.unobserved_weight * n_users])
        wanted = np.sum(effects**self.reference_exponent)
        return float(wanted / np.sum(effects**self.exponent))

    def initial_vectors(self, n_items: int) -> Tensor:
        """What the item vectors are before the first epoch.

        Args:
            n_items: of the catalogue.
        """
        draws = generator(self.seed, "ials")
        noise = draws.standard_normal((n_items, self.dimension), dtype=np.float32)
        # Scores start near 0, the target of most pairs.
        scale = 0.1 / np.sqrt(self.dimension)
        vectors = torch.from_numpy(scale * noise)
        return vectors.to(torch.float32)

    def _batches(self, matrix: csr_matrix) -> Iterator[_Batch]:
        """Rows of similar length, which need little padding: the number of the row after the last."""
        lengths = np.diff(matrix.indptr).astype(np.int64)
        order = np.argsort(lengths, kind="stable")
        start = 0
        while start < len(order):
            # Rows only get longer, so the width of the batch is that of its last row.
            widths = lengths[order[start:]]
            counts = np.arange(1, len(widths) + 1)
            system_sizes = np.minimum(widths, self.dimension)
            costs = 4 * counts * (widths * self.dimension + system_sizes**2)
            n_affordable = np.searchsorted(costs, _BATCH_BYTES)
            longest = _LONGEST_TO_SHORTEST * widths[0]
            n_similar = np.searchsorted(widths, longest, side="right")
            n_rows = int(min(n_affordable, n_similar))
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
        """The vectors of one side that are best for the fixed vectors of the other.

        With T the fixed vectors of a row's n interactions, the row solves
        `(T^T T + M) x = T^T 1`, where M is what all pairs and the penalty contribute. In the basis
        of the eigenvectors of the former M is diagonal, so that it costs nothing to invert, and

            x = M^-1 T^T (T M^-1 T^T + I)^-1 1

        has a system of size n instead of one of size `dimension`.
        """
        # All pairs count as unobserved in this sum, which is the same for every row.
        gram = (fixed.T @ fixed).double()
        eigenvalues, eigenvectors = torch.linalg.eigh(gram)
        basis = eigenvectors.float()
        # Rounding must not make a sum of squares negative.
        of_all_pairs = self.unobserved_weight * eigenvalues.clamp(min=0.0).float()
        # Padding adds nothing: it stands for a row of zeros.
        padding = fixed.new_zeros(1, self.dimension)
        padded = torch.cat([fixed @ basis, padding])
        solved = torch.empty(n_rows, self.dimension)
        for rows, columns, lengths in batches:
            effect = lengths + self.unobserved_weight * len(fixed)
            effect = effect.to(torch.float32)
            penalty = self._scale * self.regularization * effect**self.exponent
            diagonals = of_all_pairs + penalty[:, None]
            taken = padded[columns]
            if columns.shape[1] < self.dimension:
                solved[rows] = _solve_short(taken, diagonals)
            else:
                solved[rows] = _solve_long(taken, diagonals)
        in_first_basis: Tensor = solved @ basis.T
        return in_first_basis

    def score(self, users: np.ndarray) -> Tensor:
        """Inner products of the users' vectors with those of all items."""
        users = np.asarray(users, dtype=np.int64)
        rows = torch.from_numpy(users)
        return self.user_vectors[rows] @ self.item_vectors.T


def _solve_short(taken: Tensor, diagonals: Tensor) -> Tensor:
    """Solve rows with fewer interactions than dimensions, by systems of interactions.

    Args:
        taken: T of each row, shape (rows, interactions, dimension).
        diagonals: M of each row, shape (rows, dimension).
    """
    scale = diagonals.rsqrt()
    scaled = taken * scale[:, None, :]
    systems = scaled @ scaled.mT
    systems.diagonal(dim1=1, dim2=2).add_(1.0)
    factor = torch.linalg.cholesky(systems)
    targets = taken.new_ones(*taken.shape[:2], 1)
    weights = torch.cholesky_solve(targets, factor)
    sums = scaled.mT @ weights
    return sums[:, :, 0] * scale


def _solve_long(taken: Tensor, diagonals: Tensor) -> Tensor:
    """Solve rows with at least as many interactions as dimensions, by systems of dimensions.

    Args:
        taken: T of each row, shape (rows, interactions, dimension).
        diagonals: M of each row, shape (rows, dimension).
    """
    systems = taken.mT @ taken
    systems.diagonal(dim1=1, dim2=2).add_(diagonals)
    factor = torch.linalg.cholesky(systems)
    targets = taken.sum(dim=1).unsqueeze(2)
    solutions = torch.cholesky_solve(targets, factor)
    return solutions[:, :, 0]
