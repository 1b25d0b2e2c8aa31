"""Exact training on any device that torch knows, by the algorithm of the compiled pass.

Users are taken in blocks of bounded memory: one product gives their scores, a row operation turns
these into the gradient in place, two products carry it to users and items. Nothing of the size of
users times items is kept for the way back, as the gradients are made along with the value.
"""

import math
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from pslrec.forms import FusedForm
from pslrec.kernels._catalog import FIRST_NODES, TOLERANCE, CatalogLists, PositiveWeighting
from pslrec.kernels._products import times, times_transposed, transposed_times
from pslrec.kernels._torch_operations import (
    BINOMIAL_WIDTH,
    EXPONENTIAL_WIDTH,
    NODE_WIDTH,
    has_rows_for,
    is_binomial,
    is_exponential,
    torch_row_values,
)
from pslrec.kernels._torch_rows import ALONE, Across, TorchLists, TorchRows

Products = Literal["float32", "bfloat16"]

# What a pass may hold beside the tables and their gradients. A processor is fastest where all of it
# stays in its caches; a device wants work for all of its cores.
DEVICE_BUDGET = 2**28
PROCESSOR_BUDGET = 2**24


class TorchPass(NamedTuple):
    """How a pass in torch is made.

    Args:
        products: type that the three matrix products take; `bfloat16` is faster on hardware that
            has it, and less exact.
        budget: bytes that a pass may hold beside the tables and their gradients; `None` leaves it
            to the device. One user at a time may need more.
        tolerance: of the interpolation, relative to the loss.
        compile: have `torch.compile` fuse what is done to rows of scores at a node.
        compiled: take the compiled module for walks over the items, where it has them; for vectors
            that `runs_compiled` takes.
    """

    products: Products = "float32"
    budget: int | None = None
    tolerance: float = TOLERANCE
    compile: bool = False
    compiled: bool = False

    def bytes_for(self, device: torch.device) -> int:
        """The budget on a device."""
        if self.budget is not None:
            return self.budget
        if device.type == "cpu":
            return PROCESSOR_BUDGET
        return DEVICE_BUDGET


def takes_torch(vectors: Tensor, form: FusedForm) -> bool:
    """Whether the pass in torch exists for these vectors and this form; any device will do."""
    return vectors.dtype == torch.float32 and has_rows_for(form)


def torch_catalog_value(
    users: Tensor,
    items: Tensor,
    lists: CatalogLists,
    form: FusedForm,
    *,
    scale: float,
    weighting: PositiveWeighting | None = None,
    how: TorchPass = TorchPass(),  # noqa: B008
) -> Tensor:
    """The loss of a block, added up over its users; differentiable in `users` and `items`.

    Args:
        users: the block's user vectors, shape (block, dimension), on any device.
        items: the whole table, shape (n_items, dimension).
        lists: what each row's items are.
        form: what is computed; one that `takes_torch`. Its factor is left to the caller.
        scale: factor of the scores: 1/2 makes half cosines of unit vectors.
        weighting: of the positives, if they have weights; not for a `mean`.
        how: types and memory of the pass.
    """
    arguments = (users, items, lists, form, scale, weighting, how)
    value: Tensor = _CatalogValue.apply(*arguments)  # type: ignore[no-untyped-call]
    return value


def divided_catalog_value(
    users: Tensor,
    items: Tensor,
    lists: CatalogLists,
    form: FusedForm,
    *,
    scale: float,
    columns: range,
    across: Across,
    how: TorchPass = TorchPass(),  # noqa: B008
) -> tuple[Tensor, Tensor, Tensor]:
    """The same where each process has some of the items, with the gradients in place of a graph.

    Three collectives for each group of rows, none of them as large as rows times items: the scores
    of the positives, the highest score of a negative, and sums over items.

    Args:
        users: the block's user vectors, the same in every process.
        items: those of this process, shape (len(columns), dimension).
        lists: what each row's items are, of all items.
        form: one that `has_rows_for`.
        scale: as above.
        columns: which of all items these are.
        across: the processes.
        how: types and memory of the pass.

    Returns:
        The loss of all users and items; what the items of this process add to the gradient in
        `users`; and the gradient in `items`.
    """
    n_items = len(items)
    if n_items == 0:
        # The column that `TorchLists` has for a process without items.
        items = items.new_zeros((1, items.shape[1]))
    work = _Pass(users, items, lists, form, scale, None, how, columns, across)
    value = work.run(wants_gradients=True)
    return value, work.user_gradients, work.item_gradients[:n_items]


class _CatalogValue(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        users: Tensor,
        items: Tensor,
        lists: CatalogLists,
        form: FusedForm,
        scale: float,
        weighting: PositiveWeighting | None,
        how: TorchPass,
    ) -> Tensor:
        work = _Pass(users.detach(), items.detach(), lists, form, scale, weighting, how)
        value = work.run(wants_gradients=any(ctx.needs_input_grad))
        ctx.save_for_backward(work.user_gradients, work.item_gradients)
        return value.to(users.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        found: list[Tensor | None] = []
        for number, gradient in enumerate(ctx.saved_tensors):
            wanted = None
            if ctx.needs_input_grad[number]:
                wanted = gradient * gradients[0]
            found.append(wanted)
        return *found, None, None, None, None, None


class _Pass:
    """One walk over a block of users."""

    def __init__(
        self,
        users: Tensor,
        items: Tensor,
        lists: CatalogLists,
        form: FusedForm,
        scale: float,
        weighting: PositiveWeighting | None,
        how: TorchPass,
        columns: range | None = None,
        across: Across = ALONE,
    ) -> None:
        if columns is None:
            columns = range(lists.n_items)
        self._form = form
        self._scale = scale
        self._weighting = weighting
        self._how = how
        self._lists = TorchLists(lists, users.device, columns, across)
        # All processes must cut alike, whatever number of items each one has.
        self._width = -(-lists.n_items // across.size)
        self._users = users
        self._items = items.to(self._product_type)
        self.user_gradients = torch.zeros_like(users)
        self.item_gradients = torch.zeros_like(items)

    @property
    def _product_type(self) -> torch.dtype:
        if self._how.products == "bfloat16":
            return torch.bfloat16
        return self._users.dtype

    def run(self, *, wants_gradients: bool) -> Tensor:
        """The value; the gradients are in the attributes afterwards, if they are wanted."""
        total = torch.zeros((), dtype=self._users.dtype, device=self._users.device)
        budget = self._how.bytes_for(self._users.device)
        # A quarter for the scores, half for what the row operation holds, the rest for luck.
        n_together = max(budget // 4 // (4 * self._width), 1)
        n_users = len(self._users)
        for first in range(self._lists.n_without, n_users, n_together):
            last = min(first + n_together, n_users)
            chosen = self._lists.order[first:last]
            vectors = (self._users[chosen] * self._scale).to(self._product_type)
            scores = self._scores(vectors)
            total += self._rows(scores, first, last, budget // 2)
            if wants_gradients:
                self._carry(scores, vectors, chosen)
        return total

    def _scores(self, vectors: Tensor) -> Tensor:
        scores = vectors.new_empty((len(vectors), len(self._items)))
        return times_transposed(vectors, self._items, out=scores).float()

    def _rows(self, scores: Tensor, first: int, last: int, budget: int) -> Tensor:
        """The value of some rows, some at a time; their scores become the gradient in place."""
        values: list[Tensor] = []
        start = first
        while start < last:
            end = min(start + self._n_rows(start, budget), last)
            some = scores[start - first : end - first]
            rows = replace(self._lists.cut(some, start, end), is_compiled=self._how.compiled)
            values.append(self._value(rows, self._lists.order[start:end]))
            start = end
        return torch.stack(values).sum()

    def _n_rows(self, start: int, budget: int) -> int:
        """How many rows from `start` on go together."""
        counts = self._lists.counts
        n_alike = len(counts) - start
        has_nodes = not (is_exponential(self._form) or is_binomial(self._form))
        # Those with few positives have these as nodes; they do not go with others.
        few = int(np.searchsorted(counts, FIRST_NODES, side="right"))
        if has_nodes and start < few:
            n_alike = few - start
        n_rows = n_alike
        # The longest list decides how wide all are, so a second look follows the first guess.
        for _ in range(2):
            longest = int(counts[start + n_rows - 1])
            size = row_bytes(self._form, self._width, longest, compiled=self._how.compiled)
            n_rows = min(max(budget // size, 1), n_rows)
        return n_rows

    def _value(self, rows: TorchRows, owners: Tensor) -> Tensor:
        if self._weighting is None:
            values = self._row_values(rows)
            return (values * rows.weights).sum().to(rows.scores.dtype)
        own = owners.unsqueeze(1).expand_as(rows.positives).reshape(-1)
        is_real = rows.weights
        # Autograd calls this without a graph, and the weights need a small one of their own.
        with torch.enable_grad():
            positive_scores = rows.positive_scores.clone().requires_grad_()
            found = self._weighting.weigh(positive_scores.reshape(-1), own)
            weights = found.view_as(positive_scores) * is_real
        rows = replace(rows, weights=weights.detach().to(is_real.dtype))
        log_sums = self._row_values(rows)
        log_sums += math.log(self._weighting.draws) - rows.totals.to(log_sums.dtype).log()
        if weights.requires_grad:
            # A weight moves with the score of its positive alone.
            (pulls,) = torch.autograd.grad(weights, positive_scores, log_sums.to(weights.dtype))
            rows.add_at_positives(rows.scores, pulls)
        return (log_sums * rows.weights).sum().to(rows.scores.dtype)

    def _row_values(self, rows: TorchRows) -> Tensor:
        return torch_row_values(rows, self._form, self._how.tolerance, compiles=self._how.compile)

    def _carry(self, slopes: Tensor, vectors: Tensor, chosen: Tensor) -> None:
        """From the gradient in the scores to those in the tables."""
        typed = slopes.to(self._product_type)
        of_users = times(typed, self._items, out=torch.empty_like(vectors)).to(self._users.dtype)
        self.user_gradients[chosen] = of_users * self._scale
        if self._product_type == self.item_gradients.dtype:
            transposed_times(typed, vectors, out=self.item_gradients, adds=True)
        else:
            # Added up in single precision, whatever the products are in.
            self.item_gradients += torch.mm(typed.T, vectors)


def row_bytes(form: FusedForm, n_items: int, longest: int, *, compiled: bool = False) -> int:
    """What a row operation holds per row beside the scores, about.

    Args:
        form: what is computed.
        n_items: width of a row.
        longest: list of positives.
        compiled: whether walks over the items are compiled, which hold a row or two of their own.
    """
    if is_exponential(form):
        return 4 * n_items * EXPONENTIAL_WIDTH
    if is_binomial(form):
        of_positives = 8 * BINOMIAL_WIDTH * longest * int(form.exponent + 1)
        return 4 * n_items * BINOMIAL_WIDTH + of_positives
    n_nodes = min(longest, FIRST_NODES)
    if compiled and form.kind == "log-sum":
        # The gradient, and one more where it is added up.
        return 4 * n_items * 2 + 8 * BINOMIAL_WIDTH * longest * FIRST_NODES
    of_positives = 8 * BINOMIAL_WIDTH * longest * FIRST_NODES
    return 4 * n_items * NODE_WIDTH * n_nodes + of_positives
