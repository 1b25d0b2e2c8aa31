"""AdvInfoNCE: the softmax loss with a learnt, adversarial hardness for each negative."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from pslrec.losses import _base as base
from pslrec.losses._adversary import Adversary
from pslrec.losses._base import Phase, Setup, positive_number
from pslrec.losses._catalog import CatalogFactors, CatalogView


def adv_infonce_loss(
    positive_scores: Tensor,
    negative_scores: Tensor,
    hardness: Tensor,
    *,
    temperature: float,
    negative_weight: float = 64.0,
) -> Tensor:
    """AdvInfoNCE of each positive: log(1 + K Σ_j exp(h_j + (s_j - s) / τ)).

    Args:
        positive_scores: half cosines, shape (batch,).
        negative_scores: half cosines, shape (batch, negatives).
        hardness: h_j = log δ_j, shape (batch, negatives); 0 for all negatives alike.
        temperature: τ.
        negative_weight: K.
    """
    scaled = base.differences(positive_scores, negative_scores) / temperature
    exponent = math.log(negative_weight) + torch.logsumexp(hardness + scaled, dim=1)
    # log(1 + exp x), without the exponential that overflows.
    return -functional.logsigmoid(-exponent)


@base.register_loss("adv-infonce")
class AdvInfoNCELoss(base.Loss):
    """AdvInfoNCE: log(1 + K Σ_j δ_j exp((s_j - s) / τ)), δ_j = N softmax_j(cos(p_u, q_j)).

    The δ_j come from an adversary.

    In a trainer, `build` makes the adversary's tables p and q, and `epoch_phases` says which epochs
    climb in them instead of training the model. Alone, it takes `hardness=`, the logarithms of δ_j
    with shape (batch, negatives), and raises without it.

    Args:
        temperature: τ, for half cosines.
        negative_weight: K.
        adversarial_interval: T; the last of every T epochs trains the adversary only.
        adversarial_learning_rate: of the adversary, which ascends.
        adversarial_rounds: adversarial passes after which the original stops; the tables' form
            never does.
        catalog_negatives: N in exact training: a sum over the catalogue is its mean times this, so
            that it means what as many draws mean.
        variant: `tables`, as above; `original`, as its authors released it: inner products of
            Xavier-normal p and q, and an adversarial pass before the normal one in the epochs e
            with (e + 3) mod T = 0.
    """

    reference = "Zhang et al., NeurIPS 2023"
    needs = frozenset({"hardness"})
    phases = ("model", "adversary")
    search_space = base.search_grid({"loss.temperature": base.TEMPERATURES})
    adversary: Adversary | None

    def __init__(
        self,
        temperature: float = 0.1,
        *,
        negative_weight: float = 64.0,
        adversarial_interval: int = 5,
        adversarial_learning_rate: float = 5e-5,
        adversarial_rounds: int = 7,
        catalog_negatives: int = 1000,
        variant: str = "tables",
    ) -> None:
        super().__init__()
        self.temperature = positive_number("temperature", temperature)
        self.negative_weight = positive_number("negative_weight", negative_weight)
        self.adversarial_interval = base.whole_number(
            "adversarial_interval", adversarial_interval, minimum=2
        )
        self.adversarial_learning_rate = positive_number(
            "adversarial_learning_rate", adversarial_learning_rate
        )
        self.adversarial_rounds = base.whole_number(
            "adversarial_rounds", adversarial_rounds, minimum=0
        )
        self.catalog_negatives = base.whole_number("catalog_negatives", catalog_negatives)
        self.variant = base.one_of("variant", variant, ("tables", "original"))
        # Made by `build`, which knows users and items; a state dict is loaded after that.
        self.register_module("adversary", None)
        self._phase: Phase = "model"

    def build(self, setup: Setup) -> None:
        self.adversary = Adversary(setup, is_cosine=self.variant == "tables")

    def parameter_groups(
        self,
        learning_rate: float,  # noqa: ARG002
        phase: Phase = "model",
    ) -> list[dict[str, Any]]:
        parameters = list(self.parameters())
        if phase != "adversary" or not parameters:
            return []
        # It climbs: the adversary looks for the hardness that makes the loss largest.
        return [{"params": parameters, "lr": self.adversarial_learning_rate, "maximize": True}]

    def epoch_phases(self, epoch: int) -> tuple[Phase, ...]:
        if self.variant == "tables":
            if (epoch + 1) % self.adversarial_interval == 0:
                return ("adversary",)
            return ("model",)
        # As released: no passes any more after so many rounds.
        rounds, rest = divmod(epoch + 3, self.adversarial_interval)
        if rest == 0 and rounds <= self.adversarial_rounds:
            return ("adversary", "model")
        return ("model",)

    def start_epoch(self, epoch: int, phase: Phase = "model") -> None:  # noqa: ARG002
        self._phase = phase

    def hardness(self, users: Tensor, negatives: Tensor) -> Tensor:
        """Logarithms of δ_j, shape (batch, negatives).

        They have a graph in the adversary's phase only.
        """
        with self._adversary_graph() as adversary:
            hardness: Tensor = adversary(users, negatives)
        return hardness

    @contextmanager
    def _adversary_graph(self) -> Iterator[Adversary]:
        if self.adversary is None:
            raise RuntimeError(
                "`adv-infonce` has no adversary yet: call `build`, or pass `hardness=` to the loss"
            )
        # In the model's phase hardness is a number; its graph would be built for nothing.
        has_graph = torch.is_grad_enabled() and self._phase == "adversary"
        with torch.set_grad_enabled(has_graph):
            yield self.adversary

    def catalog_values(self, view: CatalogView) -> Tensor:
        with self._adversary_graph() as adversary:
            similarities = adversary.similarities(view.users, view.item_rows).to(view.scores.dtype)
            # log δ_j; its mean over the negatives is then 1, as that of N draws is.
            hardness = similarities - view.log_mean(similarities).unsqueeze(1)
        exponents = view.log_mean(hardness + view.scores / self.temperature)[view.owners]
        return self._values_of_catalog(view.positive_scores, exponents)

    def catalog_values_of_factors(self, factors: CatalogFactors) -> Tensor:
        with self._adversary_graph() as adversary:
            similarities = adversary.vectors(factors.users, factors.item_rows)
            # The mean of δ_j is 1; the number of negatives, by which both sums would be divided,
            # cancels.
            normalizers = factors.log_sums(similarities)
        scaled = (factors.user_vectors / self.temperature, factors.item_vectors)
        exponents = (factors.log_sums(scaled, similarities) - normalizers)[factors.owners]
        return self._values_of_catalog(factors.positive_scores, exponents)

    def _values_of_catalog(self, positive_scores: Tensor, exponents: Tensor) -> Tensor:
        """From log mean_j δ_j exp(s_j / τ) of each positive's user."""
        constant = math.log(self.negative_weight * self.catalog_negatives)
        return -functional.logsigmoid(positive_scores / self.temperature - exponents - constant)

    def extra_inputs(
        self,
        users: Tensor,
        positives: Tensor,  # noqa: ARG002
        negatives: Tensor,
    ) -> dict[str, Tensor]:
        return {"hardness": self.hardness(users, negatives)}

    def _pairwise_values(
        self, positives: Tensor, negatives: Tensor, extras: Mapping[str, Tensor], /
    ) -> Tensor:
        options = {"temperature": self.temperature, "negative_weight": self.negative_weight}
        return adv_infonce_loss(positives, negatives, extras["hardness"], **options)
