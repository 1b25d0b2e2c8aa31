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
    TorchPass,
    catalog_row_values,
    runs_compiled,
    sampled_log_sum,
    sampled_scores,
    takes_catalog,
    takes_sampled,
    takes_torch,
    torch_catalog_value,
)
from pslrec.losses import Loss
from pslrec.sampling import CatalogBlock, PairBatch
from pslrec.training._catalog_views import catalog_factors, catalog_view
from pslrec.training._scores import SCALES

Kernels = Literal["auto", "torch", "plain"]
Negatives = Literal["sampled", "catalog"]
Gradients = Callable[[], tuple[Tensor, Tensor]]


def operation_for(
    loss: Loss,
    negatives: Negatives,
    vectors: Tensor,
    kernels: Kernels = "auto",
    torch_pass: TorchPass | None = None,
) -> "Operation":
    """The fastest operation that computes a loss; here, and nowhere else, a formula is substituted.

    Where the compiled module does not take the vectors, exact training runs the same algorithm in
    torch. With `kernels="plain"`, or where neither has an operation, the loss is computed as it is
    written, and every breakpoint in it is hit.

    Args:
        loss: what is to be computed.
        negatives: `sampled` for a `PairBatch`, `catalog` for a `CatalogBlock`, shared or not.
        vectors: such as those the operation will be given; their type and device decide.
        kernels: `auto`; `torch` for the operation in torch wherever there is one; or `plain` for
            the formula in any case.
        torch_pass: how the operation in torch is made. Products of another type than the compiled
            module has take that operation.
    """
    if negatives == "catalog":
        in_torch = _operation_in_torch(loss, vectors, kernels, torch_pass or TorchPass())
        if in_torch is not None:
            return in_torch
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


def _operation_in_torch(
    loss: Loss, vectors: Tensor, kernels: Kernels, torch_pass: TorchPass
) -> "CatalogTorch | None":
    """The pass in torch, if it is wanted rather than the compiled one, and exists for the loss."""
    is_other_product = torch_pass.products != "float32"
    may_be_compiled = kernels == "auto" and runs_compiled(vectors) and not is_other_product
    if kernels == "plain" or may_be_compiled:
        return None
    weighted = loss.weighted_form()
    if weighted is not None and takes_torch(vectors, weighted.form):
        return CatalogTorch(loss, weighted.form, torch_pass, draws=weighted.catalog_negatives)
    form = loss.fused_form()
    if form is not None and takes_torch(vectors, form):
        return CatalogTorch(loss, form, torch_pass)
    return None


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

    def held_bytes(self, of_batch: int, vectors: Tensor) -> int:  # noqa: ARG002
        """Bytes held for a batch at most.

        Args:
            of_batch: what all of its scores need at once.
            vectors: such as those that the operation will be given.
        """
        return of_batch

    @abstractmethod
    def mean(self, users: Tensor, items: Tensor, batch: Any) -> Tensor:
        """The mean loss of the batch's pairs, differentiable in both tables; arguments as below."""

    def value(self, users: Tensor, items: Tensor, batch: Any) -> Tensor:
        """What the batch adds to the mean loss of its step: all of it, in a single process.

        Args:
            users: a row per user of the batch, shape (batch, dimension).
            items: all items, shape (n_items, dimension).
            batch: whose vectors these are.
        """
        if len(batch.users) == 0:
            # Other processes have all pairs of this step. The sum is 0, and so is its gradient.
            return 0.0 * (users.sum() + items.sum())
        value = self.mean(users, items, batch)
        if batch.whole is None:
            return value
        share: float = batch.share
        return value * share

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

    def mean(self, users: Tensor, items: Tensor, batch: PairBatch) -> Tensor:
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

    def mean(self, users: Tensor, items: Tensor, batch: PairBatch) -> Tensor:
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

    def mean(self, users: Tensor, items: Tensor, batch: PairBatch) -> Tensor:
        values = self._values(users, items, batch)
        # Once more for the positives, which are one candidate of a thousand.
        positives = batch.candidates[:, :1].contiguous()
        scores = sampled_scores(users, items, positives, self._scale).squeeze(1)
        weights = self._loss.positive_weights(scores, batch.users)
        return self._form.factor * (weights * values).mean()


class CatalogFormula(Operation):
    """A loss as it is written, on the scores of all items."""

    def mean(self, users: Tensor, items: Tensor, batch: CatalogBlock) -> Tensor:
        view = catalog_view(self._loss, users, items, batch)
        return self._loss.catalog_values(view).mean()


class CatalogOfFactors(Operation):
    """A loss as it writes itself in log-sums of products, which are fused."""

    def mean(self, users: Tensor, items: Tensor, batch: CatalogBlock) -> Tensor:
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

    def mean(self, users: Tensor, items: Tensor, batch: CatalogBlock) -> Tensor:
        if batch.drawn is None:
            values = catalog_row_values(users, items, batch.lists, self._form, scale=self._scale)
            total = values.sum()
        else:
            # On a small catalogue of its own, to whose rows alone the gradient goes.
            reduced = batch.reduced()
            part = reduced.block
            rows = items.index_select(0, reduced.columns)
            values = catalog_row_values(users, rows, part.lists, self._form, scale=self._scale)
            total = values.sum() + logarithms_of_shares(self._form, reduced.shares, part)
        return self._form.factor * total.to(users.dtype) / batch.n_pairs

    def value_and_gradients(
        self, users: Tensor, items: Tensor, batch: CatalogBlock
    ) -> tuple[Tensor, Gradients]:
        """See `Operation`; without a graph, whose bookkeeping a small step would feel."""
        if batch.drawn is not None or len(batch.users) == 0:
            return super().value_and_gradients(users, items, batch)
        factor = self._form.factor * batch.share / batch.n_pairs
        self._pass.scores((users, items), scale=self._scale)
        values = self._pass.values(batch.lists, self._form)
        # A handful of numbers, which numpy adds before torch would have begun.
        value = torch.tensor(float(values.numpy().sum()) * factor, dtype=torch.float64)
        return value, lambda: self._pass.gradients(users, items, factor * self._scale)


def logarithms_of_shares(form: FusedForm, shares: Tensor, part: CatalogBlock) -> float:
    """What the loss of a part of the catalogue lacks: its sums stand for those over the whole.

    Args:
        form: what is computed; a mean stands for itself.
        shares: how many negatives of the whole each one of the part stands for, by user.
        part: the block on the part.
    """
    if form.kind == "mean":
        return 0.0
    counts = torch.from_numpy(part.positives.lengths)
    return float((shares.log() * counts).sum())


class CatalogWeighted(Operation):
    """Scores, loss and gradient of all items in one pass, for a loss that weighs its positives."""

    is_fused = True

    def __init__(self, loss: Loss, weighted: WeightedForm) -> None:
        super().__init__(loss)
        self._form = weighted.form
        self._draws = weighted.catalog_negatives
        # As in `CatalogFused`.
        self._pass = CatalogPass()

    def mean(self, users: Tensor, items: Tensor, batch: CatalogBlock) -> Tensor:
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
            weighting=_weighting(self._loss, batch, self._draws),
        )
        return self._form.factor * values.sum().to(users.dtype) / batch.n_pairs

    def value_and_gradients(
        self, users: Tensor, items: Tensor, batch: CatalogBlock
    ) -> tuple[Tensor, Gradients]:
        """See `CatalogFused`."""
        if batch.drawn is not None or len(batch.users) == 0:
            return super().value_and_gradients(users, items, batch)
        factor = self._form.factor * batch.share / batch.n_pairs
        self._pass.scores((users, items), scale=self._scale)
        weighting = _weighting(self._loss, batch, self._draws)
        values = self._pass.weighted_values(batch.lists, self._form, weighting)
        value = factor * values.sum()
        return value, lambda: self._pass.gradients(users, items, factor * self._scale)


def _weighting(loss: Loss, batch: CatalogBlock, draws: int) -> PositiveWeighting:
    # The rows of a block that was reduced to a part of the catalogue are still these users.
    def weigh(scores: Tensor, owners: Tensor) -> Tensor:
        users = batch.users.to(owners.device)
        return loss.positive_weights(scores, users[owners])

    return PositiveWeighting(weigh, draws)


class CatalogTorch(Operation):
    """Scores, loss and gradient of all items by the algorithm of the compiled pass, in torch.

    Args:
        loss: what is computed.
        form: its formula, or the one that its weights multiply.
        torch_pass: types and memory.
        draws: N of a loss that weighs its positives.
    """

    is_fused = True

    def __init__(
        self, loss: Loss, form: FusedForm, torch_pass: TorchPass, *, draws: int | None = None
    ) -> None:
        super().__init__(loss)
        self._form = form
        self._torch_pass = torch_pass
        self._draws = draws

    def held_bytes(self, of_batch: int, vectors: Tensor) -> int:  # noqa: ARG002
        """See `Operation`; users are taken in blocks of bounded memory."""
        return self._torch_pass.bytes_for(vectors.device)

    def mean(self, users: Tensor, items: Tensor, batch: CatalogBlock) -> Tensor:
        part = batch
        rows = items
        more = 0.0
        weighting = None
        if self._draws is not None:
            weighting = _weighting(self._loss, batch, self._draws)
        if batch.drawn is not None:
            reduced = batch.reduced()
            part = reduced.block
            rows = items.index_select(0, reduced.columns.to(items.device))
            if weighting is None:
                more = logarithms_of_shares(self._form, reduced.shares, part)
        total = torch_catalog_value(
            users,
            rows,
            part.lists,
            self._form,
            scale=self._scale,
            weighting=weighting,
            how=self._torch_pass,
        )
        return self._form.factor * (total + more) / batch.n_pairs
