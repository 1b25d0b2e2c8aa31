"""The bilateral softmax loss, as the paper's tables have it and as its authors published it."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from pslrec.forms import FusedForm
from pslrec.losses._base import (
    TEMPERATURES,
    Loss,
    one_of,
    positive_number,
    register_loss,
    search_grid,
)
from pslrec.losses._catalog import CatalogView, log_mean_by_group
from pslrec.losses.softmax import catalog_softmax_loss, softmax_loss

VARIANTS = ("tables", "original", "original-grouped")


def bilateral_softmax_loss(
    positive_scores: Tensor,
    negative_scores: Tensor,
    *,
    positive_temperature: float,
    negative_temperature: float,
) -> Tensor:
    """BSL of each positive in the tables' form: (τ2/τ1) log Σ_j exp((s_j - s) / τ2).

    Args:
        positive_scores: half cosines, shape (batch,).
        negative_scores: half cosines, shape (batch, negatives).
        positive_temperature: τ1, here no more than a factor.
        negative_temperature: τ2.
    """
    scale = negative_temperature / positive_temperature
    return scale * softmax_loss(positive_scores, negative_scores, temperature=negative_temperature)


def original_bilateral_softmax_loss(
    positive_scores: Tensor,
    negative_scores: Tensor,
    *,
    temperature: float,
    exponent: float,
    users: Tensor | None = None,
) -> Tensor:
    """BSL of each positive in its authors' form: -s/τ + e log Σ_j exp(s_j/τ).

    Args:
        positive_scores: half cosines, shape (batch,).
        negative_scores: half cosines, shape (batch, negatives).
        temperature: τ of both sides.
        exponent: e, the power of the negatives' sum.
        users: user of each pair; if given, s/τ becomes the log-mean-exp over the batch's pairs of
            the same user, and the sum over negatives their mean.
    """
    positive_terms = positive_scores / temperature
    negative_terms = torch.logsumexp(negative_scores / temperature, dim=1)
    if users is not None:
        is_same_user = users.unsqueeze(0) == users.unsqueeze(1)
        of_same_user = positive_terms.unsqueeze(0).masked_fill(~is_same_user, -float("inf"))
        counts = is_same_user.sum(dim=1).to(positive_terms.dtype)
        # Both sides are means then; a user with many pairs in the batch weighs as any other.
        positive_terms = torch.logsumexp(of_same_user, dim=1) - counts.log()
        negative_terms = negative_terms - math.log(negative_scores.shape[1])
    return exponent * negative_terms - positive_terms


@register_loss("bsl")
class BilateralSoftmaxLoss(Loss):
    """BSL: -s/τ1 + (τ2/τ1) log Σ_j exp(s_j/τ2), which is (τ2/τ1) times SL at τ2.

    The tables' form differs from SL by a constant factor, which Adam removes; it shows only beside
    another term, such as XSimGCL's contrast. The authors of BSL published something else: one
    temperature on both sides and a power of the sum.

    Args:
        positive_temperature: τ1.
        negative_temperature: τ2.
        variant: `tables`; `original`, -s/τ1 + (τ2/τ1) log Σ_j exp(s_j/τ1); `original-grouped`, the
            same with the positives of one user in the batch averaged inside their logarithm, which
            needs `users=`, and the mean over negatives.
    """

    reference = "Wu et al., ICDE 2024"
    search_space = search_grid(
        {
            "loss.positive_temperature": TEMPERATURES,
            "loss.negative_temperature": TEMPERATURES,
        }
    )

    def __init__(
        self,
        positive_temperature: float = 0.1,
        negative_temperature: float = 0.1,
        *,
        variant: str = "tables",
    ) -> None:
        super().__init__()
        self.positive_temperature = positive_number("positive_temperature", positive_temperature)
        self.negative_temperature = positive_number("negative_temperature", negative_temperature)
        self.variant = one_of("variant", variant, VARIANTS)
        self.needs = frozenset()
        if variant == "original-grouped":
            self.needs = frozenset({"users"})

    def extra_inputs(
        self,
        users: Tensor,
        positives: Tensor,  # noqa: ARG002
        negatives: Tensor,  # noqa: ARG002
    ) -> dict[str, Tensor]:
        if not self.needs:
            return {}
        return {"users": users}

    def fused_form(self) -> FusedForm | None:
        if self.variant != "tables":
            return None
        factor = self.negative_temperature / self.positive_temperature
        return FusedForm("log-sum", "exp", 1.0 / self.negative_temperature, factor)

    def catalog_values(self, view: CatalogView) -> Tensor:
        factor = self.negative_temperature / self.positive_temperature
        # A multiple of SL: s / τ1 = (τ2 / τ1) s / τ2.
        if self.variant == "tables":
            return factor * catalog_softmax_loss(view, temperature=self.negative_temperature)
        positive_terms = view.positive_scores / self.positive_temperature
        exponents = view.scores / self.positive_temperature
        if self.variant == "original":
            return factor * view.log_sum(exponents)[view.owners] - positive_terms
        grouped = log_mean_by_group(positive_terms, view.owners, len(view.users))
        return (factor * view.log_mean(exponents) - grouped)[view.owners]

    def _pairwise_values(
        self, positives: Tensor, negatives: Tensor, extras: Mapping[str, Tensor], /
    ) -> Tensor:
        temperature = self.positive_temperature
        if self.variant == "tables":
            return bilateral_softmax_loss(
                positives,
                negatives,
                positive_temperature=temperature,
                negative_temperature=self.negative_temperature,
            )
        exponent = self.negative_temperature / temperature
        return original_bilateral_softmax_loss(
            positives,
            negatives,
            temperature=temperature,
            exponent=exponent,
            users=extras.get("users"),
        )
