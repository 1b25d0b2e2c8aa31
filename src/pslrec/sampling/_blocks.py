"""Blocks of users with all their positives, for exact training over the catalogue."""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from pslrec.data import Interactions
from pslrec.errors import ConfigError
from pslrec.sampling._catalog_block import CatalogBlock
from pslrec.sampling._hiding import DividedHistories, Hiding
from pslrec.sampling._pool import NegativePool
from pslrec.seeding import generator


class UserBlocks:
    """The users in random order, cut into blocks of about the same number of positives.

    Every item that a user has not taken is a negative: nothing is drawn, unless `n_shared` says so.
    Order and draws depend on seed and epoch alone.

    Args:
        train: the positives.
        batch_pairs: positives per block; a user's are never divided, so a block may hold more or
            fewer.
        n_shared: draw this many items for each block, without replacement, and take its users'
            negatives from them; all items if not given or if there are no more.
        include_positives: count the user's own positives among its negatives, as the printed
            formula does.
        false_negatives: pairs that weigh as negatives all the same, for the noise setting.
        noise: the weight of all of them together; that of the other negatives is 1 - noise.
        hiding: which part of every history a backbone that is made of histories may see, and which
            part are positives.
        seed: of the order and of the draws.
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
        hiding: Hiding | None = None,
        seed: int = 0,
    ) -> None:
        if batch_pairs < 1:
            raise ConfigError(f"`batch_pairs` must be at least 1, got {batch_pairs}")
        if not 0 <= noise < 1:
            raise ConfigError(f"`noise.probability` must be below 1 in exact training, got {noise}")
        if n_shared is not None and n_shared < 1:
            raise ConfigError(f'`negatives` = "shared:N" needs an N of at least 1, got {n_shared}')
        self.seed = seed
        self.batch_pairs = batch_pairs
        self.n_shared = n_shared
        if n_shared is not None and n_shared >= train.n_items:
            # All of them are the whole catalogue, for which there is a faster way.
            self.n_shared = None
        self._positives = train.rows
        self._pool = NegativePool.of(
            train,
            false_negatives=false_negatives,
            noise=noise,
            include_positives=include_positives,
        )
        self._counts = self._positives.lengths
        # Of every user in an epoch, which is less than the pairs where some are hidden.
        self._n_positives = self._counts
        # All processes draw alike, whomever they keep.
        self._taken = self._pool.taken
        self._divided: DividedHistories | None = None
        if hiding is not None:
            self._divided = DividedHistories(self._positives, hiding, seed=seed)
            self._n_positives = self._divided.n_positives
            # Nothing can be hidden of a single item.
            self._counts = np.where(self._divided.n_positives > 0, self._counts, 0)

    def keep(self, owned: range) -> None:
        """Leave out the positives of all other users, whom other processes train on.

        Blocks stay as they are, as they follow from the numbers of positives alone; but of every
        block none but the owned users can be asked for.

        Args:
            owned: rows of the users.
        """
        self._positives = self._positives.between(owned)
        pool = self._pool
        false_negatives = pool.false_negatives
        if false_negatives is not None:
            false_negatives = false_negatives.between(owned)
        taken = pool.taken.between(owned)
        self._pool = replace(pool, taken=taken, false_negatives=false_negatives)
        if self._divided is not None:
            self._divided = self._divided.between(owned)

    def __len__(self) -> int:
        """Blocks of an epoch, at most."""
        return math.ceil(self.n_pairs / self.batch_pairs)

    @property
    def n_candidates(self) -> int:
        """Scores of a step, about."""
        n_columns = self._pool.n_items
        if self.n_shared is not None:
            # The positives of a block are columns beside the drawn items.
            n_columns = min(n_columns, self.n_shared + self.batch_pairs)
        return self.n_users * n_columns

    @property
    def n_users(self) -> int:
        """Users of a step, about."""
        return math.ceil(np.count_nonzero(self._counts) / len(self))

    @property
    def n_divided(self) -> int:
        """Pairs that every epoch divides into visible and hidden ones."""
        if self._divided is None:
            return 0
        return self._divided.n_pairs

    @property
    def pair_counts(self) -> np.ndarray:
        """Positive pairs of each user, about: how much work it is."""
        return self._counts

    @cached_property
    def n_pairs(self) -> int:
        """Pairs of an epoch: all positives, and what is visible of histories that make users."""
        return int(self._counts.sum())

    def epoch(
        self, epoch: int, *, first_batch: int = 0, owned: range | None = None
    ) -> Iterator[CatalogBlock]:
        """The blocks of an epoch, counted from 0.

        Args:
            epoch: the order depends on it.
            first_batch: leave out the blocks before it, which a resumed run has trained on.
            owned: rows of the users that are wanted of every block, where processes share them.
        """
        random = generator(self.seed, "order of users", epoch)
        # Users without positives have no loss.
        users = np.flatnonzero(self._counts)
        users = users[random.permutation(len(users))]
        counts = self._counts[users]
        # Blocks of equal numbers of pairs rather than users: a step's work follows from its pairs.
        n_before = np.cumsum(counts) - counts
        block_of = n_before * len(self) // self.n_pairs
        cuts = np.flatnonzero(np.diff(block_of)) + 1
        blocks = np.split(users, cuts)
        visible = None
        positives = self._positives
        if self._divided is not None:
            visible, positives = self._divided.divide(epoch)
        for number in range(first_batch, len(blocks)):
            # Ascending rows lie closer together in memory.
            rows = np.sort(blocks[number])
            drawn = self._draw(epoch, number, rows)
            own = torch.from_numpy(rows)
            whole = None
            n_whole_pairs = None
            if owned is not None:
                whole = own
                n_whole_pairs = int(self._n_positives[rows].sum())
                own = own[(own >= owned.start) & (own < owned.stop)]
            yield CatalogBlock(own, positives, self._pool, drawn, visible, whole, n_whole_pairs)

    def _draw(self, epoch: int, number: int, users: np.ndarray) -> Tensor | None:
        if self.n_shared is None:
            return None
        n_items = self._pool.n_items
        taken = self._taken
        # A generator of its own for each block, so that a resumed run draws what is left alike.
        random = generator(self.seed, "shared negatives", epoch, number)
        drawn = random.choice(n_items, self.n_shared, replace=False)
        has_many = taken.lengths[users] >= self.n_shared
        for user in users[has_many].tolist():
            # Only such a user may have taken all that was drawn; it gets one negative all the same.
            own = taken.list_of(user)
            if np.isin(drawn, own).all():
                free = np.setdiff1d(np.arange(n_items), own)
                drawn = np.append(drawn, random.choice(free))
        return torch.from_numpy(np.sort(drawn).astype(np.int64))
