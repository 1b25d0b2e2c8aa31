"""The fused forms as sums over items, so that processes which hold some items each can add up.

A loss is a function of sums H(x) = Σ_j w_j g(s_j - x), x the score of a positive. `Form` gives g and
its derivative for the items of one process; everything that is left is done on the sums.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from pslrec.forms import FusedForm
from pslrec.losses import DivergenceError

# An activation never counts as less, as in the losses.
FLOOR = 1e-7


class _Surrogate(NamedTuple):
    """log σ(d) and its derivative."""

    log_value: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]


def _floored(value: Tensor) -> Tensor:
    return value.clamp(min=FLOOR)


def _relu_slope(difference: Tensor) -> Tensor:
    value = difference + 1.0
    return (value >= FLOOR) / _floored(value)


def _atan_slope(difference: Tensor) -> Tensor:
    value = torch.atan(difference) + 1.0
    return (value >= FLOOR) / ((1.0 + difference**2) * _floored(value))


# Written here again, as the kernels have them, because neither knows the losses it stands for.
SURROGATES = {
    "exp": _Surrogate(lambda d: d, torch.ones_like),
    "tanh": _Surrogate(
        lambda d: math.log(2.0) + functional.logsigmoid(2.0 * d),
        lambda d: 2.0 * torch.sigmoid(-2.0 * d),
    ),
    "atan": _Surrogate(lambda d: torch.log(_floored(torch.atan(d) + 1.0)), _atan_slope),
    "relu": _Surrogate(lambda d: torch.log(_floored(d + 1.0)), _relu_slope),
    "softplus": _Surrogate(lambda d: -functional.logsigmoid(-d), torch.sigmoid),
}


class Form:
    """A fused form at some x: what each negative adds to the sum, and what the sum becomes.

    Args:
        form: as the loss names it.
    """

    def __init__(self, form: FusedForm) -> None:
        self._form = form
        self._surrogate = SURROGATES[form.surrogate]
        # Inside, atan may be negative, and then it has no logarithm.
        self._is_plain = form.kind == "inside" and form.surrogate == "atan"

    @property
    def is_mean(self) -> bool:
        """Whether the loss is a mean, and not the logarithm of a sum."""
        return self._form.kind == "mean"

    def tops(self, highest: Tensor) -> Tensor:
        """The logarithm by which terms are divided, so that none overflows.

        Args:
            highest: the largest difference that may come.
        """
        if self.is_mean or self._is_plain:
            return torch.zeros_like(highest)
        return self._logarithms(highest)

    def terms(self, differences: Tensor, tops: Tensor) -> tuple[Tensor, Tensor]:
        """g(d) and its derivative, both divided by exp(top).

        Args:
            differences: d, of any shape.
            tops: as `tops` gives them, of the same shape or one that spreads to it.
        """
        exponent = self._form.exponent
        if self.is_mean:
            return self._surrogate.log_value(differences), self._surrogate.slope(differences)
        if self._is_plain:
            scaled = exponent * differences
            return torch.atan(scaled) + 1.0, exponent / (1.0 + scaled**2)
        values = torch.exp(self._logarithms(differences) - tops)
        inner = differences
        if self._form.kind == "inside":
            inner = exponent * differences
        return values, exponent * self._surrogate.slope(inner) * values

    def values(self, sums: Tensor, tops: Tensor, totals: Tensor) -> tuple[Tensor, Tensor]:
        """The loss of a positive from its sum, and by how much it grows with the sum.

        Args:
            sums: Σ_j w_j g(d_j), divided by exp(top).
            tops: as above.
            totals: Σ_j w_j.
        """
        if self.is_mean:
            return sums / totals, 1.0 / totals
        if self._is_plain and not bool((sums > 0.0).all()):
            raise DivergenceError(
                f"surrogate `atan` in the inside form sums to {sums.min().item():.4g}, which has "
                'no logarithm; use `form="outside"` or a `temperature` above 0.65'
            )
        return torch.log(sums) + tops, 1.0 / sums

    def _logarithms(self, differences: Tensor) -> Tensor:
        exponent = self._form.exponent
        if self._form.kind == "inside":
            return self._surrogate.log_value(exponent * differences)
        return exponent * self._surrogate.log_value(differences)


def takes_shards(form: FusedForm | None) -> bool:
    """Whether a form can be computed from sums over divided items."""
    return form is not None and form.surrogate in SURROGATES
