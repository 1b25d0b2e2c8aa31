"""SL@K: the softmax loss weighted by whether a positive is near its user's top K."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from pslrec.losses import _base as base
from pslrec.losses._base import Phase, Setup, Step, positive_number
from pslrec.losses._catalog import CatalogStep, CatalogView
from pslrec.losses._thresholds import TopKThresholds
from pslrec.losses.softmax import softmax_loss


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


def top_k_weights(
    positive_scores: Tensor, threshold: Tensor, *, weight_temperature: float, detach_weight: bool
) -> Tensor:
    """The weight of each positive, sigmoid((s - β) / τ_w), shape (batch,).

    Arguments as in `softmax_at_k_loss`.
    """
    if detach_weight:
        positive_scores = positive_scores.detach()
    return torch.sigmoid((positive_scores - threshold) / weight_temperature)


@base.register_loss("sl@k")
class SoftmaxAtKLoss(base.Loss):
    """SL@K: sigmoid((s - β_u) / τ_w) log Σ_j exp((s_j - s) / τ), β_u the user's threshold.

    The threshold is about the K-th largest score of the user.

    The published temperatures are for plain cosines: halve both. The sum over negatives is a sum
    and no mean, as its scale counts here. β_u starts at 0; in the last of every `update_every`
    epochs each step sets it, for its users, to the K-th largest score among the training positives
    (lists cut at the length 90 % of users stay within) and the pair's negatives; in exact training
    among all of both. Alone, the loss takes `threshold=`, β of each pair with shape (batch,), and
    raises without it.

    Args:
        temperature: τ, for half cosines: the best of SL.
        weight_temperature: τ_w, for half cosines.
        k: K, which also selects the model.
        update_every: epochs from one update of β to the next.
        catalog_negatives: N in exact training: the sum over the catalogue is its mean times this,
            so that it means what as many draws mean.
        detach_weight: take the weight as a number. As published it is not: its gradient weakens the
            pull on the positive, so the loss may rise with the positive's score.
    """

    reference = "Yang et al., KDD 2025"
    needs = frozenset({"threshold"})
    falls_with_positive = False
    search_space = base.search_grid(
        {
            "loss.temperature": base.TEMPERATURES,
            "loss.weight_temperature": tuple(eighths / 8 for eighths in range(2, 13)),
            "loss.update_every": (5, 20),
        }
    )
    thresholds: TopKThresholds | None

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
        super().__init__()
        self.temperature = positive_number("temperature", temperature)
        self.weight_temperature = positive_number("weight_temperature", weight_temperature)
        self.k = base.whole_number("k", k)
        self.selection_k = self.k
        self.update_every = base.whole_number("update_every", update_every)
        self.catalog_negatives = base.whole_number("catalog_negatives", catalog_negatives)
        self.detach_weight = detach_weight
        # Made by `build`, which knows the users; a state dict is loaded after that.
        self.register_module("thresholds", None)
        self._updates = False

    def build(self, setup: Setup) -> None:
        self.thresholds = TopKThresholds(setup, k=self.k)

    def start_epoch(self, epoch: int, phase: Phase = "model") -> None:  # noqa: ARG002
        self._updates = (epoch + 1) % self.update_every == 0

    def extra_inputs(
        self,
        users: Tensor,
        positives: Tensor,  # noqa: ARG002
        negatives: Tensor,  # noqa: ARG002
    ) -> dict[str, Tensor]:
        return {"threshold": self._thresholds_of(users)}

    def _thresholds_of(self, users: Tensor) -> Tensor:
        if self.thresholds is None:
            raise RuntimeError(
                "`sl@k` has no thresholds yet: call `build`, or pass `threshold=` to the loss"
            )
        thresholds: Tensor = self.thresholds(users)
        return thresholds

    def catalog_values(self, view: CatalogView) -> Tensor:
        scores = view.positive_scores
        thresholds = self._thresholds_of(view.users)[view.owners]
        # As many draws would add up to this on average. The scale of the sum counts here, as the
        # weight multiplies its logarithm.
        log_means = view.log_mean(view.scores / self.temperature)[view.owners]
        log_sums = math.log(self.catalog_negatives) + log_means
        weights = top_k_weights(
            scores,
            thresholds,
            weight_temperature=self.weight_temperature,
            detach_weight=self.detach_weight,
        )
        return weights * (log_sums - scores / self.temperature)

    def after_step(self, step: Step | CatalogStep | None = None) -> None:
        if self._updates and self.thresholds is not None:
            if step is None:
                raise ValueError("`step` must be given in an epoch that updates the thresholds")
            self.thresholds.update(step)

    def _pairwise_values(
        self, positives: Tensor, negatives: Tensor, extras: Mapping[str, Tensor], /
    ) -> Tensor:
        return softmax_at_k_loss(
            positives,
            negatives,
            extras["threshold"],
            temperature=self.temperature,
            weight_temperature=self.weight_temperature,
            detach_weight=self.detach_weight,
        )
