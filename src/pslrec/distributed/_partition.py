"""Which process holds which rows: contiguous ranges, one after the other."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Partition:
    """Rows 0, 1, 2, ... cut into one range per process, some of which may be empty.

    Args:
        cuts: where the ranges begin, and where the last one ends.

    >>> rows = Partition.even(5, 2)
    >>> rows.of(0), rows.of(1)
    (range(0, 3), range(3, 5))
    """

    cuts: tuple[int, ...]

    @classmethod
    def even(cls, n_rows: int, n_parts: int) -> "Partition":
        """Ranges of the same length, but for one row.

        Args:
            n_rows: how many rows there are.
            n_parts: how many processes.
        """
        cuts = [-(-n_rows * part // n_parts) for part in range(n_parts + 1)]
        return cls(tuple(cuts))

    @classmethod
    def balanced(cls, work: np.ndarray, n_parts: int) -> "Partition":
        """Ranges of about the same work.

        Args:
            work: of each row, such as its number of positives.
            n_parts: how many processes.

        >>> Partition.balanced(np.array([5, 1, 1, 1, 1, 1]), 2).cuts
        (0, 1, 6)
        """
        done = np.cumsum(work, dtype=np.float64)
        total = 0.0
        if len(done):
            total = float(done[-1])
        goals = total * np.arange(1, n_parts) / n_parts
        # The first row with which the goal is reached is the last one of its part.
        inner = np.searchsorted(done, goals) + 1
        limited = np.minimum(inner, len(work))
        return cls((0, *limited.tolist(), len(work)))

    def of(self, part: int) -> range:
        """The rows of one process.

        Args:
            part: its rank.
        """
        return range(self.cuts[part], self.cuts[part + 1])

    def __len__(self) -> int:
        """How many rows there are in all."""
        return self.cuts[-1]
