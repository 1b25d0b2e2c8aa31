"""A block of users with all their positives, and which items are their negatives."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pslrec.kernels import CatalogLists
from pslrec.rows import Rows
from pslrec.sampling._pool import NegativePool


@dataclass(frozen=True, eq=False)
class CatalogBlock:
    """Users that are trained on together.

    Args:
        users: rows of the users, shape (block,), int64.
        positives: items to be ranked high, by user, for all users of the data.
        pool: which items are negatives, for all users of the data.
        drawn: the items that may be negatives in this block, ascending, int64; all of them if not
            given.
        visible: the part of every history that may make its user's vector, for all users of the
            data; all of it if not given.
        whole: rows of all users of the step, where these are the ones of one process.
        n_whole_pairs: how many positives those have together.
    """

    users: Tensor
    positives: Rows
    pool: NegativePool
    drawn: Tensor | None = None
    visible: Rows | None = None
    whole: Tensor | None = None
    n_whole_pairs: int | None = None

    @property
    def share(self) -> float:
        """How much of the step's pairs these are; 1 unless several processes share a step."""
        if self.n_whole_pairs is None:
            return 1.0
        return self.n_pairs / self.n_whole_pairs

    def step_pairs(self) -> tuple[Tensor, Tensor]:
        """Users and items of all pairs of the step, whoever works on them, int64.

        Not where `UserBlocks.keep` has left out what others work on.
        """
        users = self.users
        if self.whole is not None:
            users = self.whole
        positions, items = self.positives.positions(users.numpy())
        return users[torch.from_numpy(positions)], torch.from_numpy(items)

    @property
    def lists(self) -> CatalogLists:
        """The block as the compiled row operation reads it."""
        return CatalogLists(
            self.users.numpy(),
            self.positives,
            self.pool.taken,
            self.pool.n_items,
            self.pool.false_negatives,
            self.pool.noise,
        )

    @property
    def n_pairs(self) -> int:
        """How many positives its users have."""
        # Asked for at every step; numpy answers in a tenth of torch's time.
        lengths = self.positives.lengths[self.users.numpy()]
        return int(lengths.sum())

    def pairs(self) -> tuple[Tensor, Tensor]:
        """The block's positive pairs as (position of the user in the block, item), int64."""
        return self._positions(self.positives)

    def _positions(self, rows: Rows) -> tuple[Tensor, Tensor]:
        positions, items = rows.positions(self.users.numpy())
        return torch.from_numpy(positions), torch.from_numpy(items)

    def weights(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """How much every item counts as a negative, shape (block, n_items).

        1, or 0 where the item is taken. With noise, all false negatives of a user together have
        the share `noise` of the user's weight.

        Args:
            dtype: of the weights.
        """
        pool = self.pool
        # Dense, for the plain formulas only; the compiled pass reads the lists as they are.
        weights = torch.ones((len(self.users), pool.n_items), dtype=dtype)
        weights[self._positions(pool.taken)] = 0
        if pool.false_negatives is None or pool.noise <= 0:
            return weights
        owners, items = self._positions(pool.false_negatives)
        users = self.users.numpy()
        plain = torch.from_numpy(pool.n_items - pool.taken.lengths[users]).to(dtype)
        counts = torch.from_numpy(pool.false_negatives.lengths[users]).to(dtype)
        # All draws of the false negatives together are to those of the others as noise to
        # 1 - noise.
        # A user without false negatives divides by 0 here, and nobody reads the result.
        each = pool.noise * plain / ((1 - pool.noise) * counts)
        weights[owners, items] = each[owners]
        return weights

    def reduced(self) -> "ReducedBlock":
        """The same block on a small catalogue: the drawn items, and what its users must keep.

        Positives stay, drawn or not, and so do false negatives where there is noise.
        """
        n_users = len(self.users)
        users = self.users.numpy()
        drawn = np.arange(self.pool.n_items)
        if self.drawn is not None:
            drawn = self.drawn.numpy()
        kept = [self.positives]
        false_negatives = self.pool.false_negatives
        if false_negatives is not None and self.pool.noise > 0:
            kept.append(false_negatives)
        pairs = [rows.positions(users) for rows in kept]
        everything = np.concatenate([drawn, *(items for _, items in pairs)])
        columns = np.unique(everything)
        lists = []
        for owners, items in pairs:
            places = np.searchsorted(columns, items)
            lists.append(Rows.from_pairs(owners, places, n_owners=n_users))
        taken = self._taken_among(columns, drawn)
        pool = NegativePool(taken, len(columns))
        if len(lists) > 1:
            pool = NegativePool(taken, len(columns), lists[1], self.pool.noise)
        n_in_whole = self.pool.n_items - self.pool.taken.lengths[users]
        n_in_part = len(columns) - taken.lengths
        shares = n_in_whole / n_in_part
        block = CatalogBlock(torch.arange(n_users), lists[0], pool)
        return ReducedBlock(torch.from_numpy(columns), block, torch.from_numpy(shares))

    def _taken_among(self, columns: np.ndarray, drawn: np.ndarray) -> Rows:
        """The columns that are not negatives of a user.

        These are what it has taken, and what is a column for another user's sake only.
        """
        n_users = len(self.users)
        owners, items = self.pool.taken.positions(self.users.numpy())
        # Where a taken item would be; it need not be there, and may come after the last column.
        places = np.searchsorted(columns, items).clip(max=len(columns) - 1)
        is_taken = np.zeros((n_users, len(columns)), dtype=bool)
        is_drawn = np.isin(columns, drawn, assume_unique=True)
        is_taken[:, ~is_drawn] = True
        is_there = columns[places] == items
        owners = owners[is_there]
        places = places[is_there]
        is_taken[owners, places] = True
        owners, places = np.nonzero(is_taken)
        return Rows.from_pairs(owners, places, n_owners=n_users)


@dataclass(frozen=True, eq=False)
class ReducedBlock:
    """A block whose catalogue is a part of the whole.

    Args:
        columns: rows of its items in the whole catalogue, ascending, int64.
        block: the block, its users and items counted from 0.
        shares: how many negatives of the whole each of its negatives stands for, by user, shape
            (block,), float64.
    """

    columns: Tensor
    block: CatalogBlock
    shares: Tensor
