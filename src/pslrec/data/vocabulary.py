"""External ids of users or items, and the row numbers that stand for them inside."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from pslrec.errors import DataError, UnknownNameError


class Vocabulary:
    """An immutable two-way map between external ids and row numbers 0, 1, 2, ...

    Args:
        ids: the external ids in row order, all different: whole numbers, strings, or anything polars can hold.
        kind: what the ids name, for messages: "user" or "item".

    >>> items = Vocabulary(["apt", "bash", "coreutils"], kind="item")
    >>> items.rows(["coreutils", "apt"])
    array([2, 0], dtype=int32)
    >>> items.ids([1])
    ['bash']
    >>> items.rows(["zsh"])
    Traceback (most recent call last):
    pslrec.errors.UnknownNameError: unknown item `zsh`
    """

    def __init__(self, ids: Sequence[Any] | pl.Series | np.ndarray, kind: str = "id") -> None:
        self.kind = kind
        self.series = pl.Series(kind, ids)
        if self.series.null_count():
            raise DataError(f"{kind} ids must not be missing: {self.series.null_count()} are")
        if self.series.n_unique() != len(self.series):
            raise DataError(
                f"{kind} ids of a vocabulary must be unique: {len(self.series) - self.series.n_unique()} repeat"
            )

    @cached_property
    def _row_of(self) -> dict[Any, int]:
        return {identifier: row for row, identifier in enumerate(self.series.to_list())}

    def __len__(self) -> int:
        return len(self.series)

    def __contains__(self, identifier: object) -> bool:
        return identifier in self._row_of

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Vocabulary)
            and self.series.dtype == other.series.dtype
            and self.series.equals(other.series)
        )

    def __hash__(self) -> int:
        return hash((len(self), self.kind))

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} {self.kind}s)"

    def rows(self, identifiers: Iterable[Any]) -> np.ndarray:
        """Row numbers of external ids; unknown ones raise."""
        try:
            return np.fromiter((self._row_of[identifier] for identifier in identifiers), dtype=np.int32)
        except KeyError as missing:
            raise UnknownNameError(f"unknown {self.kind} `{missing.args[0]}`") from None

    def ids(self, rows: Iterable[int]) -> list[Any]:
        """External ids of row numbers."""
        return self.series.gather(np.asarray(rows, dtype=np.int64)).to_list()

    def select(self, rows: np.ndarray) -> "Vocabulary":
        """The vocabulary of some rows, renumbered in the order given."""
        return Vocabulary(self.series.gather(rows), kind=self.kind)
