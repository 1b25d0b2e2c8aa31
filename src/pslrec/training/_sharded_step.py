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
from pslrec.kernels import sampled_scores, takes_adam
from pslrec.losses import Loss, Phase
from pslrec.sampling import CatalogBlock, PairBatch, PairBatches, UserBlocks
from pslrec.training._layout import Layout
from pslrec.training._options import TrainingOptions
from pslrec.training._scores import SCALES
from pslrec.training._shard_forms import takes_shards
from pslrec.training._shard_rows import ShardRows
from pslrec.training._shard_tables import DenseTables, OwnTables


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
    if form is None or not takes_shards(form):
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
        self._is_bounded = loss.similarity == "half-cosine"
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
        part = block
        columns: Tensor | None = None
        constant = 0.0
        n_pairs = block.n_pairs
        here = own
        if block.drawn is not None:
            reduced = block.reduced()
            part = reduced.block
            ends = torch.searchsorted(reduced.columns, torch.tensor([own.start, own.stop]))
            here = range(int(ends[0]), int(ends[1]))
            columns = reduced.columns[here.start : here.stop] - own.start
            items = items[columns]
            if self._form.kind != "mean":
                # A sum over the part stands for one over the whole.
                counts = torch.from_numpy(part.positives.lengths)
                constant = float((reduced.shares.log() * counts).sum())
        rows = self._rows(users, items, part, here)
        values, slopes = rows.values_and_slopes(self._form, is_bounded=self._is_bounded)
        factor = self._form.factor / n_pairs
        gradients = self._products(slopes, users, items, factor)
        if columns is not None:
            whole = torch.zeros((len(own), items.shape[1]), dtype=items.dtype)
            gradients = (gradients[0], whole.index_copy_(0, columns, gradients[1]))
        return factor * (values.sum() + constant), gradients

    def _rows(self, users: Tensor, items: Tensor, part: CatalogBlock, here: range) -> ShardRows:
        owners, pair_items = part.pairs()
        is_here = (pair_items >= here.start) & (pair_items < here.stop)
        return ShardRows(
            scores=self._scale * (users @ items.T),
            weights=part.weights(users.dtype, here),
            totals=part.lists.total_weights(),
            owners=owners,
            columns=pair_items[is_here] - here.start,
            is_here=is_here,
            n_columns=part.pool.n_items,
            group=self._layout.group,
        )

    def _products(
        self, slopes: Tensor, users: Tensor, items: Tensor, factor: float
    ) -> tuple[Tensor, Tensor]:
        scale = self._scale * factor
        return scale * (slopes @ items), scale * (slopes.T @ users)

    def _sampled(
        self, users: Tensor, items: Tensor, batch: PairBatch
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        own = self._layout.own_items
        candidates, is_here = _own_candidates(batch.candidates, own)
        scores = sampled_scores(users, items, candidates, self._scale)
        weights = is_here.to(scores.dtype)
        # Column 0 is the positive, which is no negative of its own.
        is_positive_here = is_here[:, 0].clone()
        weights[:, 0] = 0.0
        n_negatives = batch.candidates.shape[1] - 1
        owners = torch.arange(len(scores))
        rows = ShardRows(
            scores=scores,
            weights=weights,
            totals=torch.full((len(scores),), float(n_negatives), dtype=torch.float64),
            owners=owners,
            columns=torch.zeros(int(is_positive_here.sum()), dtype=torch.int64),
            is_here=is_positive_here,
            n_columns=batch.candidates.shape[1],
            group=self._layout.group,
        )
        values, slopes = rows.values_and_slopes(self._form, is_bounded=self._is_bounded)
        factor = self._form.factor / len(scores)
        user_gradient, item_gradient = _sampled_gradients(
            users, items, candidates, self._scale * factor * slopes
        )
        return factor * values.sum(), (user_gradient, item_gradient)


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
