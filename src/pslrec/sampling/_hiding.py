"""Histories divided into a visible and a hidden part, for backbones that are made of histories."""

import numpy as np

from pslrec.errors import DataError
from pslrec.rows import Rows
from pslrec.seeding import derive_seed

# Constants of splitmix64, which turns a counter into numbers without a pattern.
_INCREMENT = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


class HiddenHistories:
    """Which items of every history an epoch hides.

    What is hidden depends on seed, epoch, user and item alone. How many are hidden is the same in
    every epoch: at least one item is visible and, of two or more, one is hidden.

    Args:
        histories: all items of every user, ascending.
        visible: share of every history that is visible, rounded up.
        seed: of the draws.

    >>> hidden = HiddenHistories(Rows.from_lists([[3, 5, 8], [2]]), visible=0.5, seed=0)
    >>> hidden.counts
    array([1, 0])
    """

    def __init__(self, histories: Rows, *, visible: float, seed: int) -> None:
        lengths = histories.lengths
        most = np.maximum(lengths - 1, 1)
        # Rounded first: 0.1 times 30 is a little more than 3.
        wanted = np.ceil(np.round(visible * lengths, 6))
        self._n_visible = np.clip(wanted.astype(np.int64), 1, most)
        self.counts = np.maximum(lengths - self._n_visible, 0)
        if not self.counts.any():
            raise DataError(
                "no user has two items, so nothing can be hidden from a history and predicted; "
                "give more data, or set `backbone.name` to mf"
            )
        self._histories = histories
        # The user of every pair.
        self._owners = np.repeat(np.arange(len(histories)), lengths)
        self._seed = seed

    @property
    def n_pairs(self) -> int:
        """Pairs of all histories, visible and hidden."""
        return len(self._owners)

    @property
    def n_hidden(self) -> int:
        """Hidden pairs of an epoch."""
        return int(self.counts.sum())

    def divide(self, epoch: int) -> tuple[Rows, Rows]:
        """The visible and the hidden part of every history.

        Args:
            epoch: counted from 0.
        """
        is_visible = self.is_visible(epoch)
        return self.part(is_visible), self.part(~is_visible)

    def is_visible(self, epoch: int) -> np.ndarray:
        """Whether each pair of the histories is visible, in their order.

        Args:
            epoch: counted from 0.
        """
        histories = self._histories
        # A user's items in random order: sorted by the user, then by a number of the pair.
        n_bits = max(len(histories) - 1, 1).bit_length()
        keys = self._numbers(epoch)
        # In place: each array of all pairs takes more memory than the histories themselves.
        keys >>= np.uint64(n_bits)
        keys |= self._owners.astype(np.uint64) << np.uint64(64 - n_bits)
        order = np.argsort(keys, kind="stable")
        del keys
        places = np.arange(len(order)) - histories.offsets[self._owners]
        is_visible = np.empty(len(order), dtype=bool)
        is_visible[order] = places < self._n_visible[self._owners]
        return is_visible

    def part(self, is_in: np.ndarray) -> Rows:
        """Some pairs of the histories, by user.

        Args:
            is_in: whether each pair is among them, in the order of the histories.
        """
        histories = self._histories
        return Rows.from_pairs(self._owners[is_in], histories.items[is_in], n_owners=len(histories))

    def _numbers(self, epoch: int) -> np.ndarray:
        """A random number of 64 bits for every pair."""
        key = np.uint64(derive_seed(self._seed, "hidden items", epoch))
        pairs = self._owners.astype(np.uint64) << np.uint64(32)
        pairs |= self._histories.items.astype(np.uint64)
        # Unsigned arithmetic wraps around, as the algorithm wants.
        return _mixed(_mixed(pairs + _INCREMENT) ^ key)


def _mixed(numbers: np.ndarray) -> np.ndarray:
    numbers = (numbers ^ (numbers >> np.uint64(30))) * _FIRST
    numbers = (numbers ^ (numbers >> np.uint64(27))) * _SECOND
    mixed: np.ndarray = numbers ^ (numbers >> np.uint64(31))
    return mixed
