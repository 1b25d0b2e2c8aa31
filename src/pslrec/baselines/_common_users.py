"""How many users items have in common, and the elastic nets that explain items by each other."""

import numpy as np
from scipy.sparse import csr_matrix

from pslrec.baselines._base import binary_matrix, counts_of
from pslrec.baselines._neighbours import cosine_scale, nearest_neighbours
from pslrec.data import Interactions
from pslrec.kernels import elastic_nets


class CommonUsers:
    """The users that each pair of items has in common, counted once for any number of penalties.

    Args:
        interactions: repeated pairs count once.

    >>> log = Interactions.from_ids(["ann", "ann", "bob", "bob"], ["tea", "milk", "tea", "milk"])
    >>> common = CommonUsers(log)
    >>> common.n_pairs_above(1.0), common.n_pairs_above(2.0)
    (2, 0)
    >>> common.weights(l1=1.0, l2=2.0).toarray()
    array([[0.  , 0.25],
           [0.25, 0.  ]], dtype=float32)
    """

    def __init__(self, interactions: Interactions) -> None:
        self.histories = binary_matrix(interactions)
        counts: csr_matrix = (self.histories.T.tocsr() @ self.histories).tocsr()
        self._counts = counts

    @staticmethod
    def memory_needed(interactions: Interactions) -> int:
        """Bytes that counting may take, by the worst case of histories that never meet.

        Args:
            interactions: the training pairs.
        """
        user_counts, _ = counts_of(binary_matrix(interactions))
        n_pairs_of_users = int(np.square(user_counts.astype(np.int64)).sum())
        n_pairs = min(n_pairs_of_users, interactions.n_items**2)
        # A value and a column for each pair of items.
        return 8 * n_pairs

    def n_pairs_above(self, l1: float) -> int:
        """Pairs of different items, in both orders, with more common users than this.

        Only these can have a positive weight under a penalty of `l1`.
        """
        n_pairs = np.count_nonzero(self._counts.data > l1)
        n_items = np.count_nonzero(self._counts.diagonal() > l1)
        return int(n_pairs - n_items)

    def nearest(self, neighbours: int) -> csr_matrix:
        """The most similar items of each item by cosine, in a row per item.

        Args:
            neighbours: that a row has at most; of equally similar items, the lower rows.
        """
        n_users_of_item = self._counts.diagonal()

        def cosines(block: slice) -> np.ndarray:
            dense: np.ndarray = self._counts[block].toarray()
            scaled: np.ndarray = dense / cosine_scale(n_users_of_item, 0.0, block)
            return scaled

        n_items = self._counts.shape[0]
        nearest = nearest_neighbours(cosines, n_items=n_items, neighbours=neighbours)
        nearest.sort_indices()
        return nearest

    def weights(
        self,
        *,
        l1: float,
        l2: float,
        non_negative: bool = True,
        candidates: csr_matrix | None = None,
    ) -> csr_matrix:
        """The weights of SLIM: row i has the items that i helps to explain.

        Args:
            l1: strength of the absolute penalty, in units of common users.
            l2: strength of the squared penalty, in the same units.
            non_negative: whether weights below 0 are ruled out.
            candidates: in row i the items that may explain i; all by default.
        """
        if candidates is None:
            candidates = self._others(l1, non_negative=non_negative)
        values = elastic_nets(self._counts, candidates, l1=l1, l2=l2, non_negative=non_negative)
        parts = (values, candidates.indices, candidates.indptr)
        # A copy, as the next line changes the arrays in place, and candidates may be used again.
        explained_by = csr_matrix(parts, shape=candidates.shape, copy=True)
        explained_by.eliminate_zeros()
        # Row i of this matrix has what i is explained by.
        return explained_by.T.tocsr()

    def _others(self, l1: float, *, non_negative: bool) -> csr_matrix:
        """All items with common users that can have a weight.

        Where weights cannot be negative, each can only lower the pull of the others, which begins at
        the number of common users; so what does not exceed `l1` there never does.
        """
        counts = self._counts
        n_items = counts.shape[0]
        numbers = np.arange(n_items, dtype=counts.indices.dtype)
        rows = np.repeat(numbers, np.diff(counts.indptr))
        is_other = rows != counts.indices
        if non_negative:
            is_other &= counts.data > l1
        lengths = np.bincount(rows[is_other], minlength=n_items)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        parts = (counts.data[is_other], counts.indices[is_other], offsets)
        others = csr_matrix(parts, shape=counts.shape)
        # The order of the descent, which shows in the last digits.
        others.sort_indices()
        return others
