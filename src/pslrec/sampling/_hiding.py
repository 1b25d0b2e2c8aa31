"""Histories divided into a visible and a hidden part, for backbones that are made of histories."""

from copy import copy
from typing import NamedTuple

import numpy as np

from pslrec.errors import DataError
from pslrec.rows import Rows
from pslrec.seeding import derive_seed

# Constants of splitmix64, which turns a counter into numbers without a pattern.
_INCREMENT = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


class Hiding(NamedTuple):
    """How histories are divided in training.

    Args:
        visible: share of every history that may make its user's vector, rounded up.
        predicts: which items are positives: `all`, or those that are `hidden`.
    """

    visible: float = 0.5
    predicts: str = "all"


class DividedHistories:
    """Which items of every history an epoch hides, and which are positives.

    What is hidden depends on seed, epoch, user and item alone. How many are hidden is the same in
    every epoch. At least one item is visible and, of two or more, one is hidden unless all are to
    be visible.

    Args:
        histories: all items of every user, ascending.
        hiding: how they are divided.
        seed: of the draws.

    >>> hiding = Hiding(0.5, predicts="hidden")
    >>> divided = DividedHistories(Rows.from_lists([[3, 5, 8], [2]]), hiding, seed=0)
    >>> divided.n_positives
    array([1, 0])
    """

    def __init__(self, histories: Rows, hiding: Hiding, *, seed: int) -> None:
        lengths = histories.lengths
        most = lengths
        if hiding.visible < 1:
            most = np.maximum(lengths - 1, 1)
        # Rounded first: 0.1 times 30 is a little more than 3.
        wanted = np.ceil(np.round(hiding.visible * lengths, 6)).astype(np.int64)
        self._n_visible = np.minimum(np.maximum(wanted, 1), most)
        self._hiding = hiding
        self.n_positives = lengths
        if hiding.predicts == "hidden":
            self.n_positives = np.maximum(lengths - self._n_visible, 0)
        if not self.n_positives.any():
            raise DataError(
                "no user has two items, so nothing can be hidden from a history and predicted; "
                "give more data, or set `backbone.predicts` to all"
            )
        self._histories = histories
        # The user of every pair.
        self._owners = np.repeat(np.arange(len(histories)), lengths)
        self._seed = seed

    def between(self, owners: range) -> "DividedHistories":
        """The same for some users alone, whose histories are divided as they would be with all.

        Args:
            owners: rows of the users; all others have empty histories.
        """
        some = copy(self)
        some._histories = self._histories.between(owners)
        some._owners = np.repeat(np.arange(len(some._histories)), some._histories.lengths)
        return some

    @property
    def predicts_hidden(self) -> bool:
        """Whether hidden items alone are positives."""
        return self._hiding.predicts == "hidden"

    @property
    def n_pairs(self) -> int:
        """Pairs of all histories, visible and hidden."""
        return len(self._owners)

    def divide(self, epoch: int) -> tuple[Rows, Rows]:
        """The visible part of every history, and its positives.

        Args:
            epoch: counted from 0.
        """
        histories = self._histories
        if self._hiding.visible == 1:
            return histories, histories
        is_visible = self.is_visible(epoch)
        if self._hiding.predicts == "all":
            return self.part(is_visible), histories
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
