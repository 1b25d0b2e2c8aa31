"""EASE with the penalty that dropout of inputs amounts to."""

from typing import ClassVar

import numpy as np
from scipy.sparse import csr_matrix

from pslrec.baselines._base import BASELINES, SearchSpace, counts_of
from pslrec.baselines.ease import EASE
from pslrec.errors import ConfigError


@BASELINES.register("edlae")
class EDLAE(EASE):
    """A linear autoencoder trained to restore items that dropout has hidden from its input.

    In expectation, hiding each interaction with probability p adds `p / (1 - p) n_i` to the
    diagonal of `X^T X`, n_i being the number of users of item i: popular items are held back more,
    where EASE holds all back alike. With P the inverse of
    `X^T X + p / (1 - p) diag(X^T X) + regularization I` the answer is `B_ij = -P_ij / P_jj` off
    the diagonal and 0 on it.

    Args:
        dropout: p, at least 0 and below 1; 0 gives EASE.
        regularization: the same for all items, in units of interactions.
        memory_budget: bytes that fitting may use; a catalogue that needs more is refused before
            anything is computed.

    >>> from pslrec.data import Interactions
    >>> log = Interactions.from_ids(["ann", "ann", "bob"], ["tea", "milk", "tea"])
    >>> EDLAE(dropout=0.5, regularization=1.0).fit(log).score(np.array([1]))
    tensor([[0.2000, 0.0000]])

    Reference: Steck, Autoencoders that don't overfit towards the identity, NeurIPS 2020.
    """

    search_space: ClassVar[SearchSpace] = {
        "dropout": (0.0, 0.1, 0.25, 0.4, 0.6, 0.8),
        "regularization": (1.0, 3.0, 10.0, 30.0, 100.0, 300.0),
    }

    def __init__(
        self,
        *,
        dropout: float = 0.25,
        regularization: float = 30.0,
        memory_budget: int = 8 * 2**30,
    ) -> None:
        super().__init__(regularization=regularization, memory_budget=memory_budget)
        # Written so that NaN is refused as well.
        if not 0.0 <= dropout < 1.0:
            raise ConfigError(f"`dropout` must be at least 0 and below 1, got {dropout}")
        self.dropout = dropout

    def _penalty(self, histories: csr_matrix) -> np.ndarray:
        _, item_counts = counts_of(histories)
        odds = self.dropout / (1.0 - self.dropout)
        penalty: np.ndarray = odds * item_counts + super()._penalty(histories)
        return penalty
