"""How the mean loss of a batch is computed from vectors: as the loss is written, or fused.

`operation_for` is the one place where a fused operation takes over from the formula in the loss.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

from pslrec.forms import FusedForm, WeightedForm
from pslrec.kernels import (
    CatalogPass,
    PositiveWeighting,
    catalog_row_values,
    runs_compiled,
    sampled_log_sum,
    sampled_scores,
    takes_catalog,
    takes_sampled,
)
from pslrec.losses import Loss
from pslrec.sampling import CatalogBlock, PairBatch
from pslrec.training._catalog_views import catalog_factors, catalog_view
from pslrec.training._scores import SCALES

Kernels = Literal["auto", "plain"]
Negatives = Literal["sampled", "catalog"]
Gradients = Callable[[], tuple[Tensor, Tensor]]


def operation_for(
    loss: Loss, negatives: Negatives, vectors: Tensor, kernels: Kernels = "auto"
) -> "Operation":
    """The fastest operation that computes a loss; here, and nowhere else, a formula is substituted.

    With `kernels="plain"`, or where the compiled module does not take the vectors, the loss is
    computed as it is written, and every breakpoint in it is hit.

    Args:
        loss: what is to be computed.
        negatives: `sampled` for a `PairBatch`, `catalog` for a `CatalogBlock`, shared or not.
        vectors: such as those the operation will be given; their type and device decide.
        kernels: `auto`, or `plain` for the formula in any case.
    """
    may_fuse = kernels == "auto" and runs_compiled(vectors)
    weighted = loss.weighted_form()
    if may_fuse and weighted is not None:
        if negatives == "sampled" and takes_sampled(vectors, weighted.form):
            return SampledWeighted(loss, weighted.form)
        if negatives == "catalog" and takes_catalog(vectors, weighted.form):
            return CatalogWeighted(loss, weighted)
    form = loss.fused_form()
    if negatives == "sampled":
        if may_fuse and form is not None and takes_sampled(vectors, form):
            return SampledFused(loss, form)
        return SampledFormula(loss)
    if may_fuse and form is not None and takes_catalog(vectors, form):
        return CatalogFused(loss, form)
    if may_fuse and loss.takes_factors:
        return CatalogOfFactors(loss)
    return CatalogFormula(loss)


class Operation(ABC):
    """The mean loss of a batch, from the vectors of its users and of all items.

    Vectors are of norm 1 where the loss asks for cosines. The batch is a `PairBatch` or a
    `CatalogBlock`, as the operation was made for.
    """

    # Whether one fused pass computes the loss, so that no score is held twice.
    is_fused = False

    def __init__(self, loss: Loss) -> None:
        self._loss = loss
        self._scale = SCALES[loss.similarity]

    @abstractmethod
    def value(self, users: Tensor, items: Tensor, batch: Any) -> Tensor:
        """One number, differentiable in both tables.

        Args:
            users: a row per user of the batch, shape (batch, dimension).
            items: all items, shape (n_items, dimension).
            batch: whose vectors these are.
        """

    def value_and_gradients(
        self, users: Tensor, items: Tensor, batch: Any
    ) -> tuple[Tensor, Gradients]:
        """The number and what gives its gradients in both tables; for tables without a graph."""
        # Users are copies of a step's own; the items' tensor is kept and must stay without a graph.
        users = users.requires_grad_()
        items = items.detach().requires_grad_()
        value = self.value(users, items, batch)

        def gradients() -> tuple[Tensor, Tensor]:
            value.backward()
            return _gradient(users), _gradient(items)

        return value, gradients


def _gradient(leaf: Tensor) -> Tensor:
    if leaf.grad is None:
        return torch.zeros_like(leaf)
    return leaf.grad.contiguous()


class SampledFormula(Operation):
    """A loss as it is written, on the scores of sampled candidates."""

    def value(self, users: Tensor, items: Tensor, batch: PairBatch) -> Tensor:
        scores = sampled_scores(users, items, batch.candidates, self._scale)
        extras = {}
        # Row numbers of 8 bytes cost more than the scores, so they are made on demand only.
        if self._loss.needs:
            negatives = batch.negatives.long()
            extras = self._loss.extra_inputs(batch.users, batch.positives, negatives)
        value: Tensor = self._loss(scores[:, 0], scores[:, 1:], **extras)
        return value


class SampledFused(Operation):
    """Scores, loss and gradient of sampled candidates in one pass."""

    is_fused = True

    def __init__(self, loss: Loss, form: FusedForm) -> None:
        super().__init__(loss)
        self._form = form

    def value(self, users: Tensor, items: Tensor, batch: PairBatch) -> Tensor:
        return self._form.factor * self._values(users, items, batch).mean()

    def _values(self, users: Tensor, items: Tensor, batch: PairBatch) -> Tensor:
        return sampled_log_sum(
            users,
            items,
            batch.candidates,
            surrogate=self._form.surrogate,
            exponent=self._form.exponent,
            scale=self._scale,
        )


class SampledWeighted(SampledFused):
    """The same for a loss that weighs its positives."""

    def value(self, users: Tensor, items: Tensor, batch: PairBatch) -> Tensor:
        values = self._values(users, items, batch)
        # Once more for the positives, which are one candidate of a thousand.
        positives = batch.candidates[:, :1].contiguous()
        scores = sampled_scores(users, items, positives, self._scale).squeeze(1)
        weights = self._loss.positive_weights(scores, batch.users)
        return self._form.factor * (weights * values).mean()


class CatalogFormula(Operation):
    """A loss as it is written, on the scores of all items."""

    def value(self, users: Tensor, items: Tensor, batch: CatalogBlock) -> Tensor:
        view = catalog_view(self._loss, users, items, batch)
        return self._loss.catalog_values(view).mean()


class CatalogOfFactors(Operation):
    """A loss as it writes itself in log-sums of products, which are fused."""

    def value(self, users: Tensor, items: Tensor, batch: CatalogBlock) -> Tensor:
        factors = catalog_factors(self._loss, users, items, batch)
        return self._loss.catalog_values_of_factors(factors).mean()


class CatalogFused(Operation):
    """Scores, loss and gradient of all items in one pass."""

    is_fused = True

    def __init__(self, loss: Loss, form: FusedForm) -> None:
        super().__init__(loss)
        self._form = form
        # Holds no memory before its first use, which `value` never makes.
        self._pass = CatalogPass()

    def value(self, users: Tensor, items: Tensor, batch: CatalogBlock) -> Tensor:
        if batch.drawn is None:
            values = catalog_row_values(users, items, batch.lists, self._form, scale=self._scale)
            total = values.sum()
        else:
            # On a small catalogue of its own, to whose rows alone the gradient goes.
            reduced = batch.reduced()
            part = reduced.block
            rows = items.index_select(0, reduced.columns)
            values = catalog_row_values(users, rows, part.lists, self._form, scale=self._scale)
            total = values.sum() + self._logarithms_of_shares(reduced.shares, part)
        return self._form.factor * total.to(users.dtype) / batch.n_pairs

    def _logarithms_of_shares(self, shares: Tensor, part: CatalogBlock) -> float:
        # A sum over the part stands for one over the whole; a mean stands for itself.
        if self._form.kind == "mean":
            return 0.0
        counts = torch.from_numpy(part.positives.lengths)
        return float((shares.log() * counts).sum())

    def value_and_gradients(
        self, users: Tensor, items: Tensor, batch: CatalogBlock
    ) -> tuple[Tensor, Gradients]:
        """See `Operation`; without a graph, whose bookkeeping a small step would feel."""
        if batch.drawn is not None:
            return super().value_and_gradients(users, items, batch)
        factor = self._form.factor / batch.n_pairs
        self._pass.scores((users, items), scale=self._scale)
        values = self._pass.values(batch.lists, self._form)
        # A handful of numbers, which numpy adds before torch would have begun.
        value = torch.tensor(float(values.numpy().sum()) * factor, dtype=torch.float64)
        return value, lambda: self._pass.gradients(users, items, factor * self._scale)


class CatalogWeighted(Operation):
    """Scores, loss and gradient of all items in one pass, for a loss that weighs its positives."""

    is_fused = True

    def __init__(self, loss: Loss, weighted: WeightedForm) -> None:
        super().__init__(loss)
        self._form = weighted.form
        self._draws = weighted.catalog_negatives
        # As in `CatalogFused`.
        self._pass = CatalogPass()

    def value(self, users: Tensor, items: Tensor, batch: CatalogBlock) -> Tensor:
        part = batch
        rows = items
        if batch.drawn is not None:
            # A sum over the part is scaled by its own number of negatives, so it needs no share.
            reduced = batch.reduced()
            part = reduced.block
            rows = items.index_select(0, reduced.columns)
        values = catalog_row_values(
            users,
            rows,
            part.lists,
            self._form,
            scale=self._scale,
            weighting=self._weighting(batch),
        )
        return self._form.factor * values.sum().to(users.dtype) / batch.n_pairs

    def value_and_gradients(
        self, users: Tensor, items: Tensor, batch: CatalogBlock
    ) -> tuple[Tensor, Gradients]:
        """See `CatalogFused`."""
        if batch.drawn is not None:
            return super().value_and_gradients(users, items, batch)
        factor = self._form.factor / batch.n_pairs
        self._pass.scores((users, items), scale=self._scale)
        values = self._pass.weighted_values(batch.lists, self._form, self._weighting(batch))
        value = factor * values.sum()
        return value, lambda: self._pass.gradients(users, items, factor * self._scale)

    def _weighting(self, batch: CatalogBlock) -> PositiveWeighting:
        # The rows of a block that was reduced to a part of the catalogue are still these users.
        def weigh(scores: Tensor, owners: Tensor) -> Tensor:
            return self._loss.positive_weights(scores, batch.users[owners])

        return PositiveWeighting(weigh, self._draws)
