"""A step where each process holds some rows of the item table, with its moments and gradients.

Every process sees all users of the step and its own items. The vectors of the users go to all of
them, the gradients of the users come back as a sum; those of items never travel.
"""

from typing import Any

import torch
from torch import Tensor

from pslrec.backbones import Backbone
from pslrec.errors import ConfigError
from pslrec.forms import FusedForm
from pslrec.kernels import (
    TOLERANCE,
    TorchPass,
    divided_catalog_value,
    has_rows_for,
    rows_of_candidates,
    runs_compiled,
    sampled_scores,
    takes_adam,
    torch_row_values,
)
from pslrec.losses import Loss, Phase
from pslrec.sampling import CatalogBlock, PairBatch, PairBatches, UserBlocks
from pslrec.training._layout import Layout
from pslrec.training._operations import logarithms_of_shares
from pslrec.training._options import TrainingOptions
from pslrec.training._scores import SCALES
from pslrec.training._shard_tables import DenseTables, OwnTables

# Every group of rows costs three collectives, so that they are to be few, however small the caches.
BUDGET = 2**28


def sharded_form(loss: Loss) -> FusedForm:
    """The form of a loss, if it can be trained with divided items.

    Raises:
        ConfigError: it needs more than sums over items.
    """
    form = loss.fused_form()
    if loss.weighted_form() is not None:
        raise ConfigError(
            f"loss `{loss.name}` cannot be trained with `--shard-items`: its thresholds are the "
            "K-th largest scores of whole rows; leave `--shard-items` out"
        )
    if form is None or not has_rows_for(form):
        raise ConfigError(
            f"loss `{loss.name}` cannot be trained with `--shard-items`, which needs a loss that "
            "is a sum over items with a `fused_form`, such as sl, bsl, bpr or the psl ones; "
            "leave `--shard-items` out"
        )
    return form


class ShardedStep:
    """A step on all users of a batch and the items of this process.

    Args:
        backbone: its tables have the rows of this process.
        loss: a sum over items.
        batches: what is trained on.
        options: learning rates.
        layout: which rows these are.
    """

    def __init__(
        self,
        backbone: Backbone,
        loss: Loss,
        batches: PairBatches | UserBlocks,
        options: TrainingOptions,
        layout: Layout,
    ) -> None:
        self._form = sharded_form(loss)
        self._scale = SCALES[loss.similarity]
        self._layout = layout
        rates = {"learning_rate": options.learning_rate, "weight_decay": options.weight_decay}
        # The kind of Adam that a single process would take, so that it can resume.
        is_exact = isinstance(batches, UserBlocks)
        self._tables: OwnTables | DenseTables
        if is_exact and takes_adam(backbone.user_table):
            self._tables = OwnTables(backbone, loss, layout, rates)
        else:
            self._tables = DenseTables(backbone, loss, layout, rates)
        self.optimizers: dict[str, Any] = {"model": self._tables.optimizer}
        self.objective = _NoObjective()
        self._gradients: tuple[Tensor, Tensor] | None = None

    def loss_of(self, batch: Any, phase: Phase, noise: Any) -> Tensor:  # noqa: ARG002
        """See `ModelStep`; every process knows the whole loss, and gives its share of it."""
        users, items = self._tables.fetch(batch)
        if isinstance(batch, CatalogBlock):
            value, self._gradients = self._exact(users, items, batch)
        else:
            value, self._gradients = self._sampled(users, items, batch)
        return value / self._layout.group.size

    def move(self, loss: Tensor, phase: Phase) -> None:  # noqa: ARG002
        """See `ModelStep`."""
        if self._gradients is None:
            return
        user_gradient, item_gradient = self._gradients
        self._gradients = None
        self._layout.group.sum(user_gradient)
        self._tables.step(user_gradient, item_gradient)

    def settle(self) -> None:
        """See `ModelStep`."""
        self._tables.settle()

    def scale_rate(self, factor: float) -> None:
        """See `ModelStep`."""
        self._tables.scale_rate(factor)

    def _exact(
        self, users: Tensor, items: Tensor, block: CatalogBlock
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        own = self._layout.own_items
        if block.drawn is None:
            return self._exact_part(users, items, block, own)
        reduced = block.reduced()
        ends = torch.searchsorted(reduced.columns, torch.tensor([own.start, own.stop]))
        here = range(int(ends[0]), int(ends[1]))
        drawn = (reduced.columns[here.start : here.stop] - own.start).to(items.device)
        value, gradients = self._exact_part(users, items[drawn], reduced.block, here)
        logarithms = logarithms_of_shares(self._form, reduced.shares, reduced.block)
        value += self._form.factor * logarithms / block.n_pairs
        whole = torch.zeros_like(items)
        whole[drawn] = gradients[1]
        return value, (gradients[0], whole)

    def _exact_part(
        self, users: Tensor, items: Tensor, part: CatalogBlock, here: range
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        value, user_gradient, item_gradient = divided_catalog_value(
            users,
            items,
            part.lists,
            self._form,
            scale=self._scale,
            columns=here,
            across=self._layout.group,
            how=TorchPass(budget=BUDGET, compiled=runs_compiled(users)),
        )
        factor = self._form.factor / part.n_pairs
        return factor * value, (factor * user_gradient, factor * item_gradient)

    def _sampled(
        self, users: Tensor, items: Tensor, batch: PairBatch
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        candidates, is_here = _own_candidates(batch.candidates, self._layout.own_items)
        candidates = candidates.to(items.device)
        is_here = is_here.to(items.device)
        scores = sampled_scores(users, items, candidates, self._scale)
        n_negatives = batch.candidates.shape[1] - 1
        rows = rows_of_candidates(
            scores,
            is_here,
            n_negatives,
            self._layout.group,
            is_compiled=runs_compiled(users),
        )
        values = torch_row_values(rows, self._form, TOLERANCE)
        factor = self._form.factor / len(scores)
        # The scores have become the gradient.
        slopes = self._scale * factor * rows.scores
        return factor * values.sum(), _sampled_gradients(users, items, candidates, slopes)


def _own_candidates(candidates: Tensor, own: range) -> tuple[Tensor, Tensor]:
    """The candidates that this process holds, counted from its first item, and where there are some.

    The positive keeps column 0; negatives move to the left, so that the width is about the share of
    the process. What fills the rest stands for nothing.
    """
    is_own = (candidates >= own.start) & (candidates < own.stop)
    positives = is_own[:, :1]
    negatives = is_own[:, 1:]
    width = int(negatives.sum(dim=1).max())
    order = torch.argsort(negatives.to(torch.int8), dim=1, descending=True, stable=True)[:, :width]
    kept = torch.cat([candidates[:, :1], candidates[:, 1:].gather(1, order)], dim=1)
    is_here = torch.cat([positives, negatives.gather(1, order)], dim=1)
    shifted = torch.where(is_here, kept - own.start, 0)
    return shifted.int().contiguous(), is_here


def _sampled_gradients(
    users: Tensor, items: Tensor, candidates: Tensor, slopes: Tensor
) -> tuple[Tensor, Tensor]:
    with torch.enable_grad():
        user_leaf = users.detach().requires_grad_()
        item_leaf = items.detach().requires_grad_()
        scores = sampled_scores(user_leaf, item_leaf, candidates)
    user_gradient, item_gradient = torch.autograd.grad(scores, [user_leaf, item_leaf], slopes)
    return user_gradient.contiguous(), item_gradient.contiguous()


class _NoObjective:
    """What a loss is told after a step; those that take divided items ask for nothing."""

    def step_of(self, batch: Any) -> None:  # noqa: ARG002
        return None
