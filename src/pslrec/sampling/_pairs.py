"""Batches of positive pairs, each with negatives of its own."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pslrec.data import Interactions
from pslrec.errors import ConfigError, DataError
from pslrec.kernels import draw_negatives
from pslrec.rows import Rows
from pslrec.sampling._hiding import DividedHistories, Hiding
from pslrec.sampling._pool import NegativePool
from pslrec.seeding import derive_seed, generator


@dataclass(frozen=True, eq=False)
class PairBatch:
    """Positive pairs with their negatives.

    Args:
        users: row of each pair's user, shape (batch,), int64.
        candidates: the pair's item in column 0, its negatives in the others, shape
            (batch, 1 + negatives), int32.
        visible: the part of every history that may make its user's vector, for all users of the
            data; all of it if not given.
        whole: users and items of all pairs of the step, where these are the ones of one process.
    """

    users: Tensor
    candidates: Tensor
    visible: Rows | None = None
    whole: tuple[Tensor, Tensor] | None = None

    @property
    def share(self) -> float:
        """How much of the step's pairs these are; 1 unless several processes share a step."""
        if self.whole is None:
            return 1.0
        return len(self.users) / len(self.whole[0])

    def step_pairs(self) -> tuple[Tensor, Tensor]:
        """Users and items of all pairs of the step, whoever works on them, int64."""
        if self.whole is None:
            return self.users, self.positives
        return self.whole

    def to(self, device: torch.device) -> "PairBatch":
        """The batch on a device; itself if it is there."""
        if self.users.device == device:
            return self
        whole = self.whole
        if whole is not None:
            users, items = whole
            whole = (users.to(device), items.to(device))
        return PairBatch(self.users.to(device), self.candidates.to(device), self.visible, whole)

    @property
    def positives(self) -> Tensor:
        """Row of each pair's item, shape (batch,), int64."""
        return self.candidates[:, 0].long()

    @property
    def negatives(self) -> Tensor:
        """Rows of its negatives, shape (batch, negatives), int32."""
        return self.candidates[:, 1:]


class PairBatches:
    """The training pairs in random order, in batches, each pair with freshly drawn negatives.

    Order and negatives depend on seed and epoch alone: not on threads, and not on where a run was
    resumed.

    Args:
        train: the positives.
        n_negatives: how many per positive.
        batch_pairs: pairs per batch; the last batch of an epoch holds what is left.
        false_negatives: pairs that are drawn as negatives all the same, for the noise setting.
        noise: the probability of such a draw.
        replacement: whether an item may come twice among the negatives of a pair.
        hiding: which part of every history a backbone that is made of histories may see, and which
            part are positives.
        seed: of order and negatives.
    """

    def __init__(
        self,
        train: Interactions,
        *,
        n_negatives: int,
        batch_pairs: int = 1024,
        false_negatives: Interactions | None = None,
        noise: float = 0.0,
        replacement: bool = True,
        hiding: Hiding | None = None,
        seed: int = 0,
    ) -> None:
        if n_negatives < 1 or batch_pairs < 1:
            raise ConfigError(
                "`negatives` and `batch_pairs` must be at least 1, "
                f"got {n_negatives} and {batch_pairs}"
            )
        if not 0 <= noise <= 1:
            raise ConfigError(f"`noise.probability` must lie between 0 and 1, got {noise}")
        if noise > 0 and false_negatives is None:
            raise ConfigError("`noise.probability` above 0 needs `false_negatives` to draw from")
        if len(train) == 0:
            raise DataError("there are no training pairs; give more data, or take another split")
        self.n_negatives = n_negatives
        self.batch_pairs = batch_pairs
        self.seed = seed
        # Draws depend on a pair's number, which must not depend on the order of the file.
        ordered = train.sorted()
        users = ordered.users
        items = ordered.items
        if hiding is not None:
            # Of a repeated pair, one could not be hidden while the other is visible.
            users, items = train.rows.positions(np.arange(train.n_users))
        self._users = torch.from_numpy(users.astype(np.int32))
        self._items = torch.from_numpy(items.astype(np.int32))
        self.pool = NegativePool.of(
            train, false_negatives=false_negatives, noise=noise, replacement=replacement
        )
        self._divided: DividedHistories | None = None
        if hiding is not None:
            self._divided = DividedHistories(train.rows, hiding, seed=seed)

    def __len__(self) -> int:
        """Batches of an epoch."""
        return math.ceil(self.n_pairs / self.batch_pairs)

    @property
    def n_candidates(self) -> int:
        """Scores of a step."""
        return self.n_users * (1 + self.n_negatives)

    @property
    def n_users(self) -> int:
        """Users of a step, each counted as often as it comes."""
        return min(self.batch_pairs, self.n_pairs)

    @property
    def n_divided(self) -> int:
        """Pairs that every epoch divides into visible and hidden ones."""
        if self._divided is None:
            return 0
        return self._divided.n_pairs

    @property
    def pair_counts(self) -> np.ndarray:
        """Positive pairs of each user, about: how much work it is."""
        counts: np.ndarray = self.pool.taken.lengths
        return counts

    @property
    def n_pairs(self) -> int:
        """Positive pairs of an epoch."""
        if self._divided is not None:
            return int(self._divided.n_positives.sum())
        return len(self._users)

    def epoch(
        self, epoch: int, *, first_batch: int = 0, owned: range | None = None
    ) -> Iterator[PairBatch]:
        """The batches of an epoch, counted from 0.

        Args:
            epoch: order and negatives depend on it.
            first_batch: leave out the batches before it, which a resumed run has trained on.
            owned: rows of the users whose pairs are wanted, where processes share every batch;
                negatives are drawn for these alone, and are what they would be without it.
        """
        order = generator(self.seed, "order of pairs", epoch).permutation(len(self._users))
        visible = None
        if self._divided is not None:
            is_visible = self._divided.is_visible(epoch)
            visible = self._divided.part(is_visible)
            if self._divided.predicts_hidden:
                order = order[~is_visible[order]]
        pairs = torch.from_numpy(order)
        key = derive_seed(self.seed, "negatives", epoch)
        for start in range(first_batch * self.batch_pairs, len(pairs), self.batch_pairs):
            yield self._batch(pairs[start : start + self.batch_pairs], key, visible, owned)

    def _batch(
        self, pairs: Tensor, key: int, visible: Rows | None, owned: range | None
    ) -> PairBatch:
        users = self._users[pairs]
        whole = None
        if owned is not None:
            whole = (users.long(), self._items[pairs].long())
            is_owned = (users >= owned.start) & (users < owned.stop)
            pairs = pairs[is_owned]
            users = users[is_owned]
        candidates = torch.empty((len(pairs), 1 + self.n_negatives), dtype=torch.int32)
        candidates[:, 0] = self._items[pairs]
        draw_negatives(
            candidates,
            users,
            key=key,
            pairs=pairs,
            taken=self.pool.taken,
            n_items=self.pool.n_items,
            false_negatives=self.pool.false_negatives,
            noise=self.pool.noise,
            replacement=self.pool.replacement,
        )
        return PairBatch(users.long(), candidates, visible, whole)
