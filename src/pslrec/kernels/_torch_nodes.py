"""One function per user between Chebyshev nodes, for all users of a block at once, in torch.

The twin of `native/catalog_nodes.hpp` and `native/catalog_interpolation.hpp`.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from pslrec.kernels._catalog import FIRST_NODES
from pslrec.kernels._torch_rows import TorchRows
from pslrec.kernels._torch_terms import Nodes, Terms

MOST_NODES = 64  # beyond these, every positive is a node of its own

MakeTerms = Callable[[TorchRows], Terms]


def interpolated_rows(
    rows: TorchRows,
    make_terms: MakeTerms,
    *,
    tolerance: float,
    n_nodes: int = FIRST_NODES,
) -> tuple[Tensor, Tensor]:
    """The loss of each positive, shape (rows, longest), and the gradient of their weighted sum.

    Args:
        rows: whose scores are read only.
        make_terms: gives the function that is interpolated.
        tolerance: of the interpolation, relative to the loss.
        n_nodes: tried first; doubled for rows that need more.
    """
    if rows.positives.shape[1] <= n_nodes or n_nodes > MOST_NODES:
        return rows_at_positives(rows, make_terms)
    between = _Between(rows, n_nodes)
    terms = make_terms(rows)
    found = terms.evaluate(between.nodes)
    is_open = ~between.is_resolved(found, tolerance, is_bounded=terms.is_bounded)
    values, gradient = between.spread(found)
    del found, terms
    if has_any(is_open):
        _refine(rows, make_terms, is_open, values, gradient, tolerance, 2 * n_nodes)
    return values, gradient


def _refine(
    rows: TorchRows,
    make_terms: MakeTerms,
    is_open: Tensor,
    values: Tensor,
    gradient: Tensor,
    tolerance: float,
    n_nodes: int,
) -> None:
    """Write the results of the rows that need more nodes over what was found with fewer."""
    chosen = is_open.nonzero().squeeze(1)
    # As many numbers at a time as the first nodes took of all rows.
    most = max(len(rows.scores) * FIRST_NODES // n_nodes, 1)
    for some in chosen.split(most):
        part_values, part_gradient = interpolated_rows(
            rows.select(some), make_terms, tolerance=tolerance, n_nodes=n_nodes
        )
        values[some] = part_values
        gradient[some] = part_gradient


def rows_at_positives(rows: TorchRows, make_terms: MakeTerms) -> tuple[Tensor, Tensor]:
    """The same without interpolation: every positive is a node, some at a time."""
    terms = make_terms(rows)
    scores = rows.positive_scores.to(rows.precise)
    values = torch.empty_like(scores)
    gradient = torch.zeros_like(rows.scores)
    slopes = torch.empty_like(scores)
    n_positives = scores.shape[1]
    for first in range(0, n_positives, FIRST_NODES):
        some = slice(first, min(first + FIRST_NODES, n_positives))
        found = terms.evaluate(scores[:, some])
        values[:, some] = found.values
        slopes[:, some] = found.slopes
        gradient += _combined(found, rows.weights[:, some])
    _add_positives(gradient, rows, slopes)
    return values, gradient


def has_any(mask: Tensor) -> bool:
    """Whether any is true; the only place where the host waits for the device within a row."""
    return bool(mask.any())


class _Between:
    """Chebyshev nodes between the lowest and the highest positive of each row."""

    def __init__(self, rows: TorchRows, n_nodes: int) -> None:
        self._rows = rows
        self._n_nodes = n_nodes
        scores = rows.positive_scores.to(rows.precise)
        lowest = scores.amin(dim=1, keepdim=True)
        highest = scores.amax(dim=1, keepdim=True)
        middle = 0.5 * (lowest + highest)
        self._half = 0.5 * (highest - lowest)
        counting = torch.arange(n_nodes, dtype=scores.dtype, device=scores.device)
        angles = math.pi * (2.0 * counting + 1.0) / (2.0 * n_nodes)
        # T_q at the r-th node, and what makes coefficients of a series from values at the nodes.
        cosines = torch.cos(counting.unsqueeze(1) * angles)
        doubled = torch.full_like(counting, 2.0)
        doubled[0] = 1.0
        self._to_series = cosines * (doubled / n_nodes).unsqueeze(1)
        self._gap = 1.0 - math.cos(math.pi / (2.0 * n_nodes))
        self.nodes = middle + self._half * cosines[1]
        # Where all positives have one score, all nodes stand there, and any place will do.
        width = torch.where(self._half > 0, self._half, torch.ones_like(self._half))
        places = ((scores - middle) / width).clamp(-1.0, 1.0)
        # T_q of every positive, shape (rows, longest, nodes).
        self._polynomials = torch.cos(places.acos().unsqueeze(2) * counting)

    def is_resolved(self, found: Nodes, tolerance: float, *, is_bounded: bool) -> Tensor:
        """Whether the last two coefficients say that those left out are small, shape (rows,)."""
        value_tails = self._series(found.values)[:, -2:].abs().sum(dim=1)
        slope_tails = self._series(found.slopes)[:, -2:].abs().sum(dim=1)
        sizes = found.values.abs()
        if is_bounded:
            value_sizes = sizes.amax(dim=1).clamp(min=1.0)
        else:
            # Losses of positives far apart are not of one size.
            value_sizes = sizes.amin(dim=1).clamp(min=1.0)
        slope_sizes = found.slopes.abs().amax(dim=1)
        # A slope may be a hundred times less exact than a value: it only steers.
        resolved = value_tails <= tolerance * value_sizes
        resolved &= slope_tails <= 100.0 * tolerance * slope_sizes
        if not is_bounded:
            # A bend near the end of a long interval, as sharp as the unit of the scores, would
            # stand unseen between the end and the first node.
            resolved &= self._half.squeeze(1) * self._gap <= 0.25
        # More nodes do not make a number of what is none; the loss shows it.
        return resolved | ~torch.isfinite(value_tails + slope_tails)

    def spread(self, found: Nodes) -> tuple[Tensor, Tensor]:
        """What the nodes mean for the positives: values, and the gradient of all items."""
        rows = self._rows
        weights = rows.weights.to(self._polynomials.dtype)
        sums = torch.einsum("up,upq->uq", weights, self._polynomials)
        multiplicity = sums @ self._to_series
        values = torch.einsum("upq,uq->up", self._polynomials, self._series(found.values))
        slopes = torch.einsum("upq,uq->up", self._polynomials, self._series(found.slopes))
        gradient = _combined(found, multiplicity)
        _add_positives(gradient, rows, slopes)
        return values, gradient

    def _series(self, values: Tensor) -> Tensor:
        return values @ self._to_series.T


def _combined(found: Nodes, multiplicity: Tensor) -> Tensor:
    """Terms of the nodes, added up by how many positives each node stands for."""
    return found.combine(found.factors * multiplicity)


def _add_positives(gradient: Tensor, rows: TorchRows, slopes: Tensor) -> None:
    rows.add_at_positives(gradient, -rows.weights * slopes.to(gradient.dtype))
