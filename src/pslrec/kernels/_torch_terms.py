"""What a user's loss is at a few values of the positive's score, in torch on any device.

log-sum   log H(x), H(x) = sum_j w_j sigma(s_j - x)^k
inside    log H(x), H(x) = sum_j w_j sigma(k (s_j - x))
mean      sum_j w_j softplus(s_j - x) / sum_j w_j
"""

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from pslrec.forms import FusedForm
from pslrec.kernels._log_sum import FLOOR
from pslrec.kernels._torch_rows import TorchRows


class Nodes(NamedTuple):
    """A function of the positive's score at some nodes of each row.

    Args:
        values: shape (rows, nodes).
        slopes: minus the derivatives of the values.
        factors: how much the value at a node grows with what the terms there add up to.
        combine: gives the terms of all items, added up over the nodes by factors of shape
            (rows, nodes); shape (rows, n_items).
    """

    values: Tensor
    slopes: Tensor
    factors: Tensor
    combine: Callable[[Tensor], Tensor]


def combining(terms: Tensor) -> Callable[[Tensor], Tensor]:
    """How terms that are held, of shape (rows, nodes, n_items), are added up over the nodes."""

    def combine(shares: Tensor) -> Tensor:
        return torch.bmm(shares.to(terms.dtype).unsqueeze(1), terms).squeeze(1)

    return combine


class Terms(Protocol):
    """A function of the positive's score, made for some rows."""

    # Whether scores lie in [-1/2, 1/2].
    is_bounded: bool

    def evaluate(self, nodes: Tensor) -> Nodes:
        """The function at nodes, shape (rows, nodes)."""
        ...


class PowerTerms:
    """`log H` for the surrogates whose sum has no closed form.

    Args:
        rows: whose scores are read, and must not change.
        form: a log-sum.
        compiles: have `torch.compile` fuse what is done at a node into one walk over memory.
    """

    is_bounded = True

    def __init__(self, rows: TorchRows, form: FusedForm, *, compiles: bool = False) -> None:
        self._rows = rows
        self._exponent = form.exponent
        self._surrogate = _SURROGATES[form.surrogate]
        self._terms = self._surrogate.terms
        if compiles:
            self._terms = _compiled_terms(form.surrogate)
        self._highest = rows.highest.to(rows.precise)
        self._prepared = self._surrogate.prepare(rows.scores).unsqueeze(1)

    def evaluate(self, nodes: Tensor) -> Nodes:
        """See `Terms`."""
        surrogate = self._surrogate
        # Divided by the largest of them before the power: 1.76^200 overflows single precision.
        top = surrogate.value(surrogate.prepare(self._highest), surrogate.node(nodes))
        at = surrogate.node(nodes).float().unsqueeze(2)
        powers, terms = self._terms(self._prepared, at, top.float().unsqueeze(2), self._exponent)
        totals, slope_sums = self._rows.sums(powers, terms)
        factors = self._exponent / totals
        values = self._exponent * top.log() + totals.log()
        return Nodes(values, factors * slope_sums, factors, combining(terms))


class InsideTerms:
    """`log H` with the exponent inside of the surrogate.

    It is not smooth enough to interpolate: for nodes that are positives.

    Args:
        rows: whose scores are read, and must not change.
        form: an inside form.
    """

    is_bounded = True

    def __init__(self, rows: TorchRows, form: FusedForm) -> None:
        self._rows = rows
        self._exponent = form.exponent
        self._terms = INSIDE[form.surrogate]

    def evaluate(self, nodes: Tensor) -> Nodes:
        """See `Terms`."""
        at = nodes.float().unsqueeze(2)
        differences = self._exponent * (self._rows.scores.unsqueeze(1) - at)
        highest = self._exponent * (self._rows.highest.unsqueeze(2) - at)
        log_scale, shares, terms = self._terms(differences, highest)
        totals, slope_sums = self._rows.sums(shares, terms)
        factors = self._exponent / totals
        values = totals.log() + log_scale.squeeze(2).to(totals.dtype)
        return Nodes(values, factors * slope_sums, factors, combining(terms))


class SoftplusMeanTerms:
    """BPR; scores are inner products, so they may lie anywhere.

    Args:
        rows: whose scores are read, and must not change.
    """

    is_bounded = False

    def __init__(self, rows: TorchRows) -> None:
        self._rows = rows

    def evaluate(self, nodes: Tensor) -> Nodes:
        """See `Terms`."""
        # A node in two parts, so that it is as exact as the scores are.
        coarse = nodes.float()
        fine = (nodes - coarse.to(nodes.dtype)).float()
        differences = self._rows.scores.unsqueeze(1) - coarse.unsqueeze(2)
        differences -= fine.unsqueeze(2)
        terms = torch.sigmoid(differences)
        values = functional.softplus(differences)
        sums, slope_sums = self._rows.sums(values, terms)
        factors = (1.0 / self._rows.totals.to(nodes.dtype)).expand_as(nodes)
        return Nodes(factors * sums, factors * slope_sums, factors, combining(terms))


def whole_exponent(exponent: float) -> int | None:
    """The exponent as a whole number of at least 1, if it is one."""
    if exponent == int(exponent) and exponent >= 1:
        return int(exponent)
    return None


def power(base: Tensor, exponent: float) -> Tensor:
    """`base` to a power; by squaring where that is whole, which is many times faster.

    >>> power(torch.tensor([2.0]), 10.0)
    tensor([1024.])
    """
    left = whole_exponent(exponent)
    if left is None:
        return base.pow(exponent)
    # One factor for each bit of the exponent that is set.
    factors = []
    square = base
    while True:
        if left % 2 == 1:
            factors.append(square)
        left //= 2
        if left == 0:
            break
        square = square * square
    result = factors[0]
    for factor in factors[1:]:
        result = result * factor
    return result


class _Surrogate(Protocol):
    """A surrogate as nodes see it, on the scores of items and the nodes, both prepared."""

    def prepare(self, scores: Tensor) -> Tensor: ...

    def node(self, nodes: Tensor) -> Tensor: ...

    def value(self, scores: Tensor, nodes: Tensor) -> Tensor:
        """The activation itself."""
        ...

    def terms(
        self, scores: Tensor, nodes: Tensor, top: Tensor, exponent: float
    ) -> tuple[Tensor, Tensor]:
        """(sigma / top)^k, and its derivative by the score divided by k."""
        ...


class _Tanh:
    # 1 + tanh d = 2 q / (q + X) with q = e^(2s), X = e^(2x): one exponential per item and node.
    def prepare(self, scores: Tensor) -> Tensor:
        return (2.0 * scores).exp_()

    def node(self, nodes: Tensor) -> Tensor:
        return (2.0 * nodes).exp_()

    def value(self, scores: Tensor, nodes: Tensor) -> Tensor:
        return 2.0 * scores / (scores + nodes)

    def terms(
        self, scores: Tensor, nodes: Tensor, top: Tensor, exponent: float
    ) -> tuple[Tensor, Tensor]:
        half = 0.5 * top
        below = torch.addcmul(half * nodes, scores, half)
        sigma = scores / below
        powers = power(sigma, exponent)
        # The derivative of log sigma is 2 - sigma.
        slopes = torch.addcmul(torch.full_like(top, 2.0), sigma, -top)
        return powers, slopes.mul_(powers)


class _Atan:
    def prepare(self, scores: Tensor) -> Tensor:
        return scores

    def node(self, nodes: Tensor) -> Tensor:
        return nodes

    def value(self, scores: Tensor, nodes: Tensor) -> Tensor:
        return (1.0 + torch.atan(scores - nodes)).clamp(min=FLOOR)

    def terms(
        self, scores: Tensor, nodes: Tensor, top: Tensor, exponent: float
    ) -> tuple[Tensor, Tensor]:
        differences = scores - nodes
        sigma = torch.atan(differences).add_(1.0).clamp_(min=FLOOR).div_(top)
        lower, powers = _powers(sigma, exponent)
        squares = torch.addcmul(top, differences.square_(), top)
        return powers, lower.div_(squares)


class _Relu:
    def prepare(self, scores: Tensor) -> Tensor:
        return scores

    def node(self, nodes: Tensor) -> Tensor:
        return nodes

    def value(self, scores: Tensor, nodes: Tensor) -> Tensor:
        return (1.0 + scores - nodes).clamp(min=FLOOR)

    def terms(
        self, scores: Tensor, nodes: Tensor, top: Tensor, exponent: float
    ) -> tuple[Tensor, Tensor]:
        raw = (scores - nodes).add_(1.0)
        is_free = raw >= FLOOR
        sigma = raw.clamp_(min=FLOOR).div_(top)
        lower, powers = _powers(sigma, exponent)
        return powers, lower.div_(top).mul_(is_free)


class _Softplus:
    # 1 + e^d = 1 + q Y with q = e^s, Y = e^-x
    def prepare(self, scores: Tensor) -> Tensor:
        return scores.exp()

    def node(self, nodes: Tensor) -> Tensor:
        return (-nodes).exp_()

    def value(self, scores: Tensor, nodes: Tensor) -> Tensor:
        return 1.0 + scores * nodes

    def terms(
        self, scores: Tensor, nodes: Tensor, top: Tensor, exponent: float
    ) -> tuple[Tensor, Tensor]:
        grown = scores * (nodes / top)
        sigma = grown + 1.0 / top
        lower, powers = _powers(sigma, exponent)
        return powers, lower.mul_(grown)


def _powers(base: Tensor, exponent: float) -> tuple[Tensor, Tensor]:
    """`base` to the power of `exponent - 1`, in memory of its own, and to that of `exponent`."""
    if exponent == 1.0:
        return torch.ones_like(base), base
    lower = power(base, exponent - 1.0)
    if lower is base:
        lower = base.clone()
    return lower, base * lower


_SURROGATES: dict[str, _Surrogate] = {
    "tanh": _Tanh(),
    "atan": _Atan(),
    "relu": _Relu(),
    "softplus": _Softplus(),
}


def _tanh_inside(differences: Tensor, highest: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    # 1 + tanh y = 2 / (1 + e^-2y), which vanishes in single precision where y is far below 0.
    log_scale = functional.logsigmoid(2.0 * highest)
    shares = torch.exp(functional.logsigmoid(2.0 * differences) - log_scale)
    terms = 2.0 * torch.sigmoid(-2.0 * differences) * shares
    return log_scale + math.log(2.0), shares, terms


def _softplus_inside(differences: Tensor, highest: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    # 1 + e^y, which overflows where y is far above 0.
    log_scale = functional.softplus(highest)
    shares = torch.exp(functional.softplus(differences) - log_scale)
    return log_scale, shares, torch.sigmoid(differences) * shares


def _relu_inside(differences: Tensor, highest: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    raw = differences + 1.0
    return torch.zeros_like(highest), raw.clamp(min=FLOOR), (raw >= FLOOR).to(raw.dtype)


def _atan_inside(differences: Tensor, highest: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    # Not positive below y = -1.557: where a sum is not, its logarithm is no number, and neither is
    # the loss.
    shares = torch.atan(differences) + 1.0
    return torch.zeros_like(highest), shares, 1.0 / (1.0 + differences**2)


# Of y = k (s - x) and the largest y: the logarithm of a scale, and sigma(y) and its derivative
# divided by that scale.
INSIDE: dict[str, Callable[[Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]] = {
    "tanh": _tanh_inside,
    "atan": _atan_inside,
    "relu": _relu_inside,
    "softplus": _softplus_inside,
}


@cache
def _compiled_terms(surrogate: str) -> Callable[..., tuple[Tensor, Tensor]]:
    # Kept: compiling takes seconds, and blocks differ in nothing but their sizes.
    compiled: Callable[..., tuple[Tensor, Tensor]] = torch.compile(
        _SURROGATES[surrogate].terms, dynamic=True
    )
    return compiled
