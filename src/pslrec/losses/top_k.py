"""Top-K weighting: any log-sum loss, each positive weighted by how near it is to its top K."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from pslrec.errors import ConfigError
from pslrec.forms import FusedForm, WeightedForm
from pslrec.losses._base import (
    LOSSES,
    Loss,
    Phase,
    SearchSpace,
    Setup,
    Step,
    positive_number,
    whole_number,
)
from pslrec.losses._catalog import CatalogStep, CatalogView
from pslrec.losses._thresholds import TopKThresholds
from pslrec.registry import constructor_parameters, derived_name

WEIGHT_GRID: SearchSpace = {
    "loss.weight_temperature": tuple(eighths / 8 for eighths in range(2, 13)),
    "loss.update_every": (5, 20),
}


def top_k_weights(
    positive_scores: Tensor,
    threshold: Tensor,
    *,
    weight_temperature: float,
    detach_weight: bool = False,
) -> Tensor:
    """The weight of each positive, sigmoid((s - β) / τ_w), shape (batch,).

    Args:
        positive_scores: shape (batch,).
        threshold: β, about the K-th largest score of the pair's user, shape (batch,).
        weight_temperature: τ_w.
        detach_weight: no gradient through the sigmoid.

    >>> top_k_weights(torch.tensor([0.1]), torch.tensor([0.1]), weight_temperature=1.0)
    tensor([0.5000])
    """
    if detach_weight:
        positive_scores = positive_scores.detach()
    return torch.sigmoid((positive_scores - threshold) / weight_temperature)


class TopK(Loss):
    """Top-K weighting: sigmoid((s - β_u) / τ_w) times a log-sum loss, β_u the user's threshold.

    The threshold is about the K-th largest score of the user. It starts at 0; in the last of every
    `update_every` epochs each step sets it, for its users, to the K-th largest score among the
    training positives (lists cut at the length 90 % of users stay within) and the pair's negatives;
    in exact training among all of both. Alone, the loss takes `threshold=`, β of each pair with
    shape (batch,), and raises without it.

    A setting names such a loss by the other one and K: `sl@20`, `psl-relu@20`, `bsl@10`.

    Args:
        loss: what is weighted: the logarithm of a sum over negatives, by its `fused_form`. The sum
            is a sum and no mean, as its scale counts here.
        k: K, which also selects the model.
        weight_temperature: τ_w, for half cosines; the published one is for plain cosines: halve it.
        update_every: epochs from one update of β to the next.
        catalog_negatives: N in exact training: the sum over the catalogue is its mean times this,
            so that it means what as many draws mean.
        detach_weight: take the weight as a number. As published it is not: its gradient weakens the
            pull on the positive, so the loss may rise with the positive's score.

    >>> from pslrec.losses import SoftmaxLoss
    >>> loss = TopK(SoftmaxLoss(0.1), k=20)
    >>> scores = torch.tensor([0.5]), torch.tensor([[0.5, 0.5]])
    >>> loss(*scores, threshold=torch.tensor([0.5]))  # log 2, half of which the weight leaves
    tensor(0.3466)
    """

    reference = "Yang et al., KDD 2025"
    falls_with_positive = False
    thresholds: TopKThresholds | None

    def __init__(
        self,
        loss: Loss,
        k: int = 20,
        weight_temperature: float = 1.25,
        *,
        update_every: int = 5,
        catalog_negatives: int = 1000,
        detach_weight: bool = False,
    ) -> None:
        super().__init__()
        _check_weighted(loss)
        self.loss = loss
        self.k = whole_number("k", k)
        self.selection_k = self.k
        self.weight_temperature = positive_number("weight_temperature", weight_temperature)
        self.update_every = whole_number("update_every", update_every)
        self.catalog_negatives = whole_number("catalog_negatives", catalog_negatives)
        self.detach_weight = detach_weight
        for name, value in declarations_of(loss).items():
            setattr(self, name, value)
        if not type(self).name:
            self.name = f"{loss.name or derived_name(type(loss))}@{self.k}"
        # Made by `build`, which knows the users; a state dict is loaded after that.
        self.register_module("thresholds", None)
        self._updates = False

    @property
    def configured_by(self) -> type[Loss]:
        """See `Loss`; `TopK` itself takes a loss, which no setting can be."""
        if type(self) is not TopK:
            return type(self)
        return LOSSES[f"{LOSSES.name_of(type(self.loss))}@{self.k}"]

    def options(self) -> dict[str, Any]:
        """See `Loss`; those of the weighted loss come first."""
        own = {name: getattr(self, name) for name in own_settings()}
        return {**self.loss.options(), **own}

    def extra_repr(self) -> str:
        """K and what the weighting adds; torch prints the weighted loss below."""
        shown = [f"{name}={getattr(self, name)!r}" for name in ("k", *own_settings())]
        return ", ".join(shown)

    def build(self, setup: Setup) -> None:
        self.loss.build(setup)
        self.thresholds = TopKThresholds(setup, k=self.k, lowest=self.domain[0])

    def parameter_groups(
        self, learning_rate: float, phase: Phase = "model"
    ) -> list[dict[str, Any]]:
        return self.loss.parameter_groups(learning_rate, phase)

    def epoch_phases(self, epoch: int) -> tuple[Phase, ...]:
        return self.loss.epoch_phases(epoch)

    def start_epoch(self, epoch: int, phase: Phase = "model") -> None:
        self.loss.start_epoch(epoch, phase)
        self._updates = (epoch + 1) % self.update_every == 0

    def extra_inputs(
        self, users: Tensor, positives: Tensor, negatives: Tensor
    ) -> dict[str, Tensor]:
        inputs = self.loss.extra_inputs(users, positives, negatives)
        return {**inputs, "threshold": self._thresholds_of(users)}

    def after_step(self, step: Step | CatalogStep | None = None) -> None:
        self.loss.after_step(step)
        if self._updates and self.thresholds is not None:
            if step is None:
                raise ValueError("`step` must be given in an epoch that updates the thresholds")
            self.thresholds.update(step)

    def user_state(self) -> tuple[str, ...]:
        of_loss = [f"loss.{name}" for name in self.loss.user_state()]
        return (*of_loss, "thresholds.values")

    def weighted_form(self) -> WeightedForm:
        return WeightedForm(self._form(), self.catalog_negatives)

    def positive_weights(self, positive_scores: Tensor, users: Tensor) -> Tensor:
        return self._weights(positive_scores, self._thresholds_of(users))

    def why_not_on_catalog(self, *, has_noise: bool = False) -> str | None:
        return self.loss.why_not_on_catalog(has_noise=has_noise)

    def catalog_values(self, view: CatalogView) -> Tensor:
        # As many draws would add up to this on average. The scale of the sum counts here, as the
        # weight multiplies its logarithm.
        log_scales = math.log(self.catalog_negatives) - view.weights.sum(dim=1).log()
        values = self.loss.catalog_values(view) + self._form().factor * log_scales[view.owners]
        weights = self.positive_weights(view.positive_scores, view.users[view.owners])
        return weights * values

    def _pairwise_values(
        self, positives: Tensor, negatives: Tensor, extras: Mapping[str, Tensor], /
    ) -> Tensor:
        others = dict(extras)
        weights = self._weights(positives, others.pop("threshold"))
        return weights * self.loss.pairwise_values(positives, negatives, **others)

    def _form(self) -> FusedForm:
        form = log_sum_form(self.loss)
        # The constructor takes no other loss.
        assert form is not None
        return form

    def _thresholds_of(self, users: Tensor) -> Tensor:
        if self.thresholds is None:
            raise RuntimeError(
                f"`{self.name}` has no thresholds yet: call `build`, or pass `threshold=` to the "
                "loss"
            )
        thresholds: Tensor = self.thresholds(users)
        return thresholds

    def _weights(self, positive_scores: Tensor, threshold: Tensor) -> Tensor:
        return top_k_weights(
            positive_scores,
            threshold,
            weight_temperature=self.weight_temperature,
            detach_weight=self.detach_weight,
        )


def own_settings() -> list[str]:
    """What the weighting adds to the settings of a loss; K is in its name."""
    names = [parameter.name for parameter in constructor_parameters(TopK)]
    return [name for name in names if name not in ("loss", "k")]


def declarations_of(loss: Loss | type[Loss]) -> dict[str, Any]:
    """The declarations of a weighted loss that follow from those of the loss itself."""
    return {
        "similarity": loss.similarity,
        "domain": loss.domain,
        "default_negatives": loss.default_negatives,
        "initialization": loss.initialization,
        "needs": loss.needs | {"threshold"},
        "phases": loss.phases,
        "search_space": top_k_search_space(loss.search_space),
    }


def top_k_search_space(space: SearchSpace) -> SearchSpace:
    """The search space of a loss with that of the weighting, before the settings of training."""
    of_loss = {name: values for name, values in space.items() if name.startswith("loss.")}
    return {**of_loss, **WEIGHT_GRID, **space}


def log_sum_form(loss: Loss) -> FusedForm | None:
    """The form of a loss that is the logarithm of a sum over negatives; `None` for all others."""
    form = loss.fused_form()
    if form is None or form.kind == "mean":
        return None
    return form


def log_sum_losses() -> list[str]:
    """The names of the losses that top-K weighting takes, with their defaults."""
    names = []
    for name in LOSSES:
        try:
            loss = LOSSES[name]()
        except (TypeError, ValueError):
            # A loss from outside may have arguments without a default.
            continue
        if log_sum_form(loss) is not None:
            names.append(name)
    return names


def _check_weighted(loss: Loss) -> None:
    if not isinstance(loss, Loss):
        raise ConfigError(
            f"`loss` must be a loss to be weighted, such as SoftmaxLoss(0.1), got {loss!r}"
        )
    settings = [parameter.name for parameter in constructor_parameters(type(loss))]
    if log_sum_form(loss) is None:
        # One of them may be to blame. A loss that is no part of a run need not keep them.
        kept = [f"{name}={getattr(loss, name)!r}" for name in settings if hasattr(loss, name)]
        raise ConfigError(
            "top-K weighting needs a loss that is the logarithm of a sum over negatives: "
            f"{', '.join(log_sum_losses())}, or one of your own whose `fused_form` says so; "
            f"got `{loss.name}` ({', '.join(kept)})"
        )
    taken = [name for name in settings if name in own_settings()]
    if taken:
        listed = ", ".join(f"`{name}`" for name in taken)
        raise ConfigError(
            f"loss `{loss.name}` has settings of the names that top-K weighting takes itself, "
            f"{listed}; rename them"
        )
