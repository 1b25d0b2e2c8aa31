"""The softmax loss."""

from collections.abc import Mapping

import torch
from torch import Tensor

from pslrec.forms import FusedForm
from pslrec.losses._base import (
    TEMPERATURES,
    Loss,
    differences,
    positive_number,
    register_loss,
    search_grid,
)
from pslrec.losses._catalog import CatalogView


def softmax_loss(positive_scores: Tensor, negative_scores: Tensor, *, temperature: float) -> Tensor:
    """SL of each positive: log Σ_j exp((s_j - s) / τ).

    Args:
        positive_scores: half cosines, shape (batch,).
        negative_scores: half cosines, shape (batch, negatives).
        temperature: τ for half cosines; code that divides plain cosines by t has τ = t / 2.

    >>> softmax_loss(torch.tensor([0.5]), torch.tensor([[0.5, 0.5]]), temperature=0.1)  # log 2
    tensor([0.6931])
    """
    return torch.logsumexp(differences(positive_scores, negative_scores) / temperature, dim=1)


def catalog_softmax_loss(view: CatalogView, *, temperature: float) -> Tensor:
    """SL of each positive of a block, shape (pairs,): one sum per user serves all its positives."""
    # log Σ_j exp((s_j - s) / τ) = log Σ_j exp(s_j / τ) - s / τ: no pair of scores ever meets.
    log_sums = view.log_sum(view.scores / temperature)
    return log_sums[view.owners] - view.positive_scores / temperature


@register_loss("sl")
class SoftmaxLoss(Loss):
    """SL: log Σ_j exp((s_j - s) / τ) over the negatives.

    The paper prints the sum over all items; as in its released code, the positive itself is not in
    it.

    Args:
        temperature: τ, for half cosines.
    """

    reference = "Wu et al., TOIS 2024; PSL paper, Eq. 3.1"
    search_space = search_grid({"loss.temperature": TEMPERATURES})

    def __init__(self, temperature: float = 0.1) -> None:
        super().__init__()
        self.temperature = positive_number("temperature", temperature)

    def fused_form(self) -> FusedForm:
        return FusedForm("log-sum", "exp", 1.0 / self.temperature)

    def catalog_values(self, view: CatalogView) -> Tensor:
        return catalog_softmax_loss(view, temperature=self.temperature)

    def _pairwise_values(
        self, positives: Tensor, negatives: Tensor, _extras: Mapping[str, Tensor], /
    ) -> Tensor:
        return softmax_loss(positives, negatives, temperature=self.temperature)
