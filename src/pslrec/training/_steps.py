"""One step of training: from a batch to moved parameters.

There are two ways, for tables and for anything else; for the trainer they are the same.
"""

import logging
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from pslrec.backbones import Backbone
from pslrec.distributed import Group
from pslrec.errors import ConfigError
from pslrec.kernels import runs_compiled, takes_adam
from pslrec.losses import Loss, Phase
from pslrec.sampling import PairBatches, UserBlocks
from pslrec.training._catalog_objective import CatalogObjective
from pslrec.training._history_adam import HistoryAdam
from pslrec.training._layout import Layout
from pslrec.training._lookup_adam import LookupAdam
from pslrec.training._objective import SampledObjective
from pslrec.training._operations import CatalogFormula, Gradients, operation_for
from pslrec.training._optimizer import build_optimizers
from pslrec.training._options import TrainingOptions
from pslrec.training._sharded_step import ShardedStep

_LOG = logging.getLogger(__name__)

MakeGenerator = Callable[[], torch.Generator]


class ModelStep(Protocol):
    """How a trainer moves the parameters."""

    optimizers: dict[str, Any]
    objective: Any

    def loss_of(self, batch: Any, phase: Phase, noise: MakeGenerator) -> Tensor:
        """The number to minimise; `move` knows its gradient.

        Args:
            batch: what to train on.
            phase: what is trained.
            noise: makes the generator that a backbone draws from.
        """
        ...

    def move(self, loss: Tensor, phase: Phase) -> None:
        """Take the gradient of what `loss_of` returned, and step."""
        ...

    def settle(self) -> None:
        """Bring all parameters up to date, before anybody looks at them."""
        ...

    def scale_rate(self, factor: float) -> None:
        """Continue with this part of the learning rates; all parameters must be up to date."""
        ...


class DenseStep:
    """All representations, their gradient by autograd, dense Adam on both tables."""

    def __init__(
        self,
        backbone: Backbone,
        loss: Loss,
        objective: Any,
        options: TrainingOptions,
        layout: Layout,
    ) -> None:
        self.backbone = backbone
        self.objective = objective
        self._layout = layout
        optimizers = build_optimizers(
            backbone,
            loss,
            learning_rate=options.learning_rate,
            weight_decay=options.weight_decay,
        )
        self.optimizers: dict[str, Any] = dict(optimizers.items())
        self._rates = _Rates(self.optimizers)

    def loss_of(self, batch: Any, phase: Phase, noise: MakeGenerator) -> Tensor:
        """See `ModelStep`."""
        self.optimizers[phase].zero_grad()
        # While the adversary is trained, the model stands still and needs no graph.
        with torch.set_grad_enabled(phase == "model"):
            representations = self.backbone.step_tables(noise())
        loss: Tensor = self.objective(representations, batch)
        return loss

    def move(self, loss: Tensor, phase: Phase) -> None:
        """See `ModelStep`."""
        loss.backward()
        self._layout.sum_gradients(self.optimizers[phase])
        self.optimizers[phase].step()

    def settle(self) -> None:
        """Everything always is up to date."""

    def scale_rate(self, factor: float) -> None:
        """See `ModelStep`."""
        self._rates.scale(factor)


class LookupStep:
    """A block's users and all items, without representations of anybody else.

    `LookupAdam` makes up for the users that a step leaves out; `HistoryAdam` makes the users from
    their histories.
    """

    def __init__(
        self,
        backbone: Backbone,
        loss: Loss,
        objective: CatalogObjective,
        options: TrainingOptions,
        layout: Layout,
    ) -> None:
        self.objective = objective
        self._layout = layout
        rates = {"learning_rate": options.learning_rate, "weight_decay": options.weight_decay}
        make_tables = LookupAdam
        if backbone.sums_histories:
            make_tables = HistoryAdam
        self._tables = make_tables(backbone, loss, layout, **rates)
        # Beside the tables there are the loss's own parameters, and those of its adversary.
        others: dict[str, Any] = {}
        if self._tables.of_loss is not None:
            others["loss"] = self._tables.of_loss
        if "adversary" in loss.phases:
            others["adversary"] = build_optimizers(backbone, loss, **rates)["adversary"]
        self.optimizers: dict[str, Any] = {"model": self._tables, **others}
        self._rates = _Rates(others)
        # Chosen once, so that the memory of its pass is kept from step to step.
        self._operation = operation_for(
            loss, "catalog", backbone.user_table, options.kernels, options.torch_pass
        )
        self._gradients: Gradients | None = None
        self._users = torch.empty(0, dtype=torch.int64)

    def loss_of(self, batch: Any, phase: Phase, noise: MakeGenerator) -> Tensor:  # noqa: ARG002
        """See `ModelStep`; where a fused pass computes it, the number has no graph."""
        self.optimizers[phase].zero_grad()
        self._users = batch.users
        users, items = self._tables.fetch(batch.users, batch.visible)
        if phase != "model":
            return self._operation.value(users, items, batch)
        loss, self._gradients = self._operation.value_and_gradients(users, items, batch)
        return loss

    def move(self, loss: Tensor, phase: Phase) -> None:
        """See `ModelStep`."""
        if phase != "model":
            loss.backward()
            self._layout.sum_gradients(self.optimizers[phase])
            self.optimizers[phase].step()
        elif self._gradients is not None:
            self._tables.step(self._users, *self._gradients())
            # It holds the graph, where there is one.
            self._gradients = None

    def settle(self) -> None:
        """See `ModelStep`."""
        self._tables.settle()

    def scale_rate(self, factor: float) -> None:
        """See `ModelStep`."""
        self._tables.scale_rate(factor)
        self._rates.scale(factor)


class _Rates:
    """The learning rates of optimisers as they were made, from which schedules are counted."""

    def __init__(self, optimizers: dict[str, Any]) -> None:
        self._groups: list[tuple[dict[str, Any], float]] = []
        for optimizer in optimizers.values():
            for group in optimizer.param_groups:
                self._groups.append((group, group["lr"]))

    def scale(self, factor: float) -> None:
        for group, rate in self._groups:
            group["lr"] = rate * factor


def build_step(
    backbone: Backbone,
    loss: Loss,
    batches: PairBatches | UserBlocks,
    options: TrainingOptions,
    layout: Layout | None = None,
) -> ModelStep:
    """The fastest step there is for this backbone, these batches and this machine.

    Args:
        backbone: what is trained.
        loss: what it is trained for, built.
        batches: blocks of users for exact training, or pairs.
        options: learning rates, and whether the loss is computed as it is written.
        layout: which rows of the tables this process holds; all by default.
    """
    if layout is None:
        layout = Layout(backbone, loss, batches, Group())
    if layout.shards_items:
        return ShardedStep(backbone, loss, batches, options, layout)
    n_processes = layout.group.size
    if not isinstance(batches, UserBlocks):
        if options.products != "float32":
            raise ConfigError(
                f"`products` must be float32 with sampled negatives, got {options.products}; set "
                '`sampling.negatives` to "catalog" or "shared:N"'
            )
        sampled = SampledObjective(backbone, loss, options.kernels, n_processes=n_processes)
        return DenseStep(backbone, loss, sampled, options, layout)
    _tell_of_formula(backbone, loss, options)
    exact = CatalogObjective(
        backbone, loss, options.kernels, options.torch_pass, n_processes=n_processes
    )
    has_own_step = backbone.is_lookup or backbone.sums_histories
    if has_own_step and takes_adam(backbone.user_table):
        return LookupStep(backbone, loss, exact, options, layout)
    return DenseStep(backbone, loss, exact, options, layout)


def _tell_of_formula(backbone: Backbone, loss: Loss, options: TrainingOptions) -> None:
    """Say so where a loss is computed as it is written although nobody asked for that."""
    if options.kernels == "plain":
        return
    vectors = backbone.item_table
    operation = operation_for(loss, "catalog", vectors, options.kernels, options.torch_pass)
    if isinstance(operation, CatalogFormula) and not runs_compiled(vectors):
        _LOG.warning(
            "loss `%s` has no fused operation on the device %s and is computed as it is written, "
            "every positive against every negative, in pieces of bounded memory",
            loss.name,
            vectors.device,
        )
