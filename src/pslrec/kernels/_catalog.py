"""Exact training in one compiled pass: the losses whose value is a function of one variable per user.

    log-sum   L_u = sum over the positives i of u of  log H_u(s_i),    H_u(x) = sum_j w_j sigma(s_j - x)^exponent
    inside    the same with                                            H_u(x) = sum_j w_j sigma(exponent * (s_j - x))
    mean      L_u = sum over the positives i of u of  sum_j w_j log sigma(s_j - s_i) / sum_j w_j

One matrix product gives all scores of the block, a row operation turns them into the gradient in place, two more products
carry it to users and items. `docs/explanation/exact.md` tells why the row operation does not grow with the number of
positives. The twins are the losses themselves, by `catalog_values`.
"""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from pslrec.kernels._catalog_block import CatalogBlock
from pslrec.kernels._log_sum import SURROGATES
from pslrec.kernels._memory import KeptMemory
from pslrec.kernels._native import native
from pslrec.kernels._sampled import runs_compiled

__all__ = [
    "CatalogBlock",
    "CatalogPass",
    "RowOperation",
    "catalog_log_sums",
    "catalog_row_values",
    "takes_rows",
]

TOLERANCE = 1e-7
FIRST_NODES = 8

# The numbers by which the compiled module knows them.
OPERATIONS = {("log-sum", surrogate): number for number, surrogate in enumerate(SURROGATES)}
OPERATIONS |= {
    ("mean", "softplus"): 5,
    ("inside", "tanh"): 6,
    ("inside", "relu"): 7,
    ("inside", "softplus"): 8,
}
OPERATIONS |= {("inside", "atan"): 9}


@dataclass(frozen=True)
class RowOperation:
    """What becomes of a user's scores.

    Args:
        kind: `log-sum`, `inside` or `mean`, as above.
        surrogate: sigma.
        exponent: 1 / temperature.
        tolerance: of the interpolation, relative to the loss; 0 stays at `first_nodes` nodes.
        first_nodes: how many nodes are tried first.
    """

    kind: Literal["log-sum", "inside", "mean"]
    surrogate: str
    exponent: float = 1.0
    tolerance: float = TOLERANCE
    first_nodes: int = FIRST_NODES


def takes_rows(tensor: Tensor, operation: RowOperation) -> bool:
    """Whether the compiled row operation is there for these vectors and this loss."""
    return runs_compiled(tensor) and (operation.kind, operation.surrogate) in OPERATIONS


def catalog_row_values(
    users: Tensor, items: Tensor, block: CatalogBlock, operation: RowOperation, *, scale: float
) -> Tensor:
    """`L_u` of every user of the block, shape (block,), float64; differentiable in `users` and `items`.

    Args:
        users: the block's user vectors, shape (block, dimension), float32.
        items: the whole table, shape (n_items, dimension).
        block: whose vectors these are.
        operation: what is computed; one that the compiled module `takes_rows`.
        scale: factor of the scores: 1/2 makes half cosines of unit vectors.
    """
    if users.shape[0] != len(block.users) or items.shape[0] != block.pool.n_items:
        raise ValueError(
            f"`users` and `items` must have a row for each of the block's {len(block.users)} users and of the catalogue's "
            f"{block.pool.n_items} items, got {users.shape[0]} and {items.shape[0]}"
        )
    values: Tensor = _CatalogRows.apply(users, items, block, operation, scale)  # type: ignore[no-untyped-call]
    return values


def row_gradients(scores: Tensor, block: CatalogBlock, operation: RowOperation) -> Tensor:
    """`L_u` of every row of scores (block, n_items), float64; the scores become its gradient, in place."""
    values = torch.empty(len(scores), dtype=torch.float64)
    pool = block.pool
    extras = pool.false_negatives or pool.taken
    native.catalog_rows(
        OPERATIONS[operation.kind, operation.surrogate],
        operation.exponent,
        operation.tolerance,
        operation.first_nodes,
        scores.numpy(),
        block.users.numpy(),
        *block.positives.arrays,
        *pool.taken.arrays,
        *extras.arrays,
        pool.noise if pool.false_negatives is not None else 0.0,
        values.numpy(),
    )
    return values


class CatalogPass:
    """The same without a graph, one block after another in memory that is kept: fresh memory costs as much as a matrix product.

    Args:
        operation: what is computed.
        scale: factor of the scores.
    """

    def __init__(self, operation: RowOperation, *, scale: float) -> None:
        self._operation, self._scale = operation, scale
        self._kept: dict[str, Tensor] = {}
        self._views: dict[tuple[str, int, int], Tensor] = {}
        self._users = self._items = self._slopes = torch.empty(0, 0)

    def values(self, users: Tensor, items: Tensor, block: CatalogBlock) -> Tensor:
        """`L_u` of every user of the block; arguments as in `catalog_row_values`."""
        self._users, self._items = users, items
        self._slopes = self._memory("slopes", len(users), len(items))
        _multiply(users, items.T, self._scale, self._slopes)
        return row_gradients(self._slopes, block, self._operation)

    def gradients(self, factor: float) -> tuple[Tensor, Tensor]:
        """Gradients of `factor * sum(values)` in users and items; they hold until the next call."""
        user_gradients = self._memory("users", *self._users.shape)
        item_gradients = self._memory("items", *self._items.shape)
        _multiply(self._slopes, self._items, factor * self._scale, user_gradients)
        _multiply(self._slopes.T, self._users, factor * self._scale, item_gradients)
        return user_gradients, item_gradients

    def _memory(self, name: str, rows: int, columns: int) -> Tensor:
        view = self._views.get((name, rows, columns))
        if view is None:
            if name not in self._kept or self._kept[name].numel() < rows * columns:
                # A later block may have some more users.
                self._kept[name] = torch.empty(rows * columns + rows * columns // 4)
                self._views = {key: each for key, each in self._views.items() if key[0] != name}
            view = self._kept[name][: rows * columns].view(rows, columns)
            self._views[name, rows, columns] = view
        return view


def _multiply(left: Tensor, right: Tensor, factor: float, out: Tensor) -> None:
    """`factor * left @ right`; the factor costs nothing here, and as much as a small step's bookkeeping elsewhere."""
    torch.addmm(out, left, right, beta=0, alpha=factor, out=out)


def catalog_log_sums(block: CatalogBlock, *factors: tuple[Tensor, Tensor]) -> Tensor:
    """`log sum_j w_j exp(sum_f <left_f[u], right_f[j]>)` of every user of the block, shape (block,), float32.

    Differentiable in all tables; only those that ask for a gradient cost a product on the way back. For tensors that
    `runs_compiled` takes.

    Args:
        block: its users have a positive at least.
        factors: pairs of tables whose products are added up, shapes (block, any) and (n_items, the same).
    """
    sums: Tensor = _LogSums.apply(block, *(table for pair in factors for table in pair))  # type: ignore[no-untyped-call]
    return sums


_MEMORY = KeptMemory()


class _LogSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, block: CatalogBlock, *tables: Tensor) -> Tensor:
        tables = tuple(table.detach() for table in tables)
        slopes = _MEMORY.take(len(tables[0]), len(tables[1]))
        for number, (left, right) in enumerate(zip(tables[::2], tables[1::2], strict=True)):
            torch.addmm(slopes, left, right.T, beta=min(number, 1), out=slopes)
        owners, items = block.pairs()
        counts = torch.bincount(owners, minlength=len(slopes))
        at_positives = slopes[owners, items].double()
        # SL, which is the log-sum less the positive, for each of a user's positives.
        values = row_gradients(slopes, block, RowOperation("log-sum", "exp"))
        ctx.slopes = slopes
        if any(ctx.needs_input_grad):
            slopes.index_put_((owners, items), torch.ones(len(owners)), accumulate=True)
            ctx.save_for_backward(counts, *tables)
        else:
            _MEMORY.give_back(slopes)
        return (values.index_add(0, owners, at_positives) / counts).float()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        counts, *tables = ctx.saved_tensors
        factors = (gradients[0] / counts).unsqueeze(1)
        found: list[Tensor | None] = [None]
        for n in range(len(tables)):
            if not ctx.needs_input_grad[n + 1]:
                found.append(None)
            elif n % 2 == 0:
                found.append(torch.mm(ctx.slopes, tables[n + 1]).mul_(factors))
            else:
                found.append(torch.mm(ctx.slopes.T, tables[n - 1] * factors))
        _MEMORY.give_back(ctx.slopes)
        ctx.slopes = None  # a second way back would find another block's
        return tuple(found)


class _CatalogRows(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        users: Tensor,
        items: Tensor,
        block: CatalogBlock,
        operation: RowOperation,
        scale: float,
    ) -> Tensor:
        users, items = users.detach(), items.detach()
        slopes = _MEMORY.take(len(users), len(items))
        _multiply(users, items.T, scale, slopes)
        values = row_gradients(slopes, block, operation)
        ctx.save_for_backward(users, items)
        ctx.slopes, ctx.scale = slopes, scale
        return values

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, *gradients: Tensor
    ) -> tuple[Tensor | None, Tensor | None, None, None, None]:
        users, items = ctx.saved_tensors
        factors = (ctx.scale * gradients[0]).float().unsqueeze(1)
        user_gradients = item_gradients = None
        if ctx.needs_input_grad[0]:
            user_gradients = torch.mm(ctx.slopes, items).mul_(factors)
        # Items stand still for new users, whose request should not pay for a gradient of the size
        # of the catalogue.
        if ctx.needs_input_grad[1]:
            item_gradients = torch.mm(ctx.slopes.T, users * factors)
        _MEMORY.give_back(ctx.slopes)
        ctx.slopes = None  # a second way back would find another block's
        return user_gradients, item_gradients, None, None, None
