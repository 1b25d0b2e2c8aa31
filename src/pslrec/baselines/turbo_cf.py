"""A polynomial filter of the user's history on the graph of items, without any training."""

from typing import ClassVar

import numpy as np
import torch

from pslrec.baselines._base import (
    BASELINES,
    Baseline,
    SearchSpace,
    binary_matrix,
    counts_of,
    scaled,
    sums_of_rows,
)
from pslrec.checks import number_from_zero, positive_number, whole_number
from pslrec.data import Interactions

# Rows that are worked on at a time, as sparse matrices, before they become dense.
_ROWS = 1024


@BASELINES.register("turbo-cf")
class TurboCF(Baseline):
    """A low-pass filter of degree one to three in a graph of items.

    With D the diagonal matrices of the numbers of interactions,
    `R = D_u^(-normalization) X D_i^(normalization - 1)` and P the matrix `R^T R` with each entry
    raised to `power`, the scores of a user with row r of X are

        degree 1:  r P
        degree 2:  r (2 P - P^2)
        degree 3:  r (P + 0.01 (10 P^2 - P^3 - 29 P))

    Degrees above 1 multiply each user's row with a dense matrix when scores are computed.

    Args:
        normalization: how much of the scaling falls on users rather than on items, from 0 to 1.
        power: below 1 it lifts weak links between items, above 1 it suppresses them.
        degree: of the polynomial: linear, or near to an ideal low-pass filter.
        memory_budget: bytes that fitting may use; a catalogue that needs more is refused before
            anything is computed.

    >>> log = Interactions.from_ids(["ann", "ann", "bob"], ["tea", "milk", "tea"])
    >>> TurboCF(normalization=0.5, power=1.0).fit(log).score(np.array([1]))
    tensor([[0.3536, 0.7500]])

    Reference: Park et al., Turbo-CF: Matrix decomposition-free graph filtering for fast
        recommendation, SIGIR 2024.
    """

    search_space: ClassVar[SearchSpace] = {
        "normalization": (0.3, 0.4, 0.5, 0.6, 0.7),
        "power": (0.5, 0.7, 1.0, 1.4),
        "degree": (1, 2, 3),
    }

    def __init__(
        self,
        *,
        normalization: float = 0.5,
        power: float = 1.0,
        degree: int = 1,
        memory_budget: int = 8 * 2**30,
    ) -> None:
        self.normalization = number_from_zero("normalization", normalization)
        self.power = positive_number("power", power)
        self.degree = whole_number("degree", degree, maximum=3)
        self.memory_budget = memory_budget

    @staticmethod
    def memory_needed(n_items: int) -> int:
        """Bytes that fitting needs: a float32 matrix of items by items.

        Args:
            n_items: of the catalogue.

        >>> TurboCF.memory_needed(10_000) / 1e9
        0.4
        """
        return 4 * n_items**2

    def _fit(self, interactions: Interactions) -> None:
        n_items = interactions.n_items
        needed = self.memory_needed(n_items)
        if needed > self.memory_budget:
            raise ValueError(
                f"TurboCF needs {needed / 2**30:.1f} GiB for {n_items} items, `memory_budget` "
                f"allows {self.memory_budget / 2**30:.1f} GiB; raise it, or take `gf-cf`"
            )
        self.histories = binary_matrix(interactions)
        user_counts, item_counts = counts_of(self.histories)
        # A row or column without entries needs no scale: any number is multiplied by 0 there.
        user_bases = np.maximum(user_counts, 1.0)
        item_bases = np.maximum(item_counts, 1.0)
        normalized = scaled(
            self.histories,
            user_scale=user_bases**-self.normalization,
            item_scale=item_bases ** (self.normalization - 1.0),
        )
        by_item = normalized.T.tocsr()
        graph = np.empty((n_items, n_items), dtype=np.float32)
        for start in range(0, n_items, _ROWS):
            rows = slice(start, start + _ROWS)
            block = by_item[rows] @ normalized
            # The power is taken of links only: 0 to any power is 0.
            block.data **= np.float32(self.power)
            graph[rows] = block.toarray()
        self.graph = torch.from_numpy(graph)

    def score(self, users: np.ndarray) -> torch.Tensor:
        """The user's row after the filter."""
        once = sums_of_rows(self.histories, users, self.graph)
        if self.degree == 1:
            return once
        twice = once @ self.graph
        if self.degree == 2:
            return 2.0 * once - twice
        thrice = twice @ self.graph
        return once + 0.01 * (10.0 * twice - thrice - 29.0 * once)
