"""One step of training: from a batch to moved parameters. Two ways, for the trainer they are the same."""

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from pslrec.backbones import Backbone
from pslrec.kernels import takes_adam
from pslrec.losses import Loss, Phase
from pslrec.sampling import PairBatches, UserBlocks
from pslrec.training._catalog_objective import CatalogObjective
from pslrec.training._lookup_adam import LookupAdam
from pslrec.training._objective import SampledObjective
from pslrec.training._optimizer import build_optimizers
from pslrec.training._options import TrainingOptions

MakeGenerator = Callable[[], torch.Generator]


class ModelStep(Protocol):
    """How a trainer moves the parameters."""

    optimizers: dict[str, Any]
    objective: Any

    def loss_of(self, batch: Any, phase: Phase, noise: MakeGenerator) -> Tensor:
        """The number to minimise, with its graph; `noise` makes what a backbone draws from."""
        ...

    def move(self, loss: Tensor, phase: Phase) -> None:
        """Take the gradient of what `loss_of` gave, and step."""
        ...

    def settle(self) -> None:
        """Bring all parameters up to date, before anybody looks at them."""
        ...

    def scale_rate(self, factor: float) -> None:
        """Go on with this part of the learning rates; all parameters must be up to date."""
        ...


class DenseStep:
    """All representations, their gradient by autograd, dense Adam on both tables."""

    def __init__(
        self, backbone: Backbone, loss: Loss, objective: Any, options: TrainingOptions
    ) -> None:
        self.backbone, self.objective = backbone, objective
        rates = {"learning_rate": options.learning_rate, "weight_decay": options.weight_decay}
        self.optimizers: dict[str, Any] = dict(build_optimizers(backbone, loss, **rates).items())
        self._rates = _rates(self.optimizers)

    def loss_of(self, batch: Any, phase: Phase, noise: MakeGenerator) -> Tensor:
        """See `ModelStep`."""
        self.optimizers[phase].zero_grad()
        with torch.set_grad_enabled(phase == "model"):
            representations = self.backbone(noise())
        loss: Tensor = self.objective(representations, batch)
        return loss

    def move(self, loss: Tensor, phase: Phase) -> None:
        """See `ModelStep`."""
        loss.backward()
        self.optimizers[phase].step()

    def settle(self) -> None:
        """Everything always is up to date."""

    def scale_rate(self, factor: float) -> None:
        """See `ModelStep`."""
        _scale_rates(self._rates, factor)


class LookupStep:
    """A block's users and all items, without representations of anybody else; `LookupAdam` makes up for those."""

    def __init__(
        self, backbone: Backbone, loss: Loss, objective: CatalogObjective, options: TrainingOptions
    ) -> None:
        self.objective = objective
        rates = {"learning_rate": options.learning_rate, "weight_decay": options.weight_decay}
        self._tables = LookupAdam(backbone, loss, **rates)
        self.optimizers: dict[str, Any] = {"model": self._tables}
        if self._tables.of_loss is not None:
            self.optimizers["loss"] = self._tables.of_loss
        if "adversary" in loss.phases:
            self.optimizers["adversary"] = build_optimizers(backbone, loss, **rates)["adversary"]
        self._rates = _rates(
            {name: each for name, each in self.optimizers.items() if name != "model"}
        )
        self._graphless = objective.graphless(backbone.user_table)
        self._gradients: Callable[[], tuple[Tensor, ...]] | None = None
        self._users = torch.empty(0, dtype=torch.int64)

    def loss_of(self, batch: Any, phase: Phase, noise: MakeGenerator) -> Tensor:  # noqa: ARG002
        """See `ModelStep`; where the compiled pass is there, the number has no graph."""
        self.optimizers[phase].zero_grad()
        self._users = batch.users
        users, items = self._tables.fetch(batch.users)
        if phase != "model":
            return self.objective.ranking_loss(users, items, batch)
        if self._graphless is not None and batch.drawn is None:
            catalog_pass, factor = self._graphless
            factor /= batch.n_pairs
            values = catalog_pass.values(users, items, batch)
            self._gradients = lambda: catalog_pass.gradients(factor)
            # A handful of numbers, which numpy adds before torch would have begun.
            return torch.tensor(float(values.numpy().sum()) * factor, dtype=torch.float64)
        users, items = users.requires_grad_(), items.detach().requires_grad_()
        loss = self.objective.ranking_loss(users, items, batch)
        self._gradients = lambda: _backward(loss, users, items)
        return loss

    def move(self, loss: Tensor, phase: Phase) -> None:
        """See `ModelStep`."""
        if phase != "model":
            loss.backward()
            self.optimizers[phase].step()
        elif self._gradients is not None:
            self._tables.step(self._users, *self._gradients())
            self._gradients = None

    def settle(self) -> None:
        """See `ModelStep`."""
        self._tables.settle()

    def scale_rate(self, factor: float) -> None:
        """See `ModelStep`."""
        self._tables.scale_rate(factor)
        _scale_rates(self._rates, factor)


def _backward(loss: Tensor, *leaves: Tensor) -> tuple[Tensor, ...]:
    loss.backward()
    return tuple(
        torch.zeros_like(leaf) if leaf.grad is None else leaf.grad.contiguous() for leaf in leaves
    )


def _rates(optimizers: dict[str, Any]) -> list[tuple[dict[str, Any], float]]:
    return [
        (group, group["lr"])
        for optimizer in optimizers.values()
        for group in optimizer.param_groups
    ]


def _scale_rates(rates: list[tuple[dict[str, Any], float]], factor: float) -> None:
    for group, rate in rates:
        group["lr"] = rate * factor


def build_step(
    backbone: Backbone, loss: Loss, batches: PairBatches | UserBlocks, options: TrainingOptions
) -> ModelStep:
    """The fastest way there is for this backbone, these batches and this machine."""
    if not isinstance(batches, UserBlocks):
        return DenseStep(backbone, loss, SampledObjective(backbone, loss), options)
    objective = CatalogObjective(backbone, loss)
    if backbone.is_lookup and takes_adam(backbone.user_table):
        return LookupStep(backbone, loss, objective, options)
    return DenseStep(backbone, loss, objective, options)
