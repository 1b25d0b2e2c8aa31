"""Drawing negatives by counter: an item depends on key, pair and draw, and on nothing else."""

import numpy as np
import torch
from torch import Tensor

from pslrec.kernels._native import IS_COMPILED, native
from pslrec.rows import Rows

_GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7C15)


def draw_negatives(
    candidates: Tensor,
    users: Tensor,
    *,
    key: int,
    pairs: Tensor,
    taken: Rows,
    n_items: int,
    false_negatives: Rows | None = None,
    noise: float = 0.0,
    replacement: bool = True,
) -> None:
    """Fill columns 1, 2, ... of `candidates` with negatives, uniform over the items not taken.

    Args:
        candidates: shape (batch, 1 + negatives), int32; column 0 is left as it is.
        users: the user of each row, shape (batch,), int32.
        key: derived from seed and epoch.
        pairs: number of each row's pair in the training data, shape (batch,), int64; draws depend
            on it.
        taken: items that are never drawn, by user.
        n_items: size of the catalogue.
        false_negatives: items that are drawn with probability `noise`, by user, taken or not.
        noise: 0 draws from the items that are not taken alone.
        replacement: whether an item may come twice among the negatives of a pair. If not, it comes
            twice only where there are fewer items than draws, after all have come once; false
            negatives still repeat.
    """
    if false_negatives is None:
        noise = 0.0
        # The compiled function wants some lists here, and does not read them without noise.
        false_negatives = taken
    if not IS_COMPILED:
        candidates[:, 1:] = draw_negatives_plainly(
            users,
            candidates.shape[1] - 1,
            key=key,
            pairs=pairs,
            taken=taken,
            n_items=n_items,
            false_negatives=false_negatives,
            noise=noise,
            replacement=replacement,
        )
        return
    draw = native.draw_negatives
    if not replacement:
        draw = native.draw_distinct_negatives
    draw(
        key,
        pairs.numpy(),
        users.numpy(),
        taken.offsets,
        taken.items,
        false_negatives.offsets,
        false_negatives.items,
        noise,
        n_items,
        candidates.numpy(),
    )


def draw_negatives_plainly(
    users: Tensor,
    count: int,
    *,
    key: int,
    pairs: Tensor,
    taken: Rows,
    n_items: int,
    false_negatives: Rows | None = None,
    noise: float = 0.0,
    replacement: bool = True,
) -> Tensor:
    """The same in numpy: shape (batch, count), arguments as in `draw_negatives`."""
    numbers = _numbers(key, pairs.numpy(), count)
    rows = users.numpy().astype(np.int64)
    n_free = n_items - taken.lengths[rows]
    ranks = _below(numbers, n_free[:, None])
    if not replacement:
        ranks = _distinct_ranks(numbers, n_free)
    ordinary = _free_items(taken, n_items, rows, ranks)
    if false_negatives is None or noise <= 0:
        return torch.from_numpy(ordinary)
    lengths = false_negatives.lengths[rows]
    # A user without false negatives picks nothing; the limit of 1 only avoids a draw from nothing.
    limits = np.maximum(lengths, 1)
    picked = _below(numbers, limits[:, None])
    starts = false_negatives.offsets[rows]
    places = picked + starts[:, None]
    padded = np.append(false_negatives.items, 0)
    false_items = padded[np.minimum(places, len(false_negatives.items))]
    # The low half decides whether a draw is false, the high half which item it is.
    low_halves = numbers & np.uint64(0xFFFFFFFF)
    shares = low_halves.astype(np.float64) * 2.0**-32
    has_any = lengths > 0
    is_false = (shares < noise) & has_any[:, None]
    drawn = np.where(is_false, false_items, ordinary)
    return torch.from_numpy(drawn.astype(np.int32))


def _numbers(key: int, pairs: np.ndarray, count: int) -> np.ndarray:
    """One random number of 64 bits for each pair and draw."""
    with np.errstate(over="ignore"):  # the arithmetic is modulo 2^64
        of_pairs = (pairs.astype(np.uint64) + np.uint64(1)) * _GOLDEN_RATIO
        streams = _mixed(np.uint64(key) + of_pairs)
        draws = np.arange(1, count + 1, dtype=np.uint64) * _GOLDEN_RATIO
        return _mixed(streams[:, None] + draws)


def _mixed(value: np.ndarray) -> np.ndarray:
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray = value ^ (value >> np.uint64(31))
    return mixed


def _below(numbers: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """Whole numbers below the limits: the high half of a number, scaled instead of divided."""
    scaled = (numbers >> np.uint64(32)) * limits.astype(np.uint64)
    below: np.ndarray = (scaled >> np.uint64(32)).astype(np.int64)
    return below


def _distinct_ranks(numbers: np.ndarray, n_free: np.ndarray) -> np.ndarray:
    # Floyd's way to a random subset: draw among ever more ranks, and take the last of them where
    # one came before.
    count = numbers.shape[1]
    every_row = np.arange(len(numbers))
    ranks = np.empty(numbers.shape, dtype=np.int64)
    drawn = np.zeros((len(numbers), int(n_free.max(initial=0))), dtype=bool)
    for draw in range(count):
        within = draw % n_free
        # All items have come once; the next round begins.
        drawn[within == 0] = False
        n_of_round = np.minimum(n_free, count - draw + within)
        last = n_free - n_of_round + within
        rank = _below(numbers[:, draw], last + 1)
        came_before = drawn[every_row, rank]
        rank = np.where(came_before, last, rank)
        drawn[every_row, rank] = True
        ranks[:, draw] = rank
    return ranks


def _free_items(taken: Rows, n_items: int, users: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    # The item of rank r among those not taken is r + k, where k counts the taken items t_i with
    # t_i - i <= r. One search serves all users: adding user * n_items keeps the lists apart.
    offsets = taken.offsets
    owners = np.repeat(np.arange(len(taken)), taken.lengths)
    places = np.arange(len(taken.items)) - offsets[owners]
    gaps = taken.items.astype(np.int64) - places + owners * n_items
    wanted = ranks + users[:, None] * n_items
    found = np.searchsorted(gaps, wanted, side="right")
    before = found - offsets[users][:, None]
    free: np.ndarray = (ranks + before).astype(np.int32)
    return free
