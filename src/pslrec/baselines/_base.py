"""What every baseline is: options in the constructor, then `fit`, then a scorer like any model."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import torch
from scipy.sparse import csr_matrix, diags
from torch import Tensor
from torch.nn import functional

from pslrec.data import Interactions
from pslrec.registry import Registry

SearchSpace = Mapping[str, Sequence[Any]]
SearchLimits = Mapping[str, float]


class Baseline(ABC):
    """A scorer that no loss trains.

    `search_space` gives, for each option worth tuning, the values to try. `search_limits` gives the
    largest value that a search may widen an option to, where more always costs more.
    """

    search_space: ClassVar[SearchSpace] = {}
    search_limits: ClassVar[SearchLimits] = {}

    _shape: tuple[int, int] | None = None

    def fit(self, interactions: Interactions) -> Self:
        """Learn from the interactions.

        Args:
            interactions: repeated pairs count once, weights are ignored.
        """
        self._shape = (interactions.n_users, interactions.n_items)
        self._fit(interactions)
        return self

    @abstractmethod
    def _fit(self, interactions: Interactions) -> None: ...

    @abstractmethod
    def score(self, users: np.ndarray) -> Tensor:
        """Scores of every item for some users.

        Args:
            users: their row numbers.

        Returns:
            Shape (len(users), n_items), float32, in a fresh tensor that the caller may overwrite.
        """

    @property
    def n_users(self) -> int:
        """Users that can be scored."""
        return self._fitted_shape()[0]

    @property
    def n_items(self) -> int:
        """Items of the catalogue."""
        return self._fitted_shape()[1]

    def _fitted_shape(self) -> tuple[int, int]:
        if self._shape is None:
            raise RuntimeError(
                f"this {type(self).__name__} knows no data yet; call `fit(interactions)` first"
            )
        return self._shape


def binary_matrix(interactions: Interactions) -> csr_matrix:
    """The user-by-item matrix with 1 for every pair.

    Args:
        interactions: a pair may occur several times, and with any weight.
    """
    ones = np.ones(len(interactions), dtype=np.float32)
    matrix = csr_matrix(
        (ones, (interactions.users, interactions.items)),
        shape=(interactions.n_users, interactions.n_items),
    )
    # Scipy has added up pairs that occur several times.
    matrix.data[:] = 1.0
    return matrix


def counts_of(histories: csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    """How many items each user has, and how many users each item.

    Args:
        histories: what `binary_matrix` returns.
    """
    n_items = histories.shape[1]
    user_counts = np.diff(histories.indptr)
    item_counts = np.bincount(histories.indices, minlength=n_items)
    return user_counts, item_counts


def scaled(
    histories: csr_matrix,
    *,
    user_scale: np.ndarray,
    item_scale: np.ndarray,
) -> csr_matrix:
    """The matrix with each entry multiplied by a number of its user and one of its item.

    Args:
        histories: users by items.
        user_scale: one number per user.
        item_scale: one number per item.

    >>> pairs = csr_matrix([[1.0, 1.0], [0.0, 1.0]], dtype=np.float32)
    >>> scaled(pairs, user_scale=np.array([2.0, 3.0]), item_scale=np.array([1.0, 5.0])).toarray()
    array([[ 2., 10.],
           [ 0., 15.]], dtype=float32)
    """
    product = diags(user_scale) @ histories @ diags(item_scale)
    # The diagonals are float64, and so is their product.
    return product.astype(np.float32).tocsr()


def sums_of_rows(
    histories: csr_matrix,
    users: np.ndarray,
    weights: torch.Tensor,
) -> torch.Tensor:
    """For each user, the sum of the rows of the user's items: X W for a dense W.

    Args:
        histories: what `binary_matrix` returns.
        users: row numbers.
        weights: W, one row per item.
    """
    chosen = histories[users]
    # These are bags, which torch adds up in parallel.
    items = torch.from_numpy(chosen.indices.astype(np.int64))
    starts = chosen.indptr[:-1]
    offsets = torch.from_numpy(starts.astype(np.int64))
    return functional.embedding_bag(items, weights, offsets, mode="sum")


BASELINES: Registry[type[Baseline]] = Registry("baseline")
