"""Lists of row numbers of many owners, laid end to end: histories, positives, masks, neighbours."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor


# Entries that are converted at a time.
PIECE = 1 << 22


def counted(numbers: np.ndarray, n_rows: int) -> np.ndarray:
    """How often each row number occurs, without a copy of all of them in 64 bits.

    Args:
        numbers: row numbers, in any order.
        n_rows: all of them are below.

    >>> counted(np.array([2, 0, 2], dtype=np.int32), 4)
    array([1, 0, 2, 0])
    """
    counts = np.zeros(n_rows, dtype=np.int64)
    for start in range(0, len(numbers), PIECE):
        counts += np.bincount(numbers[start : start + PIECE], minlength=n_rows)
    return counts


@dataclass(frozen=True, eq=False)
class Rows:
    """One list of items per owner: the pattern of a sparse matrix in compressed rows (CSR).

    The arrays are numpy's, because the compiled functions take them five times faster than torch's
    tensors. They are shared freely, so nobody may write to them.

    Args:
        offsets: where each owner's list begins; the list ends where the next one begins. One entry
            more than there are owners, int64.
        items: all lists, one after the other, int32. Lists are ascending and without repeats
            unless a caller says otherwise.

    >>> rows = Rows.from_lists([[7, 5], [], [6]])
    >>> rows.offsets, rows.items
    (array([0, 2, 2, 3]), array([5, 7, 6], dtype=int32))
    >>> rows.lengths
    array([2, 0, 1])
    """

    offsets: np.ndarray
    items: np.ndarray

    def __post_init__(self) -> None:
        # The compiled functions read raw memory and refuse any other type or layout.
        offsets = np.ascontiguousarray(self.offsets, dtype=np.int64)
        items = np.ascontiguousarray(self.items, dtype=np.int32)
        object.__setattr__(self, "offsets", offsets)
        object.__setattr__(self, "items", items)

    @classmethod
    def from_keys(cls, keys: np.ndarray, *, n_owners: int, n_items: int) -> "Rows":
        """The distinct pairs among `owner * n_items + item`, given in any order.

        >>> Rows.from_keys(np.array([7, 1, 7]), n_owners=2, n_items=5).items
        array([1, 2], dtype=int32)
        """
        # Sorting and comparing neighbours is many times faster here than `np.unique`, which hashes.
        # The stable sort merges runs that are ordered already, as most logs are.
        ordered = np.sort(keys, kind="stable")
        is_first = np.diff(ordered, prepend=-1) > 0
        owners, items = np.divmod(ordered[is_first], max(n_items, 1))
        return cls.from_pairs(owners, items, n_owners=n_owners)

    @classmethod
    def from_pairs(cls, owners: np.ndarray, items: np.ndarray, *, n_owners: int) -> "Rows":
        """The items of each owner, from pairs that are ordered by owner."""
        offsets = np.zeros(n_owners + 1, dtype=np.int64)
        np.cumsum(np.bincount(owners, minlength=n_owners), out=offsets[1:])
        return cls(offsets, items)

    @classmethod
    def from_lists(cls, lists: Sequence[Sequence[int] | np.ndarray]) -> "Rows":
        """The distinct items of each list, ascending."""
        distinct = [np.unique(np.asarray(each, dtype=np.int32)) for each in lists]
        offsets = np.zeros(len(distinct) + 1, dtype=np.int64)
        np.cumsum([len(each) for each in distinct], out=offsets[1:])
        return cls(offsets, np.concatenate([np.empty(0, dtype=np.int32), *distinct]))

    @classmethod
    def empty(cls, n_owners: int) -> "Rows":
        """Owners whose lists are all empty."""
        return cls(np.zeros(n_owners + 1, dtype=np.int64), np.empty(0, dtype=np.int32))

    def __len__(self) -> int:
        """How many owners there are."""
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        """Memory held by both arrays."""
        return self.offsets.nbytes + self.items.nbytes

    @cached_property
    def lengths(self) -> np.ndarray:
        """How many items each owner has."""
        return np.diff(self.offsets)

    @cached_property
    def tensors(self) -> "tuple[Tensor, Tensor]":
        """Offsets and items as torch tensors over the same memory."""
        # Here and not at the top: the foundations load without torch.
        import torch

        return torch.from_numpy(self.offsets), torch.from_numpy(self.items)

    def list_of(self, owner: int) -> np.ndarray:
        """The items of one owner."""
        return self.items[self.offsets[owner] : self.offsets[owner + 1]]

    def positions(self, owners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The lists of some owners as pairs (position in `owners`, item), both int64.

        >>> Rows.from_lists([[5, 7], [6]]).positions(np.array([1, 0]))
        (array([0, 1, 1]), array([6, 5, 7]))
        """
        starts = self.offsets[owners]
        lengths = self.offsets[owners + 1] - starts
        positions = np.repeat(np.arange(len(owners)), lengths)
        # Counting on from each list's start, without a loop over owners.
        ends = np.cumsum(lengths)
        shifts = np.repeat(starts - (ends - lengths), lengths)
        places = np.arange(len(positions)) + shifts
        return positions, self.items[places].astype(np.int64)

    def select(self, owners: np.ndarray) -> "Rows":
        """The lists of some owners, in the order asked for.

        >>> Rows.from_lists([[5, 7], [6]]).select(np.array([1, 0])).items
        array([6, 5, 7], dtype=int32)
        """
        positions, items = self.positions(owners)
        return Rows.from_pairs(positions, items, n_owners=len(owners))

    def within(self, items: range) -> "Rows":
        """What each owner has of a range of items, counted from the first of them.

        >>> Rows.from_lists([[5, 7], [6]]).within(range(6, 8)).items
        array([1, 0], dtype=int32)
        """
        is_within = (self.items >= items.start) & (self.items < items.stop)
        owners = np.repeat(np.arange(len(self)), self.lengths)
        kept = self.items[is_within] - items.start
        return Rows.from_pairs(owners[is_within], kept, n_owners=len(self))

    def between(self, owners: range) -> "Rows":
        """The lists of a range of owners, with those of all others empty; nothing is copied.

        Row numbers stay the same. Where the items are mapped from a file, those of others are not
        read.

        >>> Rows.from_lists([[5, 7], [6], [8]]).between(range(1, 3)).lengths
        array([0, 1, 1])
        """
        first = self.offsets[owners.start]
        last = self.offsets[owners.stop]
        offsets = np.clip(self.offsets, first, last) - first
        return Rows(offsets, self.items[first:last])

    def merged(self, *others: "Rows") -> "Rows":
        """What each owner has in any of several lists, which have the same owners.

        >>> Rows.from_lists([[5, 7], [6]]).merged(Rows.from_lists([[5, 6], []])).items
        array([5, 6, 7, 6], dtype=int32)
        """
        if not others:
            return self
        everything = [self, *others]
        n_items = 1 + max(int(rows.items.max(initial=0)) for rows in everything)
        # Some owners at a time: keys and their order take many times the room of the lists.
        n_pairs = sum(len(rows.items) for rows in everything)
        n_blocks = 1 + n_pairs // PIECE
        step = max(1, -(-len(self) // n_blocks))
        blocks = []
        for first in range(0, max(len(self), 1), step):
            last = min(first + step, len(self))
            keys = [rows._keys_between(first, last, n_items) for rows in everything]
            block = Rows.from_keys(np.concatenate(keys), n_owners=last - first, n_items=n_items)
            blocks.append(block)
        lengths = np.concatenate([block.lengths for block in blocks])
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        return Rows(offsets, np.concatenate([block.items for block in blocks]))

    def _keys_between(self, first: int, last: int, n_items: int) -> np.ndarray:
        """`owner * n_items + item` of some owners, of which the first is 0."""
        items = self.items[self.offsets[first] : self.offsets[last]]
        owners = np.repeat(np.arange(last - first), self.lengths[first:last])
        keys: np.ndarray = owners * n_items + items
        return keys

    def only(self, owners: np.ndarray) -> "Rows":
        """The lists of some owners, with those of all others empty; row numbers stay the same.

        Args:
            owners: ascending.

        >>> Rows.from_lists([[5, 7], [6], [8]]).only(np.array([2])).lengths
        array([0, 0, 1])
        """
        lengths = np.zeros(len(self), dtype=np.int64)
        lengths[owners] = self.lengths[owners]
        _, items = self.positions(owners)
        return Rows(np.concatenate(([0], np.cumsum(lengths))), items)
