"""The row operation of divided items in compiled code: sums over the own items, then the gradient.

In the place of the walks over memory that `_torch_operations` and `_torch_terms` make; what is
between the two phases is theirs.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from pslrec.forms import FusedForm
from pslrec.kernels._log_sum import SURROGATES
from pslrec.kernels._native import native
from pslrec.kernels._torch_rows import TorchRows
from pslrec.kernels._torch_terms import Nodes


class _Special(NamedTuple):
    """Items that are not negatives of weight 1, as the compiled functions read them."""

    offsets: np.ndarray
    items: np.ndarray
    weights: np.ndarray


def _special_of(rows: TorchRows) -> _Special:
    places = np.arange(len(rows.scores) + 1)
    return _Special(
        np.searchsorted(rows.special.rows.numpy(), places),
        rows.special.items.numpy().astype(np.int32),
        rows.special.weights.numpy(),
    )


def compiled_moments(rows: TorchRows, top: Tensor, exponent: int) -> Tensor:
    """sum_j w_j t_j^m of the own items for m = 1 .. k, t = (1/2 + s) / top; shape (rows, k).

    Args:
        rows: whose scores are read.
        top: shape (rows, 1).
        exponent: k.
    """
    found = torch.empty((len(rows.scores), exponent), dtype=torch.float64)
    native.catalog_moments(
        exponent, rows.scores.numpy(), *_special_of(rows), _single(top), found.numpy()
    )
    return found


def compiled_polynomial(rows: TorchRows, top: Tensor, coefficients: Tensor) -> None:
    """w_j sum_m coefficients[:, m] t_j^m in place of the scores.

    Args:
        rows: whose scores are overwritten.
        top: as above.
        coefficients: shape (rows, k), float32.
    """
    native.catalog_polynomials(
        rows.scores.numpy(), *_special_of(rows), _single(top), coefficients.contiguous().numpy()
    )


class CompiledPowerTerms:
    """`PowerTerms` with both walks over the items compiled; see `Terms`.

    Args:
        rows: whose scores are read, and must not change.
        form: a log-sum.
    """

    is_bounded = True

    def __init__(self, rows: TorchRows, form: FusedForm) -> None:
        self._rows = rows
        self._exponent = form.exponent
        self._surrogate = SURROGATES.index(form.surrogate)
        self._special = _special_of(rows)
        self._highest = _single(rows.highest)

    def evaluate(self, nodes: Tensor) -> Nodes:
        """See `Terms`."""
        places = nodes.contiguous().numpy()
        sums = torch.empty((2, *nodes.shape), dtype=torch.float64)
        # The same in all processes, as they follow from the highest scores.
        tops = torch.empty(nodes.shape, dtype=torch.float64)
        native.catalog_node_sums(
            *self._given, places, sums[0].numpy(), sums[1].numpy(), tops.numpy()
        )
        self._rows.across.sum(sums)
        totals, slope_sums = sums
        factors = self._exponent / totals
        values = self._exponent * tops.log() + totals.log()

        def combine(shares: Tensor) -> Tensor:
            gradient = torch.empty_like(self._rows.scores)
            given = shares.contiguous().numpy()
            native.catalog_node_gradients(*self._given, places, given, gradient.numpy())
            return gradient

        return Nodes(values, factors * slope_sums, factors, combine)

    @property
    def _given(self) -> tuple[object, ...]:
        scores = self._rows.scores.numpy()
        return self._surrogate, self._exponent, scores, *self._special, self._highest


def _single(column: Tensor) -> np.ndarray:
    return column.squeeze(1).float().numpy()
