"""The baseline below which nothing counts: the same list for everybody."""

import numpy as np
import torch
from torch import Tensor

from pslrec.baselines._base import BASELINES, Baseline, binary_matrix
from pslrec.data import Interactions


@BASELINES.register("popularity")
class Popularity(Baseline):
    """Items by the number of users who have them.

    >>> log = Interactions.from_ids(["ann", "bob", "bob"], ["tea", "tea", "milk"])
    >>> Popularity().fit(log).score(np.array([0]))
    tensor([[1., 2.]])
    """

    def _fit(self, interactions: Interactions) -> None:
        counts = binary_matrix(interactions).sum(axis=0)
        # Scipy gives a matrix of one row.
        self.counts = torch.from_numpy(counts.A1)

    def score(self, users: np.ndarray) -> Tensor:
        """The same counts for every user."""
        return self.counts.repeat(len(users), 1)
