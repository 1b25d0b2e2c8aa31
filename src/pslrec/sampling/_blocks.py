"""Blocks of users with all their positives, for exact training over the catalogue."""

import math
from collections.abc import Iterator
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from pslrec.data import Interactions
from pslrec.errors import ConfigError
from pslrec.kernels import CatalogBlock, NegativePool
from pslrec.sampling._rows import item_rows
from pslrec.seeding import generator


class UserBlocks:
    """The users in random order, cut into blocks of about the same number of positives.

    Every item that a user has not taken is a negative: nothing is drawn, unless `n_shared` says so. Order and draws depend on
    seed and epoch alone.

    Args:
        train: the positives.
        batch_pairs: positives per block; a user's are never divided, so a block may hold more or fewer.
        n_shared: draw so many items for each block, without replacement, and take its users' negatives from them; all
            items if not given or if there are no more.
        include_positives: count the user's own positives among its negatives, as the printed formula does.
        false_negatives: pairs that weigh as negatives all the same, for the noise setting.
        noise: the weight of all of them together; that of the other negatives is 1 - noise.
        seed: of the order.
    """

    def __init__(
        self,
        train: Interactions,
        *,
        batch_pairs: int = 1024,
        n_shared: int | None = None,
        include_positives: bool = False,
        false_negatives: Interactions | None = None,
        noise: float = 0.0,
        seed: int = 0,
    ) -> None:
        if batch_pairs < 1:
            raise ConfigError(f"`batch_pairs` must be at least 1, got {batch_pairs}")
        if not 0 <= noise < 1:
            raise ConfigError(f"`noise.probability` must be below 1 in exact training, got {noise}")
        if n_shared is not None and n_shared < 1:
            raise ConfigError(f'`negatives` = "shared:N" needs an N of at least 1, got {n_shared}')
        self.seed, self.batch_pairs = seed, batch_pairs
        self.n_shared = None if n_shared is None or n_shared >= train.n_items else n_shared
        self._positives = item_rows(train)
        parts = ([] if include_positives else [train]) + (
            [] if false_negatives is None else [false_negatives]
        )
        self._pool = NegativePool(
            taken=item_rows(*parts)
            if parts
            else item_rows(train.select(np.zeros(0, dtype=np.int64))),
            n_items=train.n_items,
            false_negatives=None if false_negatives is None else item_rows(false_negatives),
            noise=noise,
        )
        self._counts = self._positives.lengths().numpy()
        full = np.flatnonzero(self._pool.taken.lengths().numpy() >= train.n_items)
        if len(full):
            owner = train.user_vocabulary.ids([int(full[0])])[0]
            raise ConfigError(
                f"user `{owner}` has interacted with every item, so it has no negatives; leave such users out"
            )

    def __len__(self) -> int:
        """Blocks of an epoch, at most."""
        return math.ceil(self.n_pairs / self.batch_pairs)

    @property
    def n_candidates(self) -> int:
        """Scores of a step, about."""
        users_per_block = math.ceil(np.count_nonzero(self._counts) / len(self))
        n_items = self._pool.n_items
        return users_per_block * (
            n_items if self.n_shared is None else min(n_items, self.n_shared + self.batch_pairs)
        )

    @cached_property
    def n_pairs(self) -> int:
        """Positive pairs of an epoch."""
        return int(self._counts.sum())

    def epoch(self, epoch: int, *, first_batch: int = 0) -> Iterator[CatalogBlock]:
        """The blocks of an epoch, counted from 0; a resumed run asks for those that were left."""
        users = np.flatnonzero(self._counts)
        users = users[generator(self.seed, "order of users", epoch).permutation(len(users))]
        before = np.cumsum(self._counts[users]) - self._counts[users]
        block_of = before * len(self) // self.n_pairs
        cuts = np.flatnonzero(np.diff(block_of)) + 1
        blocks = np.split(users, cuts)
        for number in range(first_batch, len(blocks)):
            # Ascending rows lie closer together in memory.
            rows = torch.from_numpy(np.sort(blocks[number]))
            yield CatalogBlock(rows, self._positives, self._pool, self._draw(epoch, number, rows))

    def _draw(self, epoch: int, number: int, users: Tensor) -> Tensor | None:
        if self.n_shared is None:
            return None
        random = generator(self.seed, "shared negatives", epoch, number)
        drawn = random.choice(self._pool.n_items, self.n_shared, replace=False)
        n_taken = self._pool.taken.lengths()[users]
        for user in users[n_taken >= self.n_shared].tolist():
            # Only such a user may have taken all that was drawn; it gets one of its negatives all the same.
            taken = self._pool.taken.items[
                self._pool.taken.offsets[user] : self._pool.taken.offsets[user + 1]
            ].numpy()
            if np.isin(drawn, taken).all():
                drawn = np.append(
                    drawn, random.choice(np.setdiff1d(np.arange(self._pool.n_items), taken))
                )
        return torch.from_numpy(np.sort(drawn).astype(np.int64))
