"""Exact training: the losses that are a log-sum, over every item that a user has not taken, for a block of users at once.

    L_u = sum over the positives i of u of  log H_u(s_i),    H_u(x) = sum_j w_j sigma(s_j - x)^exponent

One matrix product gives all scores of the block, a row operation turns them into the gradient in place, two more products
carry it to users and items. `docs/exact.md` tells why the row operation does not grow with the number of positives.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pslrec.kernels.log_sum import SURROGATES
from pslrec.kernels.native import native
from pslrec.kernels.negatives import NegativePool, Rows
from pslrec.kernels.sampled import runs_compiled

TOLERANCE = 1e-7
FIRST_NODES = 8
LARGEST_PIECE = 2**24


@dataclass(frozen=True, eq=False)
class CatalogBlock:
    """Users that are trained on together, and what they have.

    Args:
        users: rows of the users, shape (block,), int64.
        positives: items to be ranked high, by user, for all users.
        pool: which items are negatives, for all users; false negatives weigh more where `noise` is above 0.
    """

    users: Tensor
    positives: Rows
    pool: NegativePool

    @property
    def n_pairs(self) -> int:
        """How many positives its users have."""
        return int((self.positives.offsets[self.users + 1] - self.positives.offsets[self.users]).sum())

    def pairs(self) -> tuple[Tensor, Tensor]:
        """The block's positive pairs as (position of the user in the block, item), int64."""
        starts, ends = self.positives.offsets[self.users], self.positives.offsets[self.users + 1]
        owners = torch.repeat_interleave(torch.arange(len(self.users)), ends - starts)
        within = torch.arange(len(owners)) - torch.repeat_interleave(
            (ends - starts).cumsum(0) - (ends - starts), ends - starts
        )
        return owners, self.positives.items[starts[owners] + within].long()

    def weights(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """How much every item counts as a negative, shape (block, n_items): 1, 0 if taken, more if a false negative."""
        weights = torch.ones((len(self.users), self.pool.n_items), dtype=dtype)
        extras = self.pool.false_negatives if self.pool.noise > 0 else None
        for position, user in enumerate(self.users.tolist()):
            weights[position, _list(self.pool.taken, user)] = 0
            extra = torch.empty(0, dtype=torch.int64) if extras is None else _list(extras, user)
            if len(extra):
                plain = self.pool.n_items - len(_list(self.pool.taken, user))
                weights[position, extra] = self.pool.noise * plain / ((1 - self.pool.noise) * len(extra))
        return weights


def _list(rows: Rows, user: int) -> Tensor:
    return rows.items[int(rows.offsets[user]) : int(rows.offsets[user + 1])].long()


def catalog_log_sum(
    users: Tensor,
    items: Tensor,
    block: CatalogBlock,
    *,
    surrogate: str,
    exponent: float,
    scale: float,
    tolerance: float = TOLERANCE,
    first_nodes: int = FIRST_NODES,
) -> Tensor:
    """`L_u` of every user of the block, shape (block,), float64; differentiable in `users` and `items`.

    Args:
        users: the block's user vectors, shape (block, dimension), float32.
        items: the whole table, shape (n_items, dimension).
        block: whose vectors these are.
        surrogate: one of `SURROGATES`.
        exponent: 1 / temperature.
        scale: factor of the scores: 1/2 makes half cosines of unit vectors.
        tolerance: of the interpolation, relative to the loss; 0 stays at `first_nodes` nodes.
        first_nodes: how many nodes are tried first.
    """
    number = SURROGATES.index(surrogate)
    values: Tensor = _CatalogLogSum.apply(users, items, block, (number, exponent, tolerance, first_nodes), scale)  # type: ignore[no-untyped-call]
    return values


def takes(tensor: Tensor, surrogate: str) -> bool:
    """Whether the compiled row operation is there for these vectors and this surrogate."""
    return runs_compiled(tensor) and surrogate in SURROGATES


class _CatalogLogSum(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, users: Tensor, items: Tensor, block: CatalogBlock, form: tuple[int, float, float, int], scale: float
    ) -> Tensor:
        users, items = users.detach(), items.detach()
        # Scaling the few users is cheaper than scaling all scores.
        slopes, values = torch.mm(users * scale, items.T), torch.empty(len(users), dtype=torch.float64)
        pool = block.pool
        extras = pool.false_negatives or pool.taken
        noise = pool.noise if pool.false_negatives is not None else 0.0
        native.catalog_rows(
            *form,
            slopes,
            block.users,
            block.positives.offsets,
            block.positives.items,
            pool.taken.offsets,
            pool.taken.items,
            extras.offsets,
            extras.items,
            noise,
            values,
        )
        ctx.save_for_backward(users, items, slopes)
        ctx.scale = scale
        return values

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        users, items, slopes = ctx.saved_tensors
        factors = (ctx.scale * gradients[0]).float().unsqueeze(1)
        user_gradients = torch.mm(slopes, items).mul_(factors)
        item_gradients = torch.mm(slopes.T, users * factors)
        return user_gradients, item_gradients, None, None, None


def catalog_log_sum_plainly(
    scores: Tensor, block: CatalogBlock, log_sigma: Callable[[Tensor], Tensor], exponent: float
) -> Tensor:
    """The loss of every positive of the block, by every pair of a positive and a negative, shape (pairs,).

    Args:
        scores: of the block's users for all items, shape (block, n_items), any precision, any device.
        block: whose scores these are.
        log_sigma: logarithm of the surrogate.
        exponent: 1 / temperature.
    """
    owners, items = block.pairs()
    log_weights = block.weights(scores.dtype).log().to(scores.device)
    piece = max(LARGEST_PIECE // scores.shape[1], 1)
    values = []
    for owner, item in zip(owners.split(piece), items.split(piece), strict=True):
        rows = scores[owner]
        differences = rows - rows.gather(1, item.unsqueeze(1).to(rows.device))
        values.append(torch.logsumexp(log_sigma(differences) * exponent + log_weights[owner], dim=1))
    return torch.cat(values)
