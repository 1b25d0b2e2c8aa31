"""Exact training in one compiled pass: losses whose value is a function of one variable per user.

    log-sum   L_u = sum over the positives i of u of log H_u(s_i),
              H_u(x) = sum_j w_j sigma(s_j - x)^exponent
    inside    the same with H_u(x) = sum_j w_j sigma(exponent * (s_j - x))
    mean      L_u = sum over the positives i of u of
              sum_j w_j log sigma(s_j - s_i) / sum_j w_j

Where positives have weights v, a log-sum or an inside form becomes

    L_u = sum over the positives i of u of v_i(s_i) * log(N / W_u * H_u(s_i)),    W_u = sum_j w_j

One matrix product gives all scores of a block of users, a row operation turns them into the
gradient in place, two more products carry it to users and items. `docs/explanation/exact.md` explains why
the row operation does not grow with the number of positives. The twins are the losses themselves, by
`catalog_values`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from pslrec.forms import FusedForm
from pslrec.kernels._log_sum import SURROGATES
from pslrec.kernels._native import native
from pslrec.kernels._products import times, times_transposed, transposed_times
from pslrec.kernels._sampled import runs_compiled
from pslrec.rows import Rows

TOLERANCE = 1e-7
FIRST_NODES = 8

# The numbers by which the compiled module knows the operations.
OPERATIONS = {("log-sum", surrogate): number for number, surrogate in enumerate(SURROGATES)}
OPERATIONS["mean", "softplus"] = 5
OPERATIONS["inside", "tanh"] = 6
OPERATIONS["inside", "relu"] = 7
OPERATIONS["inside", "softplus"] = 8
OPERATIONS["inside", "atan"] = 9

_SOFTMAX = FusedForm("log-sum", "exp")
# Offsets, weights and values of the positives where none has a weight.
_NOTHING_WEIGHTED = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32), np.empty(0))


class CatalogLists(NamedTuple):
    """Which items are positives and negatives in each row of a matrix of scores.

    Args:
        owners: whose lists belong to each row of scores, shape (block,), int64.
        positives: items to be ranked high, by owner.
        taken: items that are not negatives, by owner; all others weigh 1.
        n_items: size of the catalogue, which is the width of the scores.
        false_negatives: items that are negatives although they may be taken, by owner.
        noise: what the false negatives of an owner weigh together, as a share of all weight.
    """

    owners: np.ndarray
    positives: Rows
    taken: Rows
    n_items: int
    false_negatives: Rows | None = None
    noise: float = 0.0

    def total_weights(self) -> Tensor:
        """What all negatives of each row weigh together, shape (block,), float64."""
        n_plain = self.n_items - self.taken.lengths[self.owners]
        totals = n_plain.astype(np.float64)
        if self.false_negatives is not None and self.noise > 0:
            # All draws of the false negatives together are to those of the others as noise to
            # 1 - noise.
            has_some = self.false_negatives.lengths[self.owners] > 0
            totals[has_some] /= 1.0 - self.noise
        return torch.from_numpy(totals)


class PositiveWeighting(NamedTuple):
    """Weights that multiply the loss of each positive, and the scale of the sum they multiply.

    Args:
        weigh: gives the weights, shape (pairs,), from the scores of the positives (pairs,) and the
            row of the block that each belongs to (pairs,); differentiable in the scores, unless
            the weights are to count as numbers.
        draws: N; the sum over a user's negatives is their mean times this.
    """

    weigh: Callable[[Tensor, Tensor], Tensor]
    draws: int


def takes_catalog(vectors: Tensor, form: FusedForm) -> bool:
    """Whether the compiled row operation exists for these vectors and this form."""
    return runs_compiled(vectors) and (form.kind, form.surrogate) in OPERATIONS


def row_gradients(
    scores: Tensor,
    lists: CatalogLists,
    form: FusedForm,
    *,
    tolerance: float = TOLERANCE,
    first_nodes: int = FIRST_NODES,
) -> Tensor:
    """`L_u` of every row of scores, float64; the scores become its gradient, in place.

    The factor of the form is left to the caller, for whom it is one with the mean over a batch.

    Args:
        scores: shape (block, n_items), float32.
        lists: what each row's items are.
        form: what is computed.
        tolerance: of the interpolation, relative to the loss; 0 stays at `first_nodes` nodes.
        first_nodes: how many nodes are tried first.
    """
    return _row_operation(scores, lists, form, (tolerance, first_nodes), _NOTHING_WEIGHTED)


def weighted_row_gradients(
    scores: Tensor,
    lists: CatalogLists,
    form: FusedForm,
    weights: Tensor,
    *,
    tolerance: float = TOLERANCE,
    first_nodes: int = FIRST_NODES,
) -> Tensor:
    """The loss of every positive before its weight, shape (pairs,), float64.

    The scores become the gradient of the weighted sum of these, in place; the weights count as
    numbers in it. Other arguments as in `row_gradients`.

    Args:
        scores: shape (block, n_items), float32.
        lists: what each row's items are.
        form: what is computed.
        weights: of the positives, in the order of `lists.positives.positions(lists.owners)`.
        tolerance: as in `row_gradients`.
        first_nodes: as in `row_gradients`.
    """
    offsets = np.zeros(len(scores) + 1, dtype=np.int64)
    np.cumsum(lists.positives.lengths[lists.owners], out=offsets[1:])
    n_pairs = int(offsets[-1])
    # The compiled function reads wherever the offsets say.
    if weights.shape != (n_pairs,):
        raise ValueError(
            f"`weights` must have one number for each of the block's {n_pairs} positives, "
            f"got shape {tuple(weights.shape)}"
        )
    values = np.empty(n_pairs)
    given = np.ascontiguousarray(weights.detach().numpy(), dtype=np.float32)
    _row_operation(scores, lists, form, (tolerance, first_nodes), (offsets, given, values))
    return torch.from_numpy(values)


def _row_operation(
    scores: Tensor,
    lists: CatalogLists,
    form: FusedForm,
    interpolation: tuple[float, int],
    of_positives: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> Tensor:
    values = torch.empty(len(scores), dtype=torch.float64)
    false_negatives = lists.false_negatives
    noise = lists.noise
    if false_negatives is None:
        # The compiled function wants some lists here, and does not read them without noise.
        false_negatives = lists.taken
        noise = 0.0
    native.catalog_rows(
        OPERATIONS[form.kind, form.surrogate],
        form.exponent,
        *interpolation,
        scores.numpy(),
        lists.owners,
        lists.positives.offsets,
        lists.positives.items,
        lists.taken.offsets,
        lists.taken.items,
        false_negatives.offsets,
        false_negatives.items,
        noise,
        values.numpy(),
        *of_positives,
    )
    return values


class CatalogPass:
    """One pass over a block of users and all items, in memory that is kept for the next block.

    Fresh memory of a block's size costs as much as a matrix product. A caller without a graph holds
    a pass and uses it block after block; the differentiable functions below take an idle one per
    block and return it on the way back.

    >>> catalog_pass = CatalogPass()
    >>> catalog_pass.scores((torch.eye(2), torch.tensor([[2.0, 4.0]])), scale=0.5)
    tensor([[1.],
            [2.]])
    """

    def __init__(self) -> None:
        self._kept: dict[str, Tensor] = {}
        self.slopes = torch.empty(0, 0)

    def scores(self, *factors: tuple[Tensor, Tensor], scale: float = 1.0) -> Tensor:
        """`scale * (left @ right.T)`, added up over all pairs of tables; held until the next call.

        Args:
            factors: tables of shapes (block, any) and (n_items, the same).
            scale: 1/2 makes half cosines of unit vectors.
        """
        left, right = factors[0]
        self.slopes = self._memory("slopes", len(left), len(right))
        for number, (left, right) in enumerate(factors):
            # The memory holds anything, so the first product must overwrite and not add.
            times_transposed(left, right, out=self.slopes, scale=scale, adds=number > 0)
        return self.slopes

    def values(self, lists: CatalogLists, form: FusedForm) -> Tensor:
        """`L_u` of every user by the last scores, which become its gradient in place."""
        return row_gradients(self.slopes, lists, form)

    def weighted_values(
        self, lists: CatalogLists, form: FusedForm, weighting: PositiveWeighting
    ) -> Tensor:
        """The same where positives have weights, whose own gradient is in what the scores become."""
        positions, columns = lists.positives.positions(lists.owners)
        owners = torch.from_numpy(positions)
        items = torch.from_numpy(columns)
        # Autograd calls this without a graph, and the weights need a small one of their own.
        with torch.enable_grad():
            scores = self.slopes[owners, items].requires_grad_()
            weights = weighting.weigh(scores, owners)
        log_sums = weighted_row_gradients(self.slopes, lists, form, weights)
        scales = math.log(weighting.draws) - lists.total_weights().log()
        log_sums += scales[owners]
        if weights.requires_grad:
            # A weight moves with the score of its positive alone.
            (pulls,) = torch.autograd.grad(weights, scores, log_sums.to(weights.dtype))
            self.slopes.index_put_((owners, items), pulls, accumulate=True)
        values = torch.zeros(len(self.slopes), dtype=torch.float64)
        return values.index_add_(0, owners, weights.detach() * log_sums)

    def gradients(self, users: Tensor, items: Tensor, factor: float) -> tuple[Tensor, Tensor]:
        """Gradients of `factor * sum(values)` in the tables; they hold until the next call.

        Args:
            users: whose scores with `items` the pass began with.
            items: the other table.
            factor: of the loss, times the scale of the scores. It costs nothing within a product,
                and a walk over the table anywhere else.
        """
        user_gradients = self._memory("users", *users.shape)
        item_gradients = self._memory("items", *items.shape)
        times(self.slopes, items, out=user_gradients, scale=factor)
        transposed_times(self.slopes, users, out=item_gradients, scale=factor)
        return user_gradients, item_gradients

    def gradients_by_row(
        self, tables: Sequence[Tensor], factors: Tensor, wanted: Sequence[bool]
    ) -> list[Tensor | None]:
        """Gradients of `sum(factors * values)` in all tables, in fresh memory.

        Autograd keeps what it is given, so none of this may lie in memory that is used again.

        Args:
            tables: left, right, left, right, ... in the order of the pairs that `scores` took.
            factors: by row of the scores, shape (block,).
            wanted: of which tables; the others cost nothing. Items stand still for new users, whose
                request should not pay for a gradient of the size of the catalogue.
        """
        by_row = factors.unsqueeze(1)
        found: list[Tensor | None] = []
        for number in range(len(tables)):
            is_left = number % 2 == 0
            gradient = None
            if wanted[number] and is_left:
                gradient = torch.empty_like(tables[number])
                times(self.slopes, tables[number + 1], out=gradient)
                gradient.mul_(by_row)
            elif wanted[number]:
                weighted = tables[number - 1] * by_row
                gradient = torch.empty_like(tables[number])
                transposed_times(self.slopes, weighted, out=gradient)
            found.append(gradient)
        return found

    def _memory(self, name: str, rows: int, columns: int) -> Tensor:
        size = rows * columns
        kept = self._kept.get(name)
        if kept is None or kept.numel() < size:
            # A later block may have some more users.
            kept = torch.empty(size + size // 4)
            self._kept[name] = kept
        return kept.as_strided((rows, columns), (columns, 1))


# A graph holds its pass until it was walked back; one that never is, is freed with its pass.
# Taking from a list and putting back are single operations, so threads do not meet in a pass.
_IDLE: list[CatalogPass] = []


def _idle_pass() -> CatalogPass:
    try:
        return _IDLE.pop()
    except IndexError:
        return CatalogPass()


def catalog_row_values(
    users: Tensor,
    items: Tensor,
    lists: CatalogLists,
    form: FusedForm,
    *,
    scale: float,
    weighting: PositiveWeighting | None = None,
) -> Tensor:
    """`L_u` of every user of a block, float64; differentiable in `users` and `items`.

    Args:
        users: the block's user vectors, shape (block, dimension), float32.
        items: the whole table, shape (n_items, dimension).
        lists: what each row's items are.
        form: what is computed; one that `takes_catalog`. Its factor is left to the caller.
        scale: factor of the scores: 1/2 makes half cosines of unit vectors.
        weighting: of the positives, if they have weights; not for a `mean`.
    """
    # The compiled function writes wherever the lists say; a smaller table would be overrun.
    if len(users) != len(lists.owners) or len(items) != lists.n_items:
        raise ValueError(
            "`users` and `items` must have a row for each of the block's "
            f"{len(lists.owners)} users and of the catalogue's {lists.n_items} items, "
            f"got {len(users)} and {len(items)}"
        )
    arguments = (users, items, lists, form, scale, weighting)
    values: Tensor = _CatalogRows.apply(*arguments)  # type: ignore[no-untyped-call]
    return values


def catalog_log_sums(lists: CatalogLists, *factors: tuple[Tensor, Tensor]) -> Tensor:
    """`log sum_j w_j exp(sum_f <left_f[u], right_f[j]>)` of every user, shape (block,), float32.

    Differentiable in all tables; only those that ask for a gradient cost a product on the way back.
    For tensors that `runs_compiled` takes.

    Args:
        lists: what each row's items are; every user has a positive at least.
        factors: tables whose products are added up, shapes (block, any) and (n_items, the same).
    """
    tables = [table for pair in factors for table in pair]
    sums: Tensor = _LogSums.apply(lists, *tables)  # type: ignore[no-untyped-call]
    return sums


class _CatalogRows(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        users: Tensor,
        items: Tensor,
        lists: CatalogLists,
        form: FusedForm,
        scale: float,
        weighting: PositiveWeighting | None,
    ) -> Tensor:
        users = users.detach()
        items = items.detach()
        catalog_pass = _idle_pass()
        catalog_pass.scores((users, items), scale=scale)
        if weighting is None:
            values = catalog_pass.values(lists, form)
        else:
            values = catalog_pass.weighted_values(lists, form, weighting)
        ctx.save_for_backward(users, items)
        ctx.catalog_pass = catalog_pass
        ctx.scale = scale
        return values

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        factors = (ctx.scale * gradients[0]).float()
        found = ctx.catalog_pass.gradients_by_row(ctx.saved_tensors, factors, ctx.needs_input_grad)
        _IDLE.append(ctx.catalog_pass)
        ctx.catalog_pass = None  # a second way back would find another block's slopes
        return *found, None, None, None, None


class _LogSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, lists: CatalogLists, *tables: Tensor) -> Tensor:
        tables = tuple(table.detach() for table in tables)
        factors = zip(tables[::2], tables[1::2], strict=True)
        catalog_pass = _idle_pass()
        slopes = catalog_pass.scores(*factors)
        positions, columns = lists.positives.positions(lists.owners)
        owners = torch.from_numpy(positions)
        items = torch.from_numpy(columns)
        counts = torch.bincount(owners, minlength=len(slopes))
        at_positives = slopes[owners, items].double()
        # SL, which is the log-sum less the positive, for each of a user's positives.
        values = catalog_pass.values(lists, _SOFTMAX)
        if any(ctx.needs_input_grad):
            # SL subtracts each positive's score; what it adds to the gradient is taken back.
            ones = torch.ones(len(owners))
            slopes.index_put_((owners, items), ones, accumulate=True)
            ctx.save_for_backward(counts, *tables)
            ctx.catalog_pass = catalog_pass
        else:
            _IDLE.append(catalog_pass)
        sums = values.index_add(0, owners, at_positives)
        return (sums / counts).float()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        counts, *tables = ctx.saved_tensors
        factors = gradients[0] / counts
        found = ctx.catalog_pass.gradients_by_row(tables, factors, ctx.needs_input_grad[1:])
        _IDLE.append(ctx.catalog_pass)
        ctx.catalog_pass = None  # a second way back would find another block's slopes
        return None, *found
