"""A linear autoencoder with a closed form.

It is strong on sparse data, but it inverts a matrix as wide as the catalogue.
"""

from typing import Any, ClassVar

import numpy as np
import torch
from scipy.linalg import lapack
from scipy.sparse import csr_matrix
from torch import Tensor

from pslrec.baselines._base import (
    BASELINES,
    Baseline,
    SearchSpace,
    binary_matrix,
    sums_of_rows,
)
from pslrec.checks import positive_number
from pslrec.data import Interactions

# Rows that are worked on at a time: large products, while what they need beside the matrix stays
# small.
_ROWS = 1024


@BASELINES.register("ease")
class EASE(Baseline):
    """Item-to-item weights B that best restore the interaction matrix X, with a zero diagonal.

    Minimises `|X - X B|^2 + regularization |B|^2`. With P the inverse of
    `X^T X + regularization I` the answer is `B_ij = -P_ij / P_jj` off the diagonal. Inverted in
    float64, kept in float32.

    Args:
        regularization: strength of the penalty, in units of interactions; larger for denser data.
        memory_budget: bytes that fitting may use; a catalogue that needs more is refused before
            anything is computed.

    Reference: Steck, Embarrassingly shallow autoencoders for sparse data, WWW 2019.
    """

    search_space: ClassVar[SearchSpace] = {
        "regularization": (10.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
    }
    # What the matrix is inverted in.
    precision: ClassVar[type[np.floating[Any]]] = np.float64

    def __init__(
        self,
        *,
        regularization: float = 200.0,
        memory_budget: int = 8 * 2**30,
    ) -> None:
        self.regularization = positive_number("regularization", regularization)
        self.memory_budget = memory_budget

    @classmethod
    def memory_needed(cls, n_items: int) -> int:
        """Bytes that fitting needs: two matrices of items by items, that of the weights in float32.

        Args:
            n_items: of the catalogue.

        >>> EASE.memory_needed(10_000) / 1e9
        1.2
        """
        bytes_of_pair = np.dtype(cls.precision).itemsize + np.dtype(np.float32).itemsize
        return bytes_of_pair * n_items**2

    def _fit(self, interactions: Interactions) -> None:
        needed = self.memory_needed(interactions.n_items)
        if needed > self.memory_budget:
            allowed = self.memory_budget / 2**30
            raise ValueError(
                f"{type(self).__name__} needs {needed / 2**30:.1f} GiB for {interactions.n_items} items, "
                f"`memory_budget` allows {allowed:.1f} GiB; raise it, or keep fewer items"
            )
        self.histories = binary_matrix(interactions)
        inverse = self._inverse_upper(self.histories)
        scale = 1.0 / np.diagonal(inverse)
        weights = np.empty(inverse.shape, dtype=np.float32)
        for start in range(0, len(weights), _ROWS):
            stop = min(start + _ROWS, len(weights))
            rows = slice(start, stop)
            # Only the upper triangle holds the inverse; the rest of these rows is its mirror image.
            weights[rows, stop:] = inverse[rows, stop:]
            weights[rows, :start] = inverse[:start, rows].T
            corner = inverse[rows, rows]
            weights[rows, rows] = np.triu(corner) + np.triu(corner, k=1).T
            weights[rows] *= -scale
        # An item must not explain itself.
        np.fill_diagonal(weights, 0.0)
        self.weights = torch.from_numpy(weights)

    def _penalty(self, histories: csr_matrix) -> np.ndarray:
        """What is added to the diagonal of `X^T X`, one number per item."""
        return np.full(histories.shape[1], self.regularization)

    def _inverse_upper(self, histories: csr_matrix) -> np.ndarray:
        n_items = histories.shape[1]
        gram = np.empty((n_items, n_items), dtype=self.precision)
        by_item = histories.T.tocsr()
        for start in range(0, n_items, _ROWS):
            rows = slice(start, start + _ROWS)
            # A block at a time: the whole product as a sparse matrix would need more memory.
            gram[rows] = (by_item[rows] @ histories).toarray()
        gram[np.diag_indices_from(gram)] += self._penalty(histories)
        # LAPACK stores columns first, so its lower triangle of the transpose is our upper one. All
        # of it happens in place: the matrix is the largest thing in memory.
        factorize, invert = lapack.get_lapack_funcs(("potrf", "potri"), dtype=self.precision)
        inverse, failed = factorize(gram.T, lower=1, overwrite_a=1, clean=0)
        if not failed:
            inverse, failed = invert(inverse, lower=1, overwrite_c=1)
        if failed:
            raise ValueError(
                f"`regularization` of {self.regularization} is too small to invert the item matrix"
            )
        upper: np.ndarray = inverse.T
        return upper

    def score(self, users: np.ndarray) -> Tensor:
        """The user's row of X B."""
        return sums_of_rows(self.histories, users, self.weights)
