"""From a table as it stands in a file to `Interactions`, with every doubtful value named by its place."""

import logging
import re
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import polars as pl

from pslrec.data._interactions import Interactions
from pslrec.data._times import (
    LARGEST_TIME,
    UNITS,
    compact_layout,
    first_of_another_unit,
    looks_like_date,
    parsed_compact_dates,
    parsed_dates,
    seconds_of_epoch,
    unit_of,
)
from pslrec.data.formats import FLOATS_MERGE_FROM, Table
from pslrec.errors import DataError

logger = logging.getLogger(__name__)

LARGEST = float(np.finfo(np.float32).max)
# Texts by which programs mark a gap; as ids they are kept, and told.
GAP_WORDS = ("NaN", "nan", "null", "NULL", "None")


@dataclass(frozen=True)
class CleanColumns:
    """Columns without gaps or doubtful values; ids are still external."""

    users: pl.Series
    items: pl.Series
    ratings: np.ndarray | None
    timestamps: np.ndarray | None
    weights: np.ndarray | None


@dataclass(frozen=True)
class _Column:
    """One column of a table, and what it takes to complain about a value in it."""

    table: Table
    role: str
    name: str
    values: pl.Series

    def fail(self, position: int, problem: str) -> NoReturn:
        without = f' (or do without it: `{self.role}=""`, on the command line `pslrec data prepare --{self.role}-column ""`)'
        hint = "" if self.role in ("user", "item") else without
        # A quoted name or value may have several lines; a message has one.
        told = re.sub(r"[\r\n]+", " ", f"`{self.name}` {problem}{hint}")
        raise DataError(f"{self.table.origin}: {self.table.place_of(position)}: {told}")

    def refuse_type(self, expected: str) -> NoReturn:
        raise DataError(
            f"{self.table.origin}: `{self.name}` must hold {expected}, it holds {self.values.dtype}"
        )

    def check_filled(self) -> None:
        missing = self.values.is_null()
        if self.values.dtype == pl.String:
            missing = missing | (self.values == "").fill_null(False)
        elif self.values.dtype.is_float():
            missing = (
                missing | self.values.is_nan().fill_null(False)
                if self.role in ("user", "item")
                else missing
            )
        position = _first(missing)
        if position is not None:
            self.fail(position, "is empty; fill it in or remove the row")


def to_interactions(table: Table) -> Interactions:
    """Check the columns of a table and encode its ids."""
    columns = clean(table)
    return Interactions.from_ids(
        columns.users,
        columns.items,
        ratings=columns.ratings,
        timestamps=columns.timestamps,
        weights=columns.weights,
    )


def clean(table: Table) -> CleanColumns:
    """Check the columns of a table; a gap, or a number that is none, raises."""
    if len(table.frame) == 0:
        raise DataError(f"{table.origin}: there are no interactions in it")
    columns = {}
    for role, name in table.columns.roles().items():
        columns[role] = _Column(table, role, name, table.frame[name])
    return CleanColumns(
        _ids(columns["user"]),
        _ids(columns["item"]),
        _numbers(columns["rating"]) if "rating" in columns else None,
        _timestamps(columns["timestamp"]) if "timestamp" in columns else None,
        _weights(columns["weight"]) if "weight" in columns else None,
    )


def _first(mask: pl.Series) -> int | None:
    position = mask.arg_max() if mask.any() else None
    return None if position is None else int(position)


def _ids(column: _Column) -> pl.Series:
    column.check_filled()
    values, dtype = column.values, column.values.dtype
    if dtype.is_float():
        return _whole(column)
    if dtype == pl.String:
        _tell_gap_words(column)
        return values
    if dtype.is_integer():
        # What does not fit is kept as text: a file gives back the same.
        return (
            values.cast(pl.String)
            if values.cast(pl.Int64, strict=False).null_count()
            else values.cast(pl.Int64)
        )
    if not (
        dtype in (pl.Categorical, pl.Enum, pl.Date, pl.Datetime, pl.Boolean) or dtype.is_decimal()
    ):
        column.refuse_type("ids, whole numbers or text")
    return values.cast(pl.String)


def _tell_gap_words(column: _Column) -> None:
    found = column.values.filter(column.values.is_in(GAP_WORDS))
    for word, count in found.value_counts(sort=True).iter_rows():
        logger.warning(
            "%s: `%s` is the text `%s` in %d row%s, which is kept as an id; remove those rows if it marks a gap",
            column.table.origin,
            column.name,
            word,
            count,
            "s" if count > 1 else "",
        )


def _whole(column: _Column) -> pl.Series:
    # A frame that once had gaps holds whole-number ids as floats.
    values = column.values
    broken = _first(
        ~values.is_finite() | (values != values.round()) | (values.abs() >= FLOATS_MERGE_FROM)
    )
    if broken is not None:
        column.fail(broken, f"is {values[broken]}, ids must be whole numbers or text")
    return values.cast(pl.Int64)


def _numbers(column: _Column, expected: str = "a finite number") -> np.ndarray:
    column.check_filled()
    values, dtype = column.values, column.values.dtype
    if not (dtype.is_numeric() or dtype in (pl.String, pl.Boolean)):
        column.refuse_type("numbers")
    numbers = values.cast(pl.Float64, strict=False)
    if dtype == pl.String and numbers.null_count():
        numbers = values.str.strip_chars().cast(pl.Float64, strict=False)
    bad = _first(~(numbers.is_finite() & (numbers.abs() <= LARGEST)).fill_null(False))
    if bad is not None:
        text = str(values[bad])
        column.fail(
            bad,
            f"must be {expected}, got `{text}`"
            + (", write a decimal point" if _has_decimal_comma(text) else ""),
        )
    return numbers.to_numpy()


def _has_decimal_comma(text: str) -> bool:
    return text.count(",") == 1 and text.replace(",", "").strip().isdigit()


def _weights(column: _Column) -> np.ndarray:
    weights = _numbers(column)
    wrong = np.flatnonzero(weights <= 0)
    if len(wrong):
        column.fail(
            int(wrong[0]),
            f"must be positive, got {weights[wrong[0]]:g}; remove rows that are no interactions",
        )
    return weights


def _timestamps(column: _Column) -> np.ndarray:
    column.check_filled()
    dtype = column.values.dtype
    if dtype in (pl.Date, pl.Datetime) or (
        dtype == pl.String and looks_like_date(column.values[0])
    ):
        seconds = _seconds_of_dates(column)
    elif dtype.is_numeric() or dtype == pl.String:
        seconds = _seconds_of_numbers(column)
    else:
        column.refuse_type("seconds since 1970 or dates")
    negative = np.flatnonzero(seconds < 0)
    if len(negative):
        column.fail(
            int(negative[0]), f"must not be before 1970, got `{column.values[int(negative[0])]}`"
        )
    return seconds


def _seconds_of_numbers(column: _Column) -> np.ndarray:
    expected = "seconds since 1970 or a date such as 2024-12-31 18:30:00"
    numbers = _numbers(column, expected=expected)
    too_large = np.flatnonzero(np.abs(numbers) > LARGEST_TIME)
    if len(too_large):
        first = int(too_large[0])
        column.fail(
            first,
            f"must be {expected}, got `{column.values[first]}`, which is beyond all nanoseconds",
        )
    layout = compact_layout(numbers)
    if layout is not None:
        return _seconds_of_compact_dates(column, numbers, layout)
    odd = first_of_another_unit(numbers)
    if odd is not None:
        unit = UNITS[int(unit_of(numbers)[odd])].name
        column.fail(
            odd, f"seems to count {unit}, other than the rows before it; bring all to one unit"
        )
    return seconds_of_epoch(numbers)


def _seconds_of_compact_dates(column: _Column, numbers: np.ndarray, layout: str) -> np.ndarray:
    moments = parsed_compact_dates(numbers, layout)
    bad = _first(moments.is_null())
    if bad is not None:
        column.fail(
            bad,
            f"must be a date, as the other rows seem to be (`{column.values[0]}`), got `{column.values[bad]}`; "
            "write dates as 2024-12-31, or seconds since 1970",
        )
    logger.info(
        "%s: `%s` is read as dates written without marks, such as %s",
        column.table.origin,
        column.name,
        layout,
    )
    return moments.dt.epoch("s").to_numpy()


def _seconds_of_dates(column: _Column) -> np.ndarray:
    moments = parsed_dates(column.values) if column.values.dtype == pl.String else column.values
    bad = _first(moments.is_null())
    if bad is not None:
        column.fail(
            bad,
            f"must be a date as in the first row (`{column.values[0]}`), got `{column.values[bad]}`",
        )
    return moments.dt.epoch("s").to_numpy()
