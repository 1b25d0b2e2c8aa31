"""Binary cross entropy: each score alone, against its label."""

from collections.abc import Mapping

from torch import Tensor
from torch.nn import functional

from pslrec.losses._base import Loss, positive_number, register_loss, search_grid
from pslrec.losses._catalog import CatalogView


def bce_loss(
    positive_scores: Tensor, negative_scores: Tensor, *, negative_weight: float = 1.0
) -> Tensor:
    """BCE of each positive and its negatives: -log sigmoid(s) - w mean_j log sigmoid(-s_j).

    Args:
        positive_scores: logits, shape (batch,).
        negative_scores: logits, shape (batch, negatives).
        negative_weight: w, what all negatives of a pair weigh together.

    >>> import torch
    >>> bce_loss(torch.tensor([0.0]), torch.tensor([[0.0, 0.0]]))  # 2 log 2
    tensor([1.3863])
    """
    negative_terms = functional.logsigmoid(-negative_scores).mean(dim=1)
    return -functional.logsigmoid(positive_scores) - negative_weight * negative_terms


@register_loss("bce")
class BCELoss(Loss):
    """BCE: -log sigmoid(s) - w mean_j log sigmoid(-s_j), pointwise, on inner products.

    Args:
        negative_weight: w; the number of negatives makes the mean the plain sum.
    """

    reference = "He et al., WWW 2017"
    similarity = "inner-product"
    domain = (-float("inf"), float("inf"))
    default_negatives = 1
    initialization = "xavier-normal"
    search_space = search_grid(learning_rates=(1e-1, 1e-2, 1e-3, 1e-4))

    def __init__(self, negative_weight: float = 1.0) -> None:
        super().__init__()
        self.negative_weight = positive_number("negative_weight", negative_weight)

    def catalog_values(self, view: CatalogView) -> Tensor:
        negative_terms = view.mean(functional.logsigmoid(-view.scores))[view.owners]
        positive_terms = functional.logsigmoid(view.positive_scores)
        return -positive_terms - self.negative_weight * negative_terms

    def _pairwise_values(
        self, positives: Tensor, negatives: Tensor, _extras: Mapping[str, Tensor], /
    ) -> Tensor:
        return bce_loss(positives, negatives, negative_weight=self.negative_weight)
