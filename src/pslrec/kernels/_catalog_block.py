"""A block of users with all their positives, and which items of the catalogue are their negatives."""

from dataclasses import dataclass

import torch
from torch import Tensor

from pslrec.kernels._negatives import NegativePool, Rows


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
        # Asked for at every step; numpy answers in a tenth of torch's time.
        users, (offsets, _) = self.users.numpy(), self.positives.arrays
        return int((offsets[users + 1] - offsets[users]).sum())

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
        """The same block on a catalogue of its own, that of the drawn items and what its users have of positives."""
        drawn = torch.arange(self.pool.n_items) if self.drawn is None else self.drawn
        has_noise = self.pool.noise > 0 and self.pool.false_negatives is not None
        kept = [self.positives, *([self.pool.false_negatives] if has_noise else [])]
        pairs = [lists_of(rows, self.users) for rows in kept if rows is not None]
        columns = torch.unique(torch.cat([drawn, *(items for _, items in pairs)]))
        lists = [
            _rows(owners, torch.searchsorted(columns, items), len(self.users))
            for owners, items in pairs
        ]
        taken = self._taken_among(columns, drawn)
        false_negatives, noise = (lists[1], self.pool.noise) if has_noise else (None, 0.0)
        pool = NegativePool(taken, len(columns), false_negatives, noise)
        n_negatives = self.pool.n_items - self.pool.taken.lengths()[self.users]
        shares = n_negatives.double() / (len(columns) - taken.lengths()).double()
        return ReducedBlock(
            columns, CatalogBlock(torch.arange(len(self.users)), lists[0], pool), shares
        )

    def _taken_among(self, columns: Tensor, drawn: Tensor) -> Rows:
        """The columns that are no negatives of a user: what it has taken, and what is here for another user's sake."""
        owners, items = lists_of(self.pool.taken, self.users)
        places = torch.searchsorted(columns, items).clamp(max=len(columns) - 1)
        is_taken = torch.zeros(len(self.users), len(columns), dtype=torch.bool)
        is_taken[:, ~torch.isin(columns, drawn, assume_unique=True)] = True
        is_there = columns[places] == items
        is_taken[owners[is_there], places[is_there]] = True
        owners, places = torch.nonzero(is_taken, as_tuple=True)
        return _rows(owners, places, len(self.users))


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


def _rows(owners: Tensor, items: Tensor, n_users: int) -> Rows:
    """Lists from pairs in ascending order."""
    counts = torch.bincount(owners, minlength=n_users)
    return Rows(torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)]), items.int())
