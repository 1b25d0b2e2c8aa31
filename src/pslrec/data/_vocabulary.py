"""External ids of users or items, and the row numbers that stand for them inside."""

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from pslrec.errors import DataError, UnknownNameError

# `int` alone would take underscores, other scripts' digits and endless numbers.
# Nor are zeros in front part of a number: they tell ids apart.
_WHOLE_NUMBER = re.compile(r"0|-?[1-9]\d{0,38}", re.ASCII)


class Vocabulary:
    """An immutable two-way map between external ids and row numbers 0, 1, 2, ...

    Args:
        ids: the external ids in row order, all different and of one type: whole numbers, text, or
            anything else that polars can hold.
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
        self._kind = kind
        self._series = as_series(ids, kind)
        if self._series.null_count():
            raise DataError(f"{kind} ids must not be missing: {self._series.null_count()} are")
        repeated = len(self._series) - self._series.n_unique()
        if repeated:
            raise DataError(f"{kind} ids of a vocabulary must be unique: {repeated} repeat")

    @property
    def kind(self) -> str:
        """What the ids name."""
        return self._kind

    @property
    def series(self) -> pl.Series:
        """The external ids in row order."""
        # A series can be changed in place, so callers get one of their own over the same memory.
        return self._series.clone()

    # Made when it is first needed: training never looks up an id.
    @cached_property
    def _row_of(self) -> dict[Any, int]:
        return {identifier: row for row, identifier in enumerate(self._series.to_list())}

    def __len__(self) -> int:
        return len(self._series)

    def __contains__(self, identifier: object) -> bool:
        return identifier in self._row_of

    def __eq__(self, other: object) -> bool:
        # Parts of one split share the very same object, and comparing ids takes time.
        if self is other:
            return True
        if not isinstance(other, Vocabulary):
            return False
        # Polars takes ids of different types for equal, for example 1 and 1.0.
        if self._series.dtype != other._series.dtype:
            return False
        return self._series.equals(other._series)

    def __hash__(self) -> int:
        # Equal vocabularies are equally long; hashing all ids would cost more than it saves.
        return hash(len(self))

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} {self.kind}s)"

    def rows(self, identifiers: Iterable[Any]) -> np.ndarray:
        """Row numbers of external ids; unknown ones raise."""
        try:
            found = map(self._row_of.__getitem__, identifiers)
            return np.fromiter(found, dtype=np.int32)
        except KeyError as missing:
            raise UnknownNameError(f"unknown {self.kind} `{missing.args[0]}`") from None

    def find(self, identifier: object) -> int | None:
        """Row number of an external id, or `None` if it is unknown.

        >>> Vocabulary(["apt", "bash"]).find("bash"), Vocabulary(["apt", "bash"]).find("zsh")
        (1, None)
        """
        try:
            return self._row_of.get(identifier)
        except TypeError:
            # A list, for example, cannot be a key, so it is not an id either.
            return None

    def find_given(self, identifier: object) -> int | None:
        """Row number of an id as a person or a program gives it, or `None` if it is unknown.

        Where ids are whole numbers, their digits as text will do, since command lines and
        addresses hold only text; `007` is another id than 7. Where ids are anything else, their text
        will do.

        >>> items = Vocabulary([10, 7], kind="item")
        >>> items.find_given("7"), items.find_given(7), items.find_given("007")
        (1, 1, None)
        """
        row = self.find(identifier)
        if row is not None or not isinstance(identifier, str | int):
            return row
        if not self._series.dtype.is_integer():
            return self._row_of_text.get(str(identifier))
        if isinstance(identifier, str) and _WHOLE_NUMBER.fullmatch(identifier.strip()):
            return self.find(int(identifier))
        return None

    def find_all_given(self, identifiers: Iterable[object]) -> list[int | None]:
        """Row numbers of several ids as `find_given` finds them.

        >>> Vocabulary([10, 7], kind="item").find_all_given(["7", 10, "seven"])
        [1, 0, None]
        """
        given = list(identifiers)
        try:
            # Nearly all ids are given as they are in the data, and this is many times faster.
            rows = list(map(self._row_of.get, given))
        except TypeError:
            # Something among them cannot be a key.
            return [self.find_given(identifier) for identifier in given]
        if None in rows:
            for place, row in enumerate(rows):
                if row is None:
                    rows[place] = self.find_given(given[place])
        return rows

    def rows_of(self, others: "Vocabulary") -> np.ndarray:
        """The row here of each id of another vocabulary, -1 where it is unknown.

        >>> Vocabulary([10, 7]).rows_of(Vocabulary(["7", "007", "10"]))
        array([ 1, -1,  0])
        """
        found = self.find_all_given(others.series.to_list())
        return np.array([-1 if row is None else row for row in found], dtype=np.int64)

    # Ids such as dates, by what they look like.
    @cached_property
    def _row_of_text(self) -> dict[str, int]:
        if self._series.dtype == pl.String:
            return self._row_of
        return {str(identifier): row for row, identifier in enumerate(self._series.to_list())}

    def ids(self, rows: Iterable[int]) -> list[Any]:
        """External ids of row numbers."""
        positions = np.asarray(rows, dtype=np.int64)
        # Polars would count a negative row from the end.
        if len(positions) and (positions.min() < 0 or positions.max() >= len(self)):
            raise DataError(
                f"{self.kind} `rows` must lie between 0 and {len(self) - 1}, "
                f"got {positions.min()} to {positions.max()}"
            )
        return self._series.gather(positions).to_list()

    def select(self, rows: np.ndarray) -> "Vocabulary":
        """The vocabulary of some rows, renumbered in the order given."""
        return Vocabulary(self._series.gather(rows), kind=self.kind)


def cast_ids(ids: pl.Series, dtype: Any) -> pl.Series:
    """Ids in the type of known ones; missing where that would be another id.

    Args:
        ids: of one type.
        dtype: that of the known ones.

    >>> cast_ids(pl.Series(["7", "007", "ann"]), pl.Int64()).to_list()
    [7, None, None]
    """
    if ids.dtype == dtype:
        return ids
    cast = ids.cast(dtype, strict=False)
    is_same = cast.cast(ids.dtype, strict=False) == ids
    return pl.select(pl.when(is_same).then(cast)).to_series().alias(ids.name)


def as_series(ids: Iterable[Any], kind: str) -> pl.Series:
    """Ids as one polars column, or a clear error where they are not of one type."""
    values: Any = ids
    if not isinstance(ids, pl.Series | np.ndarray):
        values = list(ids)
    try:
        series = pl.Series(kind, values)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(
            f"{kind} ids must all be whole numbers or all be text ({reason})"
        ) from error
    if series.dtype == pl.Object:
        raise DataError(f"{kind} ids must be whole numbers or text, got {type(series[0]).__name__}")
    return series
