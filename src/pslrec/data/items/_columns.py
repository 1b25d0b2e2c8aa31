"""A column of an item table: one value per item of the model, or none."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import polars as pl

Kind = Literal["text", "number", "truth"]
# Whole numbers with a leading zero are codes, such as postcodes, and stay text.
_WHOLE_NUMBER = r"^\s*[+-]?(0|[1-9]\d{0,17})\s*$"
_NUMBER = r"^\s*[+-]?(0|[1-9]\d*)?(\.\d+)?([eE][+-]?\d{1,3})?\s*$"
# Prices of half the world. With three digits a comma might part thousands.
_DECIMAL_COMMA = r"^\s*[+-]?\d+(,\d{1,2})?\s*$"
_TRUTH = r"(?i)^\s*(true|false)\s*$"
LIST_SEPARATOR = "|"


@dataclass(frozen=True, eq=False)
class ItemColumn:
    """The values of one column by the row of the item.

    Args:
        kind: what the values are.
        values: numbers, or true and false; for text the places in `labels`.
        is_missing: where an item has no value.
        labels: the distinct texts of a column of text, ascending.
    """

    kind: Kind
    values: np.ndarray
    is_missing: np.ndarray
    labels: tuple[str, ...] = ()

    @staticmethod
    def is_usable(series: pl.Series) -> bool:
        """Whether the values are of any use in conditions: text, numbers, truths, lists of text."""
        kind = series.dtype
        if isinstance(kind, pl.List):
            return kind.inner == pl.String
        return not kind.is_nested() and kind not in (pl.Object, pl.Binary, pl.Null)

    @classmethod
    def from_series(cls, series: pl.Series) -> "ItemColumn | None":
        """A column of a table in row order; `None` if its values are of no use in conditions."""
        if not cls.is_usable(series):
            return None
        plain = _plain(series)
        is_missing = plain.is_null().to_numpy()
        if plain.dtype == pl.Boolean:
            return cls("truth", plain.fill_null(value=False).to_numpy(), is_missing)
        if plain.dtype.is_numeric():
            return cls("number", plain.fill_null(0).to_numpy(), is_missing)
        labels = plain.drop_nulls().unique().sort()
        places = pl.DataFrame({"label": labels}).with_row_index("place")
        found = plain.to_frame("label").join(places, on="label", how="left", maintain_order="left")
        # Missing values take the place after the last label.
        codes = found["place"].fill_null(len(labels)).to_numpy().astype(np.int64)
        return cls("text", codes, is_missing, tuple(labels.to_list()))

    def compare(self, holds: Callable[[Any, Any], Any], value: Any) -> np.ndarray:
        """For each item whether its value compares so with another; false where it has none.

        Args:
            holds: takes what the item has and `value`.
            value: of the same kind as the column.
        """
        if self.kind != "text":
            return self._where_present(holds(self.values, value))
        # Each distinct text is compared once, however many items have it.
        return self._of_labels([bool(holds(label, value)) for label in self.labels])

    def is_one_of(self, values: Sequence[Any]) -> np.ndarray:
        """For each item whether it has one of several values.

        Args:
            values: of the same kind as the column.
        """
        if self.kind != "text":
            return self._where_present(np.isin(self.values, values))
        wanted = set(values)
        return self._of_labels([label in wanted for label in self.labels])

    def _where_present(self, found: np.ndarray) -> np.ndarray:
        if not self._has_gaps:
            return found
        kept: np.ndarray = found & ~self.is_missing
        return kept

    @cached_property
    def _has_gaps(self) -> bool:
        return bool(self.is_missing.any())

    def _of_labels(self, matches: list[bool]) -> np.ndarray:
        # Items without a value have the place after the last label.
        by_label = np.array([*matches, False])
        mask: np.ndarray = by_label[self.values]
        return mask

    def value(self, row: int) -> Any:
        """The value of an item, or `None` if it has none.

        Args:
            row: of the item.
        """
        if self.is_missing[row]:
            return None
        if self.kind == "text":
            return self.labels[self.values[row]]
        return self.values[row].item()

    @cached_property
    def categories(self) -> np.ndarray:
        """A number for each distinct value; -1 where an item has none."""
        codes = self.values
        if self.kind != "text":
            codes = np.unique(self.values, return_inverse=True)[1]
        return np.where(self.is_missing, -1, codes)

    def most_frequent(self, n: int) -> list[str]:
        """The texts that most items have, by number of items; empty for other kinds.

        Args:
            n: how many at most.
        """
        if self.kind != "text":
            return []
        counts = np.bincount(self.values[~self.is_missing], minlength=len(self.labels))
        order = np.argsort(-counts, kind="stable")[: min(n, len(self.labels))]
        return [self.labels[place] for place in order]


def _plain(series: pl.Series) -> pl.Series:
    """The series as text, whole numbers, floats or booleans."""
    kind = series.dtype
    if isinstance(kind, pl.List):
        return series.list.join(LIST_SEPARATOR)
    if kind == pl.Boolean:
        return series
    if kind.is_integer() and kind != pl.UInt64:
        return series.cast(pl.Int64)
    if kind.is_numeric():
        return series.cast(pl.Float64).fill_nan(None)
    return _from_text(series.cast(pl.String))


def _from_text(texts: pl.Series) -> pl.Series:
    """Text that holds nothing but numbers, or true and false, as what it stands for."""
    stripped = texts.str.strip_chars()
    given = stripped.set(stripped == "", None)
    present = given.drop_nulls()
    if not len(present):
        return given
    if present.str.contains(_WHOLE_NUMBER).all():
        return given.cast(pl.Int64)
    if present.str.contains(_NUMBER).all():
        numbers = given.cast(pl.Float64, strict=False)
        # A lone point or exponent looks like a number, and is none.
        if numbers.null_count() == given.null_count() and not numbers.is_infinite().any():
            return numbers
    has_commas = present.str.contains(",", literal=True).any()
    if has_commas and present.str.contains(_DECIMAL_COMMA).all():
        return given.str.replace(",", ".", literal=True).cast(pl.Float64)
    if present.str.contains(_TRUTH).all():
        return given.str.to_lowercase() == "true"
    return given
