"""The row operations of exact training in torch: scores in, losses out, the gradient in place.

The twins of those in `native`: a closed form for exp, one for relu with a whole exponent, and
interpolation for everything else that is smooth in the positive's score.
"""

import math

import torch
from torch import Tensor

from pslrec.forms import FusedForm
from pslrec.kernels._compiled_phases import (
    CompiledPowerTerms,
    compiled_moments,
    compiled_polynomial,
)
from pslrec.kernels._torch_nodes import has_any, interpolated_rows, rows_at_positives
from pslrec.kernels._torch_rows import TorchRows
from pslrec.kernels._torch_terms import (
    INSIDE,
    InsideTerms,
    PowerTerms,
    SoftplusMeanTerms,
    Terms,
    whole_exponent,
)

MOST_MOMENTS = 256
# Of a weight of 0; far below what any score adds to or takes from it.
LEAST_LOGARITHM = -1e30
# Numbers of a row's width that an operation holds beside the scores.
EXPONENTIAL_WIDTH = 1
BINOMIAL_WIDTH = 3
# The same by node: powers, their parts and slopes.
NODE_WIDTH = 5

_SMOOTH = ("tanh", "atan", "relu", "softplus")


def has_rows_for(form: FusedForm) -> bool:
    """Whether a form can be computed here."""
    if form.kind == "mean":
        return form.surrogate == "softplus"
    if form.kind == "inside":
        return form.surrogate in INSIDE
    return form.surrogate == "exp" or form.surrogate in _SMOOTH


def torch_row_values(
    rows: TorchRows, form: FusedForm, tolerance: float, *, compiles: bool = False
) -> Tensor:
    """The loss of each positive before its weight, shape (rows, longest).

    The scores become the gradient of the weighted sum of these, in place.

    Args:
        rows: scores and what their items are.
        form: one that `has_rows_for`; its factor is left to the caller.
        tolerance: of the interpolation, relative to the loss.
        compiles: have `torch.compile` fuse what is done at a node.
    """
    if is_exponential(form):
        return _exponential_rows(rows, form.exponent)
    if is_binomial(form):
        return _binomial_rows(rows, form, tolerance)
    values, gradient = _smooth_rows(rows, form, tolerance, compiles=compiles)
    rows.scores.copy_(gradient)
    return values


def is_exponential(form: FusedForm) -> bool:
    """Whether one sum serves all positives of a row."""
    return form.kind == "log-sum" and form.surrogate == "exp"


def is_binomial(form: FusedForm) -> bool:
    """Whether the binomial theorem gives the sum in closed form."""
    whole = whole_exponent(form.exponent)
    if form.kind != "log-sum" or form.surrogate != "relu" or whole is None:
        return False
    return 2 <= whole <= MOST_MOMENTS


def _smooth_rows(
    rows: TorchRows, form: FusedForm, tolerance: float, *, compiles: bool = False
) -> tuple[Tensor, Tensor]:
    # So near to a straight line the kink of relu is felt, however large the other terms are.
    has_kink = form.surrogate == "relu" and form.exponent < 2.0

    def make_terms(some: TorchRows) -> Terms:
        if form.kind == "mean":
            return SoftplusMeanTerms(some)
        if form.kind == "inside":
            return InsideTerms(some, form)
        if some.is_compiled and not has_kink:
            return CompiledPowerTerms(some, form)
        return PowerTerms(some, form, compiles=compiles)

    # Inside, an exponent makes every surrogate bend within a small part of the interval.
    if has_kink or form.kind == "inside":
        return rows_at_positives(rows, make_terms)
    return interpolated_rows(rows, make_terms, tolerance=tolerance)


def _exponential_rows(rows: TorchRows, exponent: float) -> Tensor:
    """For exp, log H is a straight line, so one sum serves all positives."""
    scores = rows.scores
    scores.mul_(exponent)
    hidden, items, weights = rows.special
    # Not -inf: a row may have no negative among the items of this process.
    scores[hidden, items] += weights.log().clamp(min=LEAST_LOGARITHM)
    # torch's own softmax is one walk over memory where its parts would be five.
    shares = torch.softmax(scores, dim=1)
    highest = scores.amax(dim=1, keepdim=True).to(rows.precise)
    own_log_sums = highest - shares.amax(dim=1, keepdim=True).to(rows.precise).log()
    log_sums = _log_sums_across(rows, own_log_sums)
    values = log_sums - exponent * rows.positive_scores.to(rows.precise)
    # Shares of the sum over all items, and not of the own ones.
    factors = (own_log_sums - log_sums).exp().to(scores.dtype)
    factors *= exponent * rows.weights.sum(dim=1, keepdim=True)
    torch.mul(shares, factors, out=scores)
    rows.add_at_positives(scores, -exponent * rows.weights)
    return values


def _log_sums_across(rows: TorchRows, own: Tensor) -> Tensor:
    """Logarithms of sums over all items, from those over the items of this process."""
    highest = own.clone()
    rows.across.maximum(highest)
    sums = (own - highest).exp()
    rows.across.sum(sums)
    # Nothing anywhere has no logarithm, and the loss shows it.
    is_nothing = highest < 0.5 * LEAST_LOGARITHM
    return (highest + sums.log()).masked_fill(is_nothing, -torch.inf)


def _binomial_rows(rows: TorchRows, form: FusedForm, tolerance: float) -> Tensor:
    """For relu to a whole power k, by the binomial theorem.

    With a = 1/2 + s and b = 1/2 - x, 1 + d = a + b, and H(x) is a sum of k + 1 moments of a. Every
    term is positive: nothing cancels.
    """
    of_positives = rows.positive_scores.to(rows.precise)
    highest = rows.highest.to(rows.precise)
    top = 0.5 + highest
    most = of_positives.amax(dim=1, keepdim=True)
    # Where even the largest 1 + d is next to nothing, the clamp is felt, which this form has not.
    is_clear = (top > 1e-5) & (top + 0.5 - most > 1e-4)
    is_unclear = ~is_clear.squeeze(1) & torch.isfinite(top + most).squeeze(1)
    unclear: tuple[Tensor, Tensor, Tensor] | None = None
    if has_any(is_unclear):
        chosen = is_unclear.nonzero().squeeze(1)
        unclear = (chosen, *_smooth_rows(rows.select(chosen), form, tolerance))
    values = _by_moments(rows, of_positives, top, int(form.exponent))
    if unclear is not None:
        chosen, own_values, own_gradient = unclear
        values[chosen] = own_values
        rows.scores[chosen] = own_gradient
    return values


def _by_moments(rows: TorchRows, of_positives: Tensor, top: Tensor, exponent: int) -> Tensor:
    if not rows.is_compiled:
        # t = (1/2 + s) / top in place of the scores.
        rows.scores.add_(0.5).div_(top.to(rows.scores.dtype)).clamp_(0.0, 1.0)
    moments = _moments(rows, top, exponent)
    rest = (0.5 - of_positives).clamp(min=0.0)
    whole = top + rest
    # Shapes (rows, longest, k + 1) and (rows, longest, k).
    upper = _binomial(exponent, top / whole, rest / whole)
    lower = _binomial(exponent - 1, top / whole, rest / whole)
    sums = torch.einsum("upm,um->up", upper, moments)
    slopes = torch.einsum("upm,um->up", lower, moments[:, :exponent])
    factors = exponent / (whole * sums)
    values = exponent * whole.log() + sums.log()
    weighted = rows.weights.to(factors.dtype) * factors
    coefficients = torch.einsum("up,upm->um", weighted, lower).to(rows.scores.dtype)
    if rows.is_compiled:
        compiled_polynomial(rows, top, coefficients)
    else:
        _polynomial(rows.scores, coefficients)
        rows.weigh(rows.scores.unsqueeze(1))
    rows.add_at_positives(rows.scores, -weighted * slopes)
    return values


def _moments(rows: TorchRows, top: Tensor, exponent: int) -> Tensor:
    """sum_j w_j t_j^m for m = 0 .. k, shape (rows, k + 1)."""
    if rows.is_compiled:
        moments = compiled_moments(rows, top, exponent)
    else:
        moments = _moments_in_torch(rows, rows.scores, exponent)
    rows.across.sum(moments)
    return torch.cat([rows.totals.to(rows.precise), moments], dim=1)


def _moments_in_torch(rows: TorchRows, shares: Tensor, exponent: int) -> Tensor:
    powers = shares.clone()
    # A weight goes into every power alike.
    rows.weigh(powers.unsqueeze(1))
    found = [powers.sum(dim=1)]
    for _ in range(1, exponent):
        powers.mul_(shares)
        found.append(powers.sum(dim=1))
    return torch.stack(found, dim=1).to(rows.precise)


def _binomial(n: int, alpha: Tensor, beta: Tensor) -> Tensor:
    """The probabilities C(n, m) alpha^m beta^(n - m), m = 0 .. n, in a new last dimension."""
    logs = [math.lgamma(n + 1) - math.lgamma(m + 1) - math.lgamma(n - m + 1) for m in range(n + 1)]
    log_counts = torch.tensor(logs, dtype=alpha.dtype, device=alpha.device)
    ups = torch.arange(n + 1, dtype=alpha.dtype, device=alpha.device)
    # `xlogy` knows that 0 log 0 is 0.
    exponents = torch.xlogy(ups, alpha.unsqueeze(-1)) + torch.xlogy(n - ups, beta.unsqueeze(-1))
    return exponents.add_(log_counts).exp_()


def _polynomial(values: Tensor, coefficients: Tensor) -> None:
    """sum_m coefficients[:, m] * values^m in place of the values, by Horner's rule."""
    degree = coefficients.shape[1] - 1
    result = coefficients[:, degree : degree + 1].expand_as(values).contiguous()
    for m in range(degree - 1, -1, -1):
        torch.addcmul(coefficients[:, m : m + 1], result, values, out=result)
    values.copy_(result)
