"""Bayesian personalised ranking: each negative against its positive, all negatives alike."""

from collections.abc import Mapping

from torch import Tensor

from pslrec.forms import FusedForm
from pslrec.losses._base import Loss, differences, register_loss, search_grid
from pslrec.losses._catalog import CatalogView
from pslrec.losses._surrogates import SURROGATES


def bpr_loss(
    positive_scores: Tensor, negative_scores: Tensor, *, surrogate: str = "softplus"
) -> Tensor:
    """BPR of each positive: mean_j log σ(s_j - s).

    Args:
        positive_scores: shape (batch,).
        negative_scores: shape (batch, negatives).
        surrogate: name of σ; with `softplus` the term is softplus(s_j - s) = -log sigmoid(s - s_j).

    >>> import torch
    >>> # (softplus(-1) + softplus(1)) / 2
    >>> bpr_loss(torch.tensor([2.0]), torch.tensor([[1.0, 3.0]]))
    tensor([0.8133])
    """
    activation = SURROGATES[surrogate]()
    difference = differences(positive_scores, negative_scores)
    return activation.log_value(difference).mean(dim=1)


@register_loss("bpr")
class BPRLoss(Loss):
    """BPR: mean_j log σ(s_j - s), softplus of the difference by default; inner products, one
    negative per pair.

    The paper sums over negatives (its Eq. 2.3); the mean keeps the step size when more than one is
    drawn. The tables re-initialise every backbone with Xavier-normal for it.

    Args:
        surrogate: name of σ. `exp-exp` grows as exp of the difference, so it suits bounded scores
            only.
    """

    reference = "Rendle et al., UAI 2009"
    similarity = "inner-product"
    domain = (-float("inf"), float("inf"))
    default_negatives = 1
    initialization = "xavier-normal"
    search_space = search_grid(learning_rates=(1e-1, 1e-2, 1e-3, 1e-4))

    def __init__(self, surrogate: str = "softplus") -> None:
        super().__init__()
        self.surrogate = surrogate
        SURROGATES[surrogate]  # raises for an unknown name

    def fused_form(self) -> FusedForm:
        return FusedForm("mean", self.surrogate)

    def catalog_values(self, view: CatalogView) -> Tensor:
        # The logarithm of exp is the difference itself, whose mean needs no pairs.
        if self.surrogate == "exp":
            return view.mean(view.scores)[view.owners] - view.positive_scores
        return view.at_every_positive(self._weighted_values)

    def _weighted_values(self, difference: Tensor, weights: Tensor) -> Tensor:
        logarithms = SURROGATES[self.surrogate]().log_value(difference)
        return (logarithms * weights).sum(dim=1) / weights.sum(dim=1)

    def _pairwise_values(
        self, positives: Tensor, negatives: Tensor, _extras: Mapping[str, Tensor], /
    ) -> Tensor:
        return bpr_loss(positives, negatives, surrogate=self.surrogate)
