"""Surrogate activations of the 0/1 step, applied to differences of scores.

A difference is a negative's score less its positive's. With half cosines it lies in [-1, 1]. All
functions work elementwise on tensors of any shape.
"""

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from pslrec.losses._base import DivergenceError
from pslrec.registry import Registry

# An activation never counts as less: logarithm and gradient stay finite where the formula has 0 or
# less.
FLOOR = 1e-7

SURROGATES: "Registry[type[Surrogate]]" = Registry("surrogate")


class Surrogate(ABC):
    """An increasing activation σ that stands for the step function δ(d) = [d >= 0].

    >>> relu = SURROGATES["relu"]()
    >>> relu.value(torch.tensor([-1.0, 0.0, 1.0]))
    tensor([1.0000e-07, 1.0000e+00, 2.0000e+00])
    """

    is_tight: ClassVar[bool] = True  # δ <= σ <= exp on [-1, 1], the condition of the paper's lemma

    @abstractmethod
    def value(self, difference: Tensor) -> Tensor:
        """σ(d)."""

    @abstractmethod
    def log_value(self, difference: Tensor) -> Tensor:
        """Logarithm of σ(d), computed without σ itself where that could overflow or vanish."""

    @abstractmethod
    def derivative(self, difference: Tensor) -> Tensor:
        """σ'(d)."""

    def weight(self, difference: Tensor, temperature: float) -> Tensor:
        """The weight of a negative before normalisation: σ'(d) σ(d)^(1/τ - 1) / τ, Figure 1b."""
        power = torch.exp(self.log_value(difference) * (1.0 / temperature - 1.0))
        return self.derivative(difference) * power / temperature

    def log_sum(self, differences: Tensor, weights: Tensor | None = None) -> Tensor:
        """Logarithm of Σ_j w_j σ(x_j) over the last axis, for any real x: the inside form.

        Weights are 1 if not given.
        """
        logarithms = self.log_value(differences)
        if weights is not None:
            logarithms = logarithms + weights.log()
        return torch.logsumexp(logarithms, dim=-1)


@SURROGATES.register("exp")
class Exp(Surrogate):
    """σ(d) = exp d; makes PSL the softmax loss."""

    def value(self, difference: Tensor) -> Tensor:
        return torch.exp(difference)

    def log_value(self, difference: Tensor) -> Tensor:
        return difference

    def derivative(self, difference: Tensor) -> Tensor:
        return torch.exp(difference)


@SURROGATES.register("tanh")
class Tanh(Surrogate):
    """σ(d) = tanh d + 1 = 2 sigmoid(2d)."""

    def value(self, difference: Tensor) -> Tensor:
        return 2.0 * torch.sigmoid(2.0 * difference)

    def log_value(self, difference: Tensor) -> Tensor:
        # tanh d + 1 vanishes in single precision below d = -9; its logarithm this way does not.
        return math.log(2.0) + functional.logsigmoid(2.0 * difference)

    def derivative(self, difference: Tensor) -> Tensor:
        return 1.0 - torch.tanh(difference) ** 2


@SURROGATES.register("atan")
class Atan(Surrogate):
    """σ(d) = arctan d + 1, positive for d > -1.557 only; `log_value` takes 1e-7 below that."""

    def value(self, difference: Tensor) -> Tensor:
        return torch.atan(difference) + 1.0

    def log_value(self, difference: Tensor) -> Tensor:
        return torch.log(self.value(difference).clamp(min=FLOOR))

    def derivative(self, difference: Tensor) -> Tensor:
        return 1.0 / (1.0 + difference**2)

    def log_sum(self, differences: Tensor, weights: Tensor | None = None) -> Tensor:
        values = self.value(differences)
        if weights is not None:
            values = weights * values
        # A single value may be negative here, so it is the sum that has a logarithm, not its terms.
        total = values.sum(dim=-1)
        if not bool((total > 0.0).all()):
            raise DivergenceError(
                f"surrogate `atan` in the inside form sums to {total.min().item():.4g}, which has "
                'no logarithm; use `form="outside"` or a `temperature` above 0.65'
            )
        return torch.log(total)


@SURROGATES.register("relu")
class Relu(Surrogate):
    """σ(d) = max(d + 1, 1e-7)."""

    def value(self, difference: Tensor) -> Tensor:
        return (difference + 1.0).clamp(min=FLOOR)

    def log_value(self, difference: Tensor) -> Tensor:
        return torch.log(self.value(difference))

    def derivative(self, difference: Tensor) -> Tensor:
        return (difference + 1.0 >= FLOOR).to(difference.dtype)


@SURROGATES.register("softplus")
class Softplus(Surrogate):
    """σ(d) = exp d + 1, whose logarithm is softplus; looser than exp: a counter-example."""

    is_tight = False

    def value(self, difference: Tensor) -> Tensor:
        return torch.exp(difference) + 1.0

    def log_value(self, difference: Tensor) -> Tensor:
        # Exact at both ends, unlike functional.softplus, which turns linear above 20.
        return -functional.logsigmoid(-difference)

    def derivative(self, difference: Tensor) -> Tensor:
        return torch.exp(difference)


@SURROGATES.register("exp-exp")
class ExpExp(Surrogate):
    """σ(d) = exp(exp d), the activation the paper finds behind AdvInfoNCE; looser than exp."""

    is_tight = False

    def value(self, difference: Tensor) -> Tensor:
        return torch.exp(torch.exp(difference))

    def log_value(self, difference: Tensor) -> Tensor:
        return torch.exp(difference)

    def derivative(self, difference: Tensor) -> Tensor:
        return torch.exp(difference + torch.exp(difference))

    def log_sum(self, differences: Tensor, weights: Tensor | None = None) -> Tensor:
        if weights is not None:
            # What is not summed must not overflow either: infinity times a weight of 0 is NaN.
            differences = torch.where(weights > 0, differences, 0.0)
        total = super().log_sum(differences, weights)
        if not bool(torch.isfinite(total).all()):
            raise DivergenceError(
                f"surrogate `exp-exp` in the inside form overflows {differences.dtype} at a scaled "
                f"difference of {differences.max().item():.4g}; "
                'use `form="outside"` or a larger `temperature`'
            )
        return total
