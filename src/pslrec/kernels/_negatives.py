"""Drawing negatives by counter: the items of a pair depend on seed, epoch, pair and draw, and on nothing else."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from pslrec.kernels._native import IS_COMPILED, native

_GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class Rows:
    """Lists of item rows, one per user, ascending, laid end to end.

    Args:
        offsets: where each user's list begins and the one before it ends, shape (n_users + 1,), int64.
        items: all lists, int32.
    """

    offsets: Tensor
    items: Tensor

    def lengths(self) -> Tensor:
        """Items of each user."""
        return self.offsets[1:] - self.offsets[:-1]

    @cached_property
    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Offsets and items as numpy's arrays, which the compiled functions take five times faster."""
        return self.offsets.numpy(), self.items.numpy()


@dataclass(frozen=True, eq=False)
class NegativePool:
    """Where the negatives of a user come from.

    Args:
        taken: items that are never drawn, by user.
        n_items: size of the catalogue.
        false_negatives: items that are drawn in spite of being liked, by user, with probability `noise` per draw.
        noise: 0 draws from the items that are not taken alone.
        replacement: whether an item may come twice among the negatives of a pair. If not, it comes twice only where
            there are fewer items than draws, after all have come once; false negatives still repeat.
    """

    taken: Rows
    n_items: int
    false_negatives: Rows | None = None
    noise: float = 0.0
    replacement: bool = True


def draw_negatives(
    pool: NegativePool, key: int, pairs: Tensor, users: Tensor, candidates: Tensor
) -> None:
    """Fill columns 1, 2, ... of `candidates` with negatives, uniform over the items of the pool.

    Args:
        pool: where they come from.
        key: derived from seed and epoch.
        pairs: number of each pair in the training data, shape (batch,), int64; draws depend on it.
        users: the pair's user, shape (batch,), int32.
        candidates: shape (batch, 1 + negatives), int32; column 0 is left as it is.
    """
    if not IS_COMPILED:
        candidates[:, 1:] = draw_negatives_plainly(pool, key, pairs, users, candidates.shape[1] - 1)
        return
    false_negatives = pool.false_negatives or pool.taken
    draw = native.draw_negatives if pool.replacement else native.draw_distinct_negatives
    draw(
        key,
        pairs,
        users,
        pool.taken.offsets,
        pool.taken.items,
        false_negatives.offsets,
        false_negatives.items,
        pool.noise if pool.false_negatives is not None else 0.0,
        pool.n_items,
        candidates,
    )


def draw_negatives_plainly(
    pool: NegativePool, key: int, pairs: Tensor, users: Tensor, count: int
) -> Tensor:
    """The same in numpy: shape (batch, count)."""
    with np.errstate(over="ignore"):  # the arithmetic is modulo 2^64
        streams = _mixed(
            np.uint64(key) + (pairs.numpy().astype(np.uint64) + np.uint64(1)) * _GOLDEN_RATIO
        )
        draws = np.arange(1, count + 1, dtype=np.uint64) * _GOLDEN_RATIO
        numbers = _mixed(streams[:, None] + draws)
    rows = users.numpy().astype(np.int64)
    n_free = pool.n_items - pool.taken.lengths().numpy()[rows]
    ranks = (
        _below(numbers, n_free[:, None]) if pool.replacement else _distinct_ranks(numbers, n_free)
    )
    ordinary = _free_items(pool, rows, ranks)
    if pool.false_negatives is None or pool.noise <= 0:
        return torch.from_numpy(ordinary)
    lists = pool.false_negatives
    lengths = lists.lengths().numpy()[rows]
    chosen = _below(numbers, np.maximum(lengths, 1)[:, None]) + lists.offsets.numpy()[rows][:, None]
    false_items = np.append(lists.items.numpy(), 0)[np.minimum(chosen, len(lists.items))]
    shares = (numbers & np.uint64(0xFFFFFFFF)).astype(np.float64) * 2.0**-32
    is_false = (shares < pool.noise) & (lengths > 0)[:, None]
    return torch.from_numpy(np.where(is_false, false_items, ordinary).astype(np.int32))


def _mixed(value: np.ndarray) -> np.ndarray:
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray = value ^ (value >> np.uint64(31))
    return mixed


def _below(numbers: np.ndarray, limits: np.ndarray) -> np.ndarray:
    scaled = (numbers >> np.uint64(32)) * limits.astype(np.uint64)
    below: np.ndarray = (scaled >> np.uint64(32)).astype(np.int64)
    return below


def _distinct_ranks(numbers: np.ndarray, n_free: np.ndarray) -> np.ndarray:
    # Floyd's way to a random subset: draw among ever more ranks, and take the last of them where one came before.
    count, every_row = numbers.shape[1], np.arange(len(numbers))
    ranks = np.empty(numbers.shape, dtype=np.int64)
    drawn = np.zeros((len(numbers), int(n_free.max(initial=0))), dtype=bool)
    for draw in range(count):
        within = draw % n_free
        drawn[within == 0] = False
        last = n_free - np.minimum(n_free, count - draw + within) + within
        rank = _below(numbers[:, draw], last + 1)
        rank = np.where(drawn[every_row, rank], last, rank)
        drawn[every_row, rank] = True
        ranks[:, draw] = rank
    return ranks


def _free_items(pool: NegativePool, users: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    # The item of rank r among those not taken is r + k, where k counts the taken items t_i with t_i - i <= r. One
    # search serves all users: adding user * n_items keeps the lists apart.
    offsets, taken = pool.taken.offsets.numpy(), pool.taken.items.numpy().astype(np.int64)
    owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    gaps = taken - (np.arange(len(taken)) - offsets[owners]) + owners * pool.n_items
    before = (
        np.searchsorted(gaps, ranks + users[:, None] * pool.n_items, side="right")
        - offsets[users][:, None]
    )
    free: np.ndarray = (ranks + before).astype(np.int32)
    return free
