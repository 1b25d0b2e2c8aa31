"""LLPAUC: the lower-left partial area under the ROC curve, by seven scalars learnt beside it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from pslrec.errors import ConfigError
from pslrec.losses._base import (
    Loss,
    Phase,
    Step,
    one_of,
    positive_number,
    register_loss,
    search_grid,
)
from pslrec.losses._catalog import CatalogStep, CatalogView

VARIANTS = ("tables", "original")


class LLPAUCScalars(NamedTuple):
    """The scalars learnt beside the model, with their letters and starting values."""

    positive_centre: Tensor | float = 1.0  # a
    negative_centre: Tensor | float = 0.0  # b
    positive_quantile: Tensor | float = 0.5  # s_p
    negative_quantile: Tensor | float = 0.5  # s_n
    margin: Tensor | float = 0.0  # g
    positive_multiplier: Tensor | float = 0.5  # t_a
    negative_multiplier: Tensor | float = 0.5  # t_b


def llpauc_loss(
    positive_scores: Tensor,
    negative_scores: Tensor,
    scalars: LLPAUCScalars,
    *,
    alpha: float,
    beta: float,
) -> Tensor:
    """LLPAUC of each positive; the formula is in `LLPAUCLoss`.

    Args:
        positive_scores: half cosines, shape (batch,).
        negative_scores: half cosines, shape (batch, negatives).
        scalars: current values of the seven scalars.
        alpha: the share of positives that counts.
        beta: the share of negatives that counts.
    """
    # In this order: it is that of the gradients' sums, and so of the last digits of a run.
    negative_terms = _negative_terms(negative_scores, scalars).mean(dim=1)
    positive_terms = _positive_terms(positive_scores, scalars)
    return positive_terms / alpha + negative_terms / beta + _constants(scalars)


def _positive_terms(scores: Tensor, scalars: LLPAUCScalars) -> Tensor:
    a = scalars.positive_centre
    s_p = scalars.positive_quantile
    g = scalars.margin
    # Of the full cosine, which is twice the score.
    positives = torch.sigmoid(2.0 * scores)
    return -_hinge(-((positives - a) ** 2) + 2.0 * (1.0 + g) * positives - s_p)


def _negative_terms(scores: Tensor, scalars: LLPAUCScalars) -> Tensor:
    b = scalars.negative_centre
    s_n = scalars.negative_quantile
    g = scalars.margin
    negatives = torch.sigmoid(2.0 * scores)
    return _hinge((negatives - b) ** 2 + 2.0 * (1.0 + g) * negatives - s_n)


def _constants(scalars: LLPAUCScalars) -> Tensor | float:
    a, b, s_p, s_n, g, t_a, t_b = scalars
    return s_n - s_p + t_a * (a + g) + t_b * (g + 1.0 - b) - g**2


def _hinge(values: Tensor) -> Tensor:
    # The threshold is where softplus equals its argument in single precision anyway.
    return functional.softplus(values, beta=5.0, threshold=40.0)


@register_loss("llpauc")
class LLPAUCLoss(Loss):
    """LLPAUC: partial AUC over the best `alpha` of positives and the hardest `beta` of negatives.

    With p = sigmoid(2s), n_j = sigmoid(2s_j) (of the full cosine) and h(x) = log(1 + exp 5x) / 5:

        -s_p - h(-(p-a)² + 2(1+g)p - s_p)/α + s_n + mean_j h((n_j-b)² + 2(1+g)n_j - s_n)/β
        - g² + t_a(a+g) + t_b(g+1-b)

    The scalars are parameters: put `parameter_groups` into the optimiser and call `after_step`
    after each step, which clips a, b, s_p, s_n and g to their ranges.

    Args:
        alpha: α, the share of positives, in (0, 1].
        beta: β, the share of negatives, in (0, 1].
        variant: `tables` minimises over everything and leaves t_a and t_b free, as the code behind
            the tables does; the printed loss then drifts to large negative values. `original`
            ascends in g and s_p (by `maximize` in their parameter group) and takes t_a, t_b at
            least 0, as its authors do (who also use inner products and 100 negatives).
    """

    reference = "Shi et al., WWW 2024"
    initialization = "normal:0.01"
    search_space = search_grid({"loss.alpha": (0.1, 0.3, 0.5, 0.7, 0.9), "loss.beta": (0.01, 0.1)})

    def __init__(self, alpha: float = 0.7, beta: float = 0.01, *, variant: str = "tables") -> None:
        super().__init__()
        for name, share in (("alpha", alpha), ("beta", beta)):
            if not 0.0 < share <= 1.0:
                raise ConfigError(f"`{name}` must be a share above 0 and at most 1, got {share}")
            positive_number(name, share)
        self.alpha, self.beta = alpha, beta
        self.variant = one_of("variant", variant, VARIANTS)
        # Parameters of the loss: learnt, in the state dict, and so in every checkpoint.
        self.scalars = nn.ParameterDict(
            {name: torch.tensor(value) for name, value in LLPAUCScalars()._asdict().items()}
        )

    def parameter_groups(
        self, learning_rate: float, phase: Phase = "model"
    ) -> list[dict[str, Any]]:
        """The scalars: s_p, s_n and g at twice the learning rate."""
        if phase != "model":
            return []
        steady = (
            "positive_centre",
            "negative_centre",
            "positive_multiplier",
            "negative_multiplier",
        )
        ascends = self.variant == "original"
        return [
            {"params": [self.scalars[name] for name in steady], "lr": learning_rate},
            {"params": [self.scalars["negative_quantile"]], "lr": 2 * learning_rate},
            {
                "params": [self.scalars["positive_quantile"], self.scalars["margin"]],
                "lr": 2 * learning_rate,
                "maximize": ascends,
            },
        ]

    @torch.no_grad()
    def after_step(self, step: Step | CatalogStep | None = None) -> None:  # noqa: ARG002
        """Clip the scalars to their ranges."""
        a = self.scalars["positive_centre"]
        b = self.scalars["negative_centre"]
        g = self.scalars["margin"]
        a.clamp_(0.0, 1.0)
        b.clamp_(0.0, 1.0)
        self.scalars["positive_quantile"].clamp_(-1.0, 4.0)
        self.scalars["negative_quantile"].clamp_(0.0, 5.0)
        # After a and b, on which its range depends.
        lowest = torch.maximum(-a, b - 1.0)
        g.copy_(torch.minimum(torch.maximum(g, lowest), torch.ones_like(g)))

    def catalog_values(self, view: CatalogView) -> Tensor:
        scalars = self._current_scalars()
        negative_terms = view.mean(_negative_terms(view.scores, scalars))[view.owners]
        positive_terms = _positive_terms(view.positive_scores, scalars)
        return positive_terms / self.alpha + negative_terms / self.beta + _constants(scalars)

    def _pairwise_values(
        self, positives: Tensor, negatives: Tensor, _extras: Mapping[str, Tensor], /
    ) -> Tensor:
        return llpauc_loss(
            positives, negatives, self._current_scalars(), alpha=self.alpha, beta=self.beta
        )

    def _current_scalars(self) -> LLPAUCScalars:
        scalars = LLPAUCScalars(**self.scalars)
        if self.variant == "tables":
            return scalars
        return scalars._replace(
            positive_multiplier=self.scalars["positive_multiplier"].clamp(min=0.0),
            negative_multiplier=self.scalars["negative_multiplier"].clamp(min=0.0),
        )
