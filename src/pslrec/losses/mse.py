"""Squared error: each score alone, against its label."""

from collections.abc import Mapping

from torch import Tensor

from pslrec.losses._base import Loss, positive_number, register_loss, search_grid
from pslrec.losses._catalog import CatalogView


def mse_loss(
    positive_scores: Tensor, negative_scores: Tensor, *, negative_weight: float = 1.0
) -> Tensor:
    """Squared error of each positive and its negatives: (1 - s)² + w mean_j s_j².

    Args:
        positive_scores: shape (batch,).
        negative_scores: shape (batch, negatives).
        negative_weight: w, what all negatives of a pair weigh together.

    >>> import torch
    >>> mse_loss(torch.tensor([0.5]), torch.tensor([[1.0, 0.0]]))  # 0.25 + 0.5
    tensor([0.7500])
    """
    return (1.0 - positive_scores) ** 2 + negative_weight * (negative_scores**2).mean(dim=1)


@register_loss("mse")
class MSELoss(Loss):
    """MSE: (1 - s)² + w mean_j s_j², regression on the labels 1 and 0.

    It rises again where a positive's score passes 1.

    Args:
        negative_weight: w; the number of negatives makes the mean the plain sum.
    """

    reference = "He and Chua, SIGIR 2017"
    similarity = "inner-product"
    domain = (-float("inf"), float("inf"))
    default_negatives = 1
    initialization = "xavier-normal"
    falls_with_positive = False
    search_space = search_grid(learning_rates=(1e-1, 1e-2, 1e-3, 1e-4))

    def __init__(self, negative_weight: float = 1.0) -> None:
        super().__init__()
        self.negative_weight = positive_number("negative_weight", negative_weight)

    def catalog_values(self, view: CatalogView) -> Tensor:
        # The negatives' terms do not depend on the positive, so one mean per user is enough.
        negative_terms = view.mean(view.scores**2)[view.owners]
        return (1.0 - view.positive_scores) ** 2 + self.negative_weight * negative_terms

    def _pairwise_values(
        self, positives: Tensor, negatives: Tensor, _extras: Mapping[str, Tensor], /
    ) -> Tensor:
        return mse_loss(positives, negatives, negative_weight=self.negative_weight)
