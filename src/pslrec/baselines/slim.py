"""Sparse item-to-item weights, learnt by one elastic net per item."""

from typing import ClassVar

import numpy as np
import torch

from pslrec.baselines._base import BASELINES, Baseline, SearchSpace
from pslrec.baselines._common_users import CommonUsers
from pslrec.checks import number_from_zero, positive_number, whole_number
from pslrec.data import Interactions
from pslrec.kernels import dense_product


@BASELINES.register("slim")
class SLIM(Baseline):
    """Each item as a sparse sum of the others: an elastic net with a zero diagonal.

    For each column x of the interaction matrix X, the weights w of the other items minimise

        1/2 |x - X w|^2 + l2 / 2 |w|^2 + l1 |w|_1,    w >= 0

    Only the `neighbours` most similar items (by cosine) may have a weight, as in the variant with
    feature selection of the reference. With as many neighbours as there are items, all items that have
    users in common with it may; where weights cannot be negative, this is the full problem.

    Args:
        l1: strength of the absolute penalty, in units of common users; larger values leave fewer
            weights.
        l2: strength of the squared penalty, in the same units.
        neighbours: how many other items may explain an item.
        non_negative: whether weights below 0 are ruled out, as in the reference.
        memory_budget: bytes that fitting may use; interactions whose table of common users may
            need more are refused before it is computed.

    >>> log = Interactions.from_ids(["ann", "ann", "bob"], ["tea", "milk", "tea"])
    >>> SLIM(l1=0.5, l2=1.0).fit(log).score(np.array([1]))
    tensor([[0.1667, 0.0000]])

    Reference: Ning and Karypis, SLIM: Sparse linear methods for top-N recommender systems,
        ICDM 2011.
    """

    search_space: ClassVar[SearchSpace] = {
        "l1": (0.1, 0.3, 1.0, 3.0),
        "l2": (1.0, 3.0, 10.0, 30.0, 100.0),
        "neighbours": (50, 100, 200, 500, 1000),
    }

    def __init__(
        self,
        *,
        l1: float = 0.3,
        l2: float = 10.0,
        neighbours: int = 100,
        non_negative: bool = True,
        memory_budget: int = 8 * 2**30,
    ) -> None:
        self.l1 = number_from_zero("l1", l1)
        # Above 0 the answer is unique, even for items with the same users.
        self.l2 = positive_number("l2", l2)
        self.neighbours = whole_number("neighbours", neighbours)
        self.non_negative = non_negative
        self.memory_budget = memory_budget

    def _fit(self, interactions: Interactions) -> None:
        self._check_memory(interactions)
        common = CommonUsers(interactions)
        self.histories = common.histories
        candidates = None
        if self.neighbours < interactions.n_items - 1:
            candidates = common.nearest(self.neighbours)
        # Row i holds the items that i helps to explain: these gain by a user's i.
        self.weights = common.weights(
            l1=self.l1,
            l2=self.l2,
            non_negative=self.non_negative,
            candidates=candidates,
        )

    def _check_memory(self, interactions: Interactions) -> None:
        n_items = interactions.n_items
        of_counts = CommonUsers.memory_needed(interactions)
        # A value and a column for each candidate, three times.
        n_candidates = n_items * min(self.neighbours, n_items)
        needed = of_counts + min(24 * n_candidates, 3 * of_counts)
        if needed > self.memory_budget:
            raise ValueError(
                f"SLIM may need {needed / 2**30:.1f} GiB for these interactions, `memory_budget` "
                f"allows {self.memory_budget / 2**30:.1f} GiB; raise it, or keep fewer items"
            )

    def score(self, users: np.ndarray) -> torch.Tensor:
        """The user's row of X times the weights."""
        return torch.from_numpy(dense_product(self.histories[users], self.weights))
