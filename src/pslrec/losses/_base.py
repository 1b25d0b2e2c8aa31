"""What every loss promises: scores in, one number out, and the few hooks a trainer calls on all losses alike.

Scores are half cosines and temperatures the paper's, unless a loss declares the inner product.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

# The losses import these from here.
from pslrec.checks import one_of as one_of  # noqa: PLC0414
from pslrec.checks import positive_number as positive_number  # noqa: PLC0414
from pslrec.checks import whole_number as whole_number  # noqa: PLC0414
from pslrec.errors import ConfigError, PslrecError
from pslrec.losses._catalog import CatalogFactors, CatalogStep, CatalogView
from pslrec.registry import Registry, constructor_parameters

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
    """Inner products of users (batch, dimension) with the rows of `items` named by candidates (batch, any)."""
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
        history: the training positives as offsets (n_users + 1,) into item rows (pairs,), grouped by user.
        products: how to compute what `candidate_products` does; a trainer that has something faster passes it.
    """

    n_users: int
    n_items: int
    dimension: int
    generator: torch.Generator | None = None
    history: tuple[Tensor, Tensor] | None = None
    products: Callable[[Tensor, Tensor, Tensor], Tensor] = candidate_products


@dataclass(frozen=True)
class Step:
    """The batch that has just been trained on, for losses that look at the model again after it moved.

    Args:
        users: row number of the user of each pair, shape (batch,).
        positives: row number of the positive item of each pair, shape (batch,).
        negatives: row numbers of its negatives, shape (batch, negatives).
        score: gives the current model's scores of users (batch,) for items (batch, any), without a graph.
    """

    users: Tensor
    positives: Tensor
    negatives: Tensor
    score: Callable[[Tensor, Tensor], Tensor]


class LogSumForm(NamedTuple):
    """A loss that is `factor * log Σ_j σ(s_j - s)^exponent` over the negatives, which can be computed in one fused pass."""

    surrogate: str
    exponent: float
    factor: float = 1.0


class CatalogForm(NamedTuple):
    """How a loss is computed over the whole catalogue in one fused pass.

    `log-sum` is `factor * log Σ_j σ(s_j - s)^exponent`, `inside` is `factor * log Σ_j σ(exponent (s_j - s))`, and `mean` is
    `factor * mean_j log σ(s_j - s)`.
    """

    kind: Literal["log-sum", "inside", "mean"]
    surrogate: str
    exponent: float = 1.0
    factor: float = 1.0


class Loss(nn.Module, ABC):
    """Base of all losses: `loss(positive_scores, negative_scores)` is the mean over the batch of pairs.

    `pairwise_values` gives the values before the mean, one per positive. What a loss wants beyond scores it
    names in `needs`, and gets it by keyword. A trainer treats every loss alike; the hooks do nothing unless a
    loss fills them:

        loss.build(Setup(n_users, n_items, dimension, generator, history))    # then load_state_dict, if any
        optimisers = {phase: Adam(... + loss.parameter_groups(learning_rate, phase)) for phase in loss.phases}
        for epoch in range(epochs):
            for phase in loss.epoch_phases(epoch):    # "adversary": the model stands still, without a graph
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
    domain: tuple[float, float] = (
        -0.5,
        0.5,
    )  # of one score; value and gradient are finite on all of it
    default_negatives: int = 1000
    initialization: str | None = None  # of the backbone's tables; None leaves the backbone its own
    needs: frozenset[str] = frozenset()  # tensors that `forward` takes by keyword
    phases: tuple[Phase, ...] = ("model",)
    selection_k: int | None = None  # list length that selects the model, if the loss aims at one
    falls_with_positive: bool = True  # never rises when a positive's score rises
    search_space: SearchSpace = search_grid()  # of an instance: depends on its options for some

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
        """Make whatever state depends on the data; called once, before training or loading a state dict."""

    def parameter_groups(
        self, learning_rate: float, phase: Phase = "model"
    ) -> list[dict[str, Any]]:
        """The loss's own parameters, for the optimiser of one phase; empty if it has none."""
        parameters = list(self.parameters()) if phase == "model" else []
        return [{"params": parameters, "lr": learning_rate}] if parameters else []

    def epoch_phases(self, epoch: int) -> tuple[Phase, ...]:  # noqa: ARG002
        """What an epoch, counted from 0, trains: one pass over the data for each entry, in this order."""
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

    def log_sum_form(self) -> LogSumForm | None:
        """The loss as a `LogSumForm`, if it is one; `None` lets it be computed from scores as it is written."""
        return None

    def catalog_form(self) -> CatalogForm | None:
        """The loss over the whole catalogue as a `CatalogForm`, if it is one; `None` takes `catalog_values`."""
        form = self.log_sum_form()
        return None if form is None else CatalogForm("log-sum", *form)

    def catalog_values(self, view: CatalogView) -> Tensor:  # noqa: ARG002
        """The loss of each positive of a block over all its negatives, shape (pairs,); as sampling means it."""
        raise ConfigError(
            f"loss `{self.name}` has no `catalog_values`, so it can not be trained on the whole catalogue; "
            "set `sampling.negatives` to a number"
        )

    def catalog_values_of_factors(self, factors: CatalogFactors) -> Tensor:
        """The same from vectors; a loss defines it where that is faster, beside `catalog_values`."""
        raise NotImplementedError

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
            f"`positive_scores` must have shape (batch,) and `negative_scores` (batch, negatives), {got}"
        )
    if negative_scores.numel() == 0:
        raise ValueError(f"a loss needs at least one pair and one negative, {got}")


def differences(positive_scores: Tensor, negative_scores: Tensor) -> Tensor:
    """`negative - positive` for every pair, shape (batch, negatives)."""
    return negative_scores - positive_scores.unsqueeze(1)
