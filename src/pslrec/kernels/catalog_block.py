"""A block of users with all their positives, and which items of the catalogue are their negatives."""

from dataclasses import dataclass

import torch
from torch import Tensor

from pslrec.kernels.negatives import NegativePool, Rows


@dataclass(frozen=True, eq=False)
class CatalogBlock:
    """Users that are trained on together, and what they have.

    Args:
        users: rows of the users, shape (block,), int64.
        positives: items to be ranked high, by user, for all users.
        pool: which items are negatives, for all users; false negatives weigh more where `noise` is above 0.
        drawn: the items that may be negatives in this block, ascending, int64; all of them if not given.
    """

    users: Tensor
    positives: Rows
    pool: NegativePool
    drawn: Tensor | None = None

    @property
    def n_pairs(self) -> int:
        """How many positives its users have."""
        return int((self.positives.offsets[self.users + 1] - self.positives.offsets[self.users]).sum())

    def pairs(self) -> tuple[Tensor, Tensor]:
        """The block's positive pairs as (position of the user in the block, item), int64."""
        return lists_of(self.positives, self.users)

    def weights(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """How much every item counts as a negative, shape (block, n_items): 1, 0 if taken, more if a false negative."""
        weights = torch.ones((len(self.users), self.pool.n_items), dtype=dtype)
        weights[lists_of(self.pool.taken, self.users)] = 0
        if self.pool.noise > 0 and self.pool.false_negatives is not None:
            owners, items = lists_of(self.pool.false_negatives, self.users)
            plain = weights.sum(dim=1)
            counts = torch.bincount(owners, minlength=len(self.users)).to(dtype)
            # All draws of the false negatives together are to those of the others as noise to 1 - noise.
            each = self.pool.noise * plain / ((1 - self.pool.noise) * counts)
            weights[owners, items] = each[owners]
        return weights

    def reduced(self) -> "ReducedBlock":
        """The same block on a catalogue of its own, that of the drawn items and the block's positives."""
        pool, n_users = self.pool, len(self.users)
        owners, items = self.pairs()
        parts = [torch.arange(pool.n_items) if self.drawn is None else self.drawn, items]
        extras = None
        if pool.noise > 0 and pool.false_negatives is not None:
            extras = lists_of(pool.false_negatives, self.users)
            parts.append(extras[1])
        columns = torch.unique(torch.cat(parts))
        is_drawn = torch.isin(columns, parts[0], assume_unique=True)
        taken_owners, taken_items = lists_of(pool.taken, self.users)
        places = torch.searchsorted(columns, taken_items).clamp(max=len(columns) - 1)
        is_there = columns[places] == taken_items
        # Neither what a user has is its negative, nor what is here for another user's sake.
        undrawn = torch.nonzero(~is_drawn).flatten()
        keys = torch.cat(
            [
                (taken_owners * len(columns) + places)[is_there],
                (torch.arange(n_users).unsqueeze(1) * len(columns) + undrawn).flatten(),
            ]
        )
        taken = _rows(torch.unique(keys), n_users, len(columns))
        positives = _rows(owners * len(columns) + torch.searchsorted(columns, items), n_users, len(columns))
        false = None
        if extras is not None:
            false = _rows(extras[0] * len(columns) + torch.searchsorted(columns, extras[1]), n_users, len(columns))
        block = CatalogBlock(
            torch.arange(n_users), positives, NegativePool(taken, len(columns), false, pool.noise if false else 0.0)
        )
        n_taken = pool.taken.lengths()[self.users]
        free, seen = pool.n_items - n_taken, len(columns) - taken.lengths()
        return ReducedBlock(columns, block, free.double() / seen.double())


@dataclass(frozen=True, eq=False)
class ReducedBlock:
    """A block whose catalogue is a part of the whole.

    Args:
        columns: rows of its items in the whole catalogue, ascending, int64.
        block: the block, its users and items counted from 0.
        shares: how many negatives of the whole each of its negatives stands for, by user, shape (block,), float64.
    """

    columns: Tensor
    block: CatalogBlock
    shares: Tensor


def lists_of(rows: Rows, users: Tensor) -> tuple[Tensor, Tensor]:
    """The lists of some users as (position of the user, item), int64, in the order of the users.

    >>> lists_of(Rows(torch.tensor([0, 2, 3]), torch.tensor([5, 7, 6], dtype=torch.int32)), torch.tensor([1, 0]))
    (tensor([0, 1, 1]), tensor([6, 5, 7]))
    """
    starts, lengths = rows.offsets[users], rows.offsets[users + 1] - rows.offsets[users]
    owners = torch.repeat_interleave(torch.arange(len(users)), lengths)
    within = torch.arange(len(owners)) - (lengths.cumsum(0) - lengths)[owners]
    return owners, rows.items[starts[owners] + within].long()


def _rows(keys: Tensor, n_users: int, n_items: int) -> Rows:
    """Lists from ascending keys user * n_items + item."""
    counts = torch.bincount(keys // n_items, minlength=n_users)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])
    return Rows(offsets, (keys % n_items).int())
