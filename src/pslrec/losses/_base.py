"""What every loss promises: scores in, one number out, and the hooks a trainer calls on all alike.

Scores are half cosines and temperatures the paper's, unless a loss declares the inner product.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor, nn

# The losses import these from here.
from pslrec.checks import one_of as one_of  # noqa: PLC0414
from pslrec.checks import positive_number as positive_number  # noqa: PLC0414
from pslrec.checks import whole_number as whole_number  # noqa: PLC0414
from pslrec.errors import ConfigError, PslrecError
from pslrec.forms import FusedForm, WeightedForm
from pslrec.losses._catalog import CatalogFactors, CatalogStep, CatalogView
from pslrec.registry import Registry, constructor_parameters
from pslrec.rows import Rows

Phase = Literal["model", "adversary"]
SearchSpace = Mapping[str, tuple[float, ...]]

TEMPERATURES = (0.005, 0.025, 0.05, 0.1, 0.25)


def search_grid(
    options: SearchSpace | None = None, *, learning_rates: tuple[float, ...] = (1e-1, 1e-2, 1e-3)
) -> SearchSpace:
    """The paper's grid: values to try for each setting of a loss, and for the optimiser's two."""
    optimiser = {
        "training.learning_rate": learning_rates,
        "training.weight_decay": (0.0, 1e-4, 1e-5, 1e-6),
    }
    return MappingProxyType({**(options or {}), **optimiser})


class DivergenceError(PslrecError, ArithmeticError):
    """A loss has no finite value on these scores."""


def candidate_products(users: Tensor, items: Tensor, candidates: Tensor) -> Tensor:
    """Inner products of users (batch, dimension) with the rows of `items` that candidates name."""
    # All items at once, then the drawn ones: no tensor of batch x candidates x dimension.
    return (users @ items.T).gather(1, candidates.long())


@dataclass(frozen=True)
class Setup:
    """What a loss may know of the data before training.

    Args:
        n_users: users of the data set.
        n_items: items of the data set.
        dimension: of the backbone's representations.
        generator: source of random initial values.
        history: the training positives of each user.
        products: how to compute what `candidate_products` does; a trainer that has something faster
            passes it.
    """

    n_users: int
    n_items: int
    dimension: int
    generator: torch.Generator | None = None
    history: Rows | None = None
    products: Callable[[Tensor, Tensor, Tensor], Tensor] = candidate_products


@dataclass(frozen=True)
class Step:
    """The batch that has just been trained on, for losses that look at the moved model again.

    Args:
        users: row number of the user of each pair, shape (batch,).
        positives: row number of the positive item of each pair, shape (batch,).
        negatives: row numbers of its negatives, shape (batch, negatives).
        score: gives the current model's scores of users (batch,) for items (batch, any), without a
            graph.
    """

    users: Tensor
    positives: Tensor
    negatives: Tensor
    score: Callable[[Tensor, Tensor], Tensor]


class Loss(nn.Module, ABC):
    """Base of all losses: `loss(positive_scores, negative_scores)` is the mean over a batch.

    `pairwise_values` gives the values before the mean, one per positive. A subclass writes them
    down in `_pairwise_values`; nothing else is required. What a loss wants beyond scores it names
    in `needs`, and gets it by keyword. A trainer treats every loss alike; the hooks do nothing
    unless a loss fills them:

        loss.build(Setup(n_users, n_items, dimension, generator, history))
        for phase in loss.phases:
            groups = loss.parameter_groups(learning_rate, phase)
            optimisers[phase] = Adam(... + groups)
        for epoch in range(epochs):
            # In the phase "adversary" the model stands still, without a graph.
            for phase in loss.epoch_phases(epoch):
                loss.start_epoch(epoch, phase)
                for users, positives, negatives in batches:
                    extras = loss.extra_inputs(users, positives, negatives)
                    loss(positive_scores, negative_scores, **extras).backward()
                    optimisers[phase].step()
                    loss.after_step(Step(users, positives, negatives, score))

    Everything learnt or counted on the way is in the state dict.
    """

    name: str = ""
    reference: str = ""
    similarity: Literal["half-cosine", "inner-product"] = "half-cosine"
    # Of one score; value and gradient are finite on all of it.
    domain: tuple[float, float] = (-0.5, 0.5)
    # Where negatives are sampled; the paper draws 1000.
    default_negatives: int = 1000
    # Of the backbone's tables; `None` leaves the backbone its own.
    initialization: str | None = None
    # Tensors that `forward` takes by keyword.
    needs: frozenset[str] = frozenset()
    phases: tuple[Phase, ...] = ("model",)
    # List length that selects the model, if the loss aims at one.
    selection_k: int | None = None
    # Whether the loss never rises when a positive's score rises.
    falls_with_positive: bool = True
    # Read it from an instance: for some losses it depends on their options.
    search_space: SearchSpace = search_grid()

    def forward(self, positive_scores: Tensor, negative_scores: Tensor, **extras: Tensor) -> Tensor:
        """Mean loss of a batch of positives.

        Args:
            positive_scores: score of each positive, shape (batch,).
            negative_scores: scores of its negatives, shape (batch, negatives).
            extras: the tensors named in `needs`.
        """
        return self.pairwise_values(positive_scores, negative_scores, **extras).mean()

    def pairwise_values(
        self, positive_scores: Tensor, negative_scores: Tensor, **extras: Tensor
    ) -> Tensor:
        """The loss of each positive, shape (batch,); arguments as in `forward`."""
        check_scores(positive_scores, negative_scores)
        # A loss must not guess what a trainer would give it: SL@K without its threshold is SL.
        for missing in sorted(self.needs - extras.keys()):
            raise ValueError(
                f"loss `{self.name}` needs `{missing}=` beside the scores; `extra_inputs` makes it"
            )
        for unknown in sorted(extras.keys() - self.needs):
            takes = ", ".join(f"`{name}`" for name in sorted(self.needs)) or "nothing"
            raise ValueError(f"loss `{self.name}` takes {takes} beside the scores, got `{unknown}`")
        return self._pairwise_values(positive_scores, negative_scores, extras)

    @abstractmethod
    def _pairwise_values(
        self, positives: Tensor, negatives: Tensor, extras: Mapping[str, Tensor], /
    ) -> Tensor: ...

    def build(self, setup: Setup) -> None:
        """Make whatever state depends on the data.

        Called once, before training or loading a state dict.
        """

    def parameter_groups(
        self, learning_rate: float, phase: Phase = "model"
    ) -> list[dict[str, Any]]:
        """The loss's own parameters, for the optimiser of one phase; empty if it has none."""
        parameters = list(self.parameters())
        if phase != "model" or not parameters:
            return []
        return [{"params": parameters, "lr": learning_rate}]

    def epoch_phases(self, epoch: int) -> tuple[Phase, ...]:  # noqa: ARG002
        """What an epoch, counted from 0, trains: one pass over the data per entry, in order."""
        return ("model",)

    def start_epoch(self, epoch: int, phase: Phase = "model") -> None:
        """Called before each pass over the data."""

    def extra_inputs(
        self,
        users: Tensor,  # noqa: ARG002
        positives: Tensor,  # noqa: ARG002
        negatives: Tensor,  # noqa: ARG002
    ) -> dict[str, Tensor]:
        """The tensors named in `needs` for a batch of row numbers; shapes as in `Step`."""
        return {}

    def after_step(self, step: Step | CatalogStep | None = None) -> None:
        """Called after each step of the optimiser."""

    def user_state(self) -> tuple[str, ...]:
        """Names in the state dict of tensors with a row per user, changed by its own pairs alone.

        Where several processes train together, each keeps the rows of its users right.
        """
        return ()

    def fused_form(self) -> FusedForm | None:
        """The formula of the loss, if it is one that a fused operation may compute in its place.

        It holds for sampled negatives and for the whole catalogue alike. `None`, the default, has
        the loss computed as it is written.
        """
        return None

    def weighted_form(self) -> WeightedForm | None:
        """The formula of a loss that is a fused form times `positive_weights`; `None` for others.

        As with `fused_form`, a fused operation may then compute the loss.
        """
        return None

    def positive_weights(self, positive_scores: Tensor, users: Tensor) -> Tensor:
        """What multiplies the value of each positive, if the loss has a `weighted_form`.

        Args:
            positive_scores: shape (pairs,), with a graph.
            users: row number of each pair's user, shape (pairs,).
        """
        raise NotImplementedError

    def catalog_values(self, view: CatalogView) -> Tensor:
        """The loss of each positive of a block over all its negatives, shape (pairs,).

        A loss that does not define it is evaluated by `pairwise_values` at every positive against
        its user's negatives, if scores are all it needs.
        """
        why_not = self.why_not_on_catalog()
        if why_not is not None:
            raise ConfigError(f"{why_not}; set `sampling.negatives` to a number")
        return view.by_pairs(self.pairwise_values)

    def why_not_on_catalog(self, *, has_noise: bool = False) -> str | None:
        """Why the loss cannot be trained over the whole catalogue, or `None` if it can.

        Args:
            has_noise: whether some negatives weigh more than others, as false negatives do.
        """
        if type(self).catalog_values is not Loss.catalog_values:
            return None
        if self.needs:
            needed = ", ".join(f"`{name}`" for name in sorted(self.needs))
            return (
                f"loss `{self.name}` cannot be trained on the whole catalogue: it needs {needed} "
                "beside the scores and defines no `catalog_values`"
            )
        if has_noise:
            return (
                f"loss `{self.name}` cannot be trained on the whole catalogue with noise: "
                "negatives then have weights, which only `catalog_values` takes, "
                "and it defines none"
            )
        return None

    def catalog_values_of_factors(self, factors: CatalogFactors) -> Tensor:
        """The same as `catalog_values` from vectors; a loss may define it where that is faster."""
        raise NotImplementedError

    @property
    def takes_factors(self) -> bool:
        """Whether the loss defines `catalog_values_of_factors`."""
        own = type(self).catalog_values_of_factors
        return own is not Loss.catalog_values_of_factors

    @property
    def configured_by(self) -> "type[Loss]":
        """The class that `options` construct this loss by; its name is that of the settings."""
        return type(self)

    def options(self) -> dict[str, Any]:
        """The arguments that construct this loss again."""
        parameters = constructor_parameters(type(self))
        return {parameter.name: getattr(self, parameter.name) for parameter in parameters}

    def extra_repr(self) -> str:
        """The options, as torch prints modules."""
        return ", ".join(f"{name}={value!r}" for name, value in self.options().items())


LOSSES: Registry[type[Loss]] = Registry("loss", group="pslrec.losses", base=Loss)
AnyLoss = TypeVar("AnyLoss", bound=type[Loss])


def register_loss(name: str) -> Callable[[AnyLoss], AnyLoss]:
    """Class decorator that names a loss and files it in `LOSSES`."""

    def decorate(loss: AnyLoss) -> AnyLoss:
        loss.name = name
        LOSSES.register(name)(loss)
        return loss

    return decorate


def check_scores(positive_scores: Tensor, negative_scores: Tensor) -> None:
    """Raise unless the shapes are (batch,) and (batch, negatives), both at least 1."""
    got = f"got {tuple(positive_scores.shape)} and {tuple(negative_scores.shape)}"
    if (
        positive_scores.ndim != 1
        or negative_scores.ndim != 2
        or len(positive_scores) != len(negative_scores)
    ):
        raise ValueError(
            "`positive_scores` must have shape (batch,) and `negative_scores` "
            f"(batch, negatives), {got}"
        )
    if negative_scores.numel() == 0:
        raise ValueError(f"a loss needs at least one pair and one negative, {got}")


def differences(positive_scores: Tensor, negative_scores: Tensor) -> Tensor:
    """`negative - positive` for every pair, shape (batch, negatives)."""
    return negative_scores - positive_scores.unsqueeze(1)
