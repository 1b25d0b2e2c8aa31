"""Sparse item-to-item weights, learnt by one elastic net per item."""

from typing import ClassVar

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch.nn import functional

from pslrec.baselines._base import (
    BASELINES,
    Baseline,
    SearchLimits,
    SearchSpace,
    binary_matrix,
    counts_of,
)
from pslrec.baselines._neighbours import cosine_scale, nearest_neighbours
from pslrec.checks import number_from_zero, positive_number, whole_number
from pslrec.data import Interactions
from pslrec.kernels import dense_product

# Items are solved together up to this many bytes of matrices: steps of a solver are short, and many
# items share the price of calling them.
_BATCH_BYTES = 64 * 2**20
# Sweeps end when no weight moves by more than this, or after so many.
_TOLERANCE = 1e-4
_MOST_SWEEPS = 100


@BASELINES.register("slim")
class SLIM(Baseline):
    """Each item as a sparse sum of the others: an elastic net with a zero diagonal.

    For each column x of the interaction matrix X, the weights w of the other items minimise

        1/2 |x - X w|^2 + l2 / 2 |w|^2 + l1 |w|_1,    w >= 0

    Only the `neighbours` most similar items (by cosine) may have a weight, as in the variant with
    feature selection of the reference. This makes the cost grow with
    `n_items * neighbours^2` instead of `n_items^3`, so a catalogue of 40,000 items is affordable;
    with as many neighbours as there are items the answer is that of the full problem.

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
        "neighbours": (50, 100, 200),
    }
    search_limits: ClassVar[SearchLimits] = {"neighbours": 500}

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
        self.histories = binary_matrix(interactions)
        n_items = interactions.n_items
        self._check_memory(n_items)
        by_item = self.histories.T.tocsr()
        common: csr_matrix = (by_item @ self.histories).tocsr()
        common.sort_indices()
        n_users_of_item = common.diagonal()

        def cosines(block: slice) -> np.ndarray:
            dense: np.ndarray = common[block].toarray()
            scaled: np.ndarray = dense / cosine_scale(n_users_of_item, 0.0, block)
            return scaled

        candidates = nearest_neighbours(cosines, n_items=n_items, neighbours=self.neighbours)
        candidates.sort_indices()
        # Of each item's row, the weights that its column of the answer gets.
        weights = candidates.copy()
        lengths = np.diff(candidates.indptr)
        # Items with lists of similar length together: the shorter ones are padded.
        order = np.argsort(lengths, kind="stable")
        start = 0
        while start < n_items:
            widths = lengths[order[start:]].astype(np.int64)
            counts = np.arange(1, len(widths) + 1)
            costs = 4 * counts * widths**2
            n_batch = int(np.searchsorted(costs, _BATCH_BYTES))
            stop = start + max(1, n_batch)
            self._solve(common, candidates, order[start:stop], weights.data)
            start = stop
        weights.eliminate_zeros()
        # Row i is to hold the items that i helps to explain: these gain by a user's i.
        self.weights = weights.T.tocsr()

    def _check_memory(self, n_items: int) -> None:
        user_counts, _ = counts_of(self.histories)
        n_pairs_of_users = int(np.square(user_counts.astype(np.int64)).sum())
        n_pairs = min(n_pairs_of_users, n_items**2)
        # A value and a column for each pair of items with common users, and for each candidate
        # twice.
        n_candidates = n_items * min(self.neighbours, n_items)
        needed = 8 * n_pairs + 24 * n_candidates
        if needed > self.memory_budget:
            raise ValueError(
                f"SLIM may need {needed / 2**30:.1f} GiB for these interactions, `memory_budget` "
                f"allows {self.memory_budget / 2**30:.1f} GiB; raise it, or keep fewer items"
            )

    def _solve(
        self,
        common: csr_matrix,
        candidates: csr_matrix,
        items: np.ndarray,
        answers: np.ndarray,
    ) -> None:
        """Write the weights of the candidates of some items over their similarities."""
        starts = candidates.indptr[items]
        stops = candidates.indptr[items + 1]
        lengths = stops - starts
        places = [slice(*ends) for ends in zip(starts, stops, strict=True)]
        width = int(lengths.max())
        n_batch = len(items)
        # Candidate, item, candidate: a step below takes one candidate of every item.
        systems = np.zeros((width, n_batch, width), dtype=np.float32)
        targets = np.zeros((n_batch, width), dtype=np.float32)
        for position, item in enumerate(items):
            here = slice(0, lengths[position])
            chosen = candidates.indices[places[position]]
            rows = common[chosen]
            systems[here, position, here] = rows[:, chosen].toarray()
            targets[position, here] = common[item, chosen].toarray()[0]
        weights = self._descend(
            torch.from_numpy(systems),
            torch.from_numpy(targets),
        )
        solved = weights.numpy()
        for position, place in enumerate(places):
            here = slice(0, lengths[position])
            answers[place] = solved[position, here]

    def _descend(self, systems: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Coordinate descent for many items at once: exact in one weight of each per step."""
        weights = torch.zeros_like(targets)
        # X^T (x - X w), kept up to date.
        slopes = targets.clone()
        for _ in range(_MOST_SWEEPS):
            before = weights.clone()
            for candidate, rows in enumerate(systems):
                squares = rows[:, candidate]
                old = weights[:, candidate]
                pull = slopes[:, candidate] + squares * old
                if self.non_negative:
                    shrunk = (pull - self.l1).clamp_(min=0.0)
                else:
                    shrunk = functional.softshrink(pull, self.l1)
                new = shrunk / (squares + self.l2)
                fall = old - new
                slopes.addcmul_(rows, fall[:, None])
                weights[:, candidate] = new
            moves = (weights - before).abs()
            # Without candidates there is nothing to move, nor a largest move.
            if not moves.numel() or float(moves.max()) < _TOLERANCE:
                break
        return weights

    def score(self, users: np.ndarray) -> torch.Tensor:
        """The user's row of X times the weights."""
        return torch.from_numpy(dense_product(self.histories[users], self.weights))
