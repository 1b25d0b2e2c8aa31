"""SL@K: the softmax loss with top-K weighting, K a setting of its own."""

from typing import Any

from torch import Tensor

from pslrec.losses._base import register_loss
from pslrec.losses.softmax import SoftmaxLoss, softmax_loss
from pslrec.losses.top_k import TopK, top_k_search_space, top_k_weights


def softmax_at_k_loss(
    positive_scores: Tensor,
    negative_scores: Tensor,
    threshold: Tensor,
    *,
    temperature: float,
    weight_temperature: float,
    detach_weight: bool = False,
) -> Tensor:
    """SL@K of each positive: sigmoid((s - β) / τ_w) log Σ_j exp((s_j - s) / τ).

    Args:
        positive_scores: half cosines, shape (batch,).
        negative_scores: half cosines, shape (batch, negatives).
        threshold: β, about the K-th largest score of the pair's user, shape (batch,).
        temperature: τ.
        weight_temperature: τ_w.
        detach_weight: no gradient through the sigmoid.
    """
    weights = top_k_weights(
        positive_scores,
        threshold,
        weight_temperature=weight_temperature,
        detach_weight=detach_weight,
    )
    return weights * softmax_loss(positive_scores, negative_scores, temperature=temperature)


@register_loss("sl@k")
class SoftmaxAtKLoss(TopK):
    """SL@K: sigmoid((s - β_u) / τ_w) log Σ_j exp((s_j - s) / τ), β_u the user's K-th score.

    It is `TopK(SoftmaxLoss(temperature), k)`, which the name `sl@20` stands for as well. Here K is
    a setting, as in the published study. Both published temperatures are for plain cosines: halve
    them.

    Args:
        temperature: τ, for half cosines: the best of SL.
        weight_temperature: as in `TopK`, and so are all others.
        k: K, which also selects the model.
        update_every: epochs from one update of β to the next.
        catalog_negatives: N in exact training.
        detach_weight: take the weight as a number.
    """

    search_space = top_k_search_space(SoftmaxLoss.search_space)

    def __init__(
        self,
        temperature: float = 0.1,
        weight_temperature: float = 1.25,
        k: int = 20,
        *,
        update_every: int = 5,
        catalog_negatives: int = 1000,
        detach_weight: bool = False,
    ) -> None:
        super().__init__(
            SoftmaxLoss(temperature),
            k,
            weight_temperature,
            update_every=update_every,
            catalog_negatives=catalog_negatives,
            detach_weight=detach_weight,
        )

    def options(self) -> dict[str, Any]:
        """See `TopK`; K is not in the name here."""
        return {**super().options(), "k": self.k}
