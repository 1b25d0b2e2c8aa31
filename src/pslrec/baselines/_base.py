"""What every baseline is: options in the constructor, then `fit`, then a scorer like any model."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import torch
from scipy.sparse import csr_matrix

from pslrec.data import Interactions
from pslrec.registry import Registry

SearchSpace = Mapping[str, Sequence[Any]]


class Baseline(ABC):
    """A scorer that no loss trains.

    `search_space` gives, for each option worth tuning, the values to try. `search_limits` gives the
    largest value that a search may widen an option to, where more always costs more.
    """

    search_space: ClassVar[SearchSpace] = {}
    search_limits: ClassVar[Mapping[str, float]] = {}

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
    def score(self, users: np.ndarray) -> torch.Tensor:
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


BASELINES: Registry[type[Baseline]] = Registry("baseline")
