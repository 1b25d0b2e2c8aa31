"""From a table as it stands in a file to `Interactions`; doubtful values raise with their place."""

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
# Texts by which programs mark a gap. As ids they are kept, with a warning: a user may be called
# "null".
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
    """One column of a table, with all that a message about one of its values needs."""

    table: Table
    role: str
    name: str
    values: pl.Series

    @property
    def is_id(self) -> bool:
        return self.role in ("user", "item")

    def fail(self, position: int, problem: str) -> NoReturn:
        hint = ""
        if not self.is_id:
            option = self.role
            if option == "timestamp":
                # The command line has the shorter word.
                option = "time"
            hint = (
                f' (or do without it: `{self.role}=""`, on the command line `--{option}-column ""`)'
            )
        # A quoted name or value may span several lines; a message has one.
        message = re.sub(r"[\r\n]+", " ", f"`{self.name}` {problem}{hint}")
        raise DataError(f"{self.table.origin}: {self.table.place_of(position)}: {message}")

    def refuse_type(self, expected: str) -> NoReturn:
        raise DataError(
            f"{self.table.origin}: `{self.name}` must hold {expected}, it holds {self.values.dtype}"
        )

    def check_filled(self) -> None:
        missing = self.values.is_null()
        if self.values.dtype == pl.String:
            missing = missing | (self.values == "").fill_null(False)
        elif self.values.dtype.is_float() and self.is_id:
            # pandas marks a gap among ids by NaN. As a rating it is reported as a bad number.
            missing = missing | self.values.is_nan().fill_null(False)
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
    """Check the columns of a table; a gap, or text where a number belongs, raises."""
    if len(table.frame) == 0:
        raise DataError(f"{table.origin}: there are no interactions in it")
    columns = {}
    for role, name in table.columns.roles().items():
        columns[role] = _Column(table, role, name, table.frame[name])
    users = _ids(columns["user"])
    items = _ids(columns["item"])
    ratings = None
    timestamps = None
    weights = None
    if "rating" in columns:
        ratings = _numbers(columns["rating"])
    if "timestamp" in columns:
        timestamps = _timestamps(columns["timestamp"])
    if "weight" in columns:
        weights = _weights(columns["weight"])
    return CleanColumns(users, items, ratings, timestamps, weights)


def _first(mask: pl.Series) -> int | None:
    if not mask.any():
        return None
    position = mask.arg_max()
    assert position is not None
    return int(position)


def _ids(column: _Column) -> pl.Series:
    column.check_filled()
    values = column.values
    dtype = values.dtype
    if dtype.is_float():
        return _whole(column)
    if dtype == pl.String:
        _warn_of_gap_words(column)
        return values
    if dtype.is_integer():
        numbers = values.cast(pl.Int64, strict=False)
        # What a signed number of 64 bits cannot hold becomes text, as it would from a CSV file.
        if numbers.null_count():
            return values.cast(pl.String)
        return numbers
    is_spelled = dtype in (pl.Categorical, pl.Enum, pl.Date, pl.Datetime, pl.Boolean)
    if not is_spelled and not dtype.is_decimal():
        column.refuse_type("ids, whole numbers or text")
    return values.cast(pl.String)


def _warn_of_gap_words(column: _Column) -> None:
    found = column.values.filter(column.values.is_in(GAP_WORDS))
    for word, count in found.value_counts(sort=True).iter_rows():
        logger.warning(
            "%s: `%s` is the text `%s` in %d row%s, which is kept as an id; "
            "remove those rows if it marks a gap",
            column.table.origin,
            column.name,
            word,
            count,
            "s" if count > 1 else "",
        )


def _whole(column: _Column) -> pl.Series:
    # In pandas, a column of whole numbers that once had gaps holds floats.
    values = column.values
    is_whole = values.is_finite() & (values == values.round())
    is_exact = values.abs() < FLOATS_MERGE_FROM
    broken = _first(~(is_whole & is_exact))
    if broken is not None:
        column.fail(broken, f"is {values[broken]}, ids must be whole numbers or text")
    return values.cast(pl.Int64)


def _numbers(column: _Column, expected: str = "a finite number") -> np.ndarray:
    column.check_filled()
    values = column.values
    dtype = values.dtype
    if not dtype.is_numeric() and dtype not in (pl.String, pl.Boolean):
        column.refuse_type("numbers")
    numbers = values.cast(pl.Float64, strict=False)
    if dtype == pl.String and numbers.null_count():
        # Numbers may be padded with spaces; removing these takes time that most files need not pay.
        numbers = values.str.strip_chars().cast(pl.Float64, strict=False)
    is_good = numbers.is_finite() & (numbers.abs() <= LARGEST)
    bad = _first(~is_good.fill_null(False))
    if bad is not None:
        text = str(values[bad])
        advice = ", write a decimal point" if _has_decimal_comma(text) else ""
        column.fail(bad, f"must be {expected}, got `{text}`{advice}")
    return numbers.to_numpy()


def _has_decimal_comma(text: str) -> bool:
    return text.count(",") == 1 and text.replace(",", "").strip().isdigit()


def _weights(column: _Column) -> np.ndarray:
    weights = _numbers(column)
    wrong = np.flatnonzero(weights <= 0)
    if len(wrong):
        first = int(wrong[0])
        column.fail(
            first,
            f"must be positive, got {weights[first]:g}; remove rows that are not interactions",
        )
    return weights


def _timestamps(column: _Column) -> np.ndarray:
    column.check_filled()
    dtype = column.values.dtype
    if dtype in (pl.Date, pl.Datetime):
        seconds = _seconds_of_dates(column, column.values)
    elif dtype == pl.String and looks_like_date(column.values[0]):
        seconds = _seconds_of_dates(column, parsed_dates(column.values))
    elif dtype.is_numeric() or dtype == pl.String:
        seconds = _seconds_of_numbers(column)
    else:
        column.refuse_type("seconds since 1970 or dates")
    negative = np.flatnonzero(seconds < 0)
    if len(negative):
        first = int(negative[0])
        column.fail(first, f"must not be before 1970, got `{column.values[first]}`")
    return seconds


def _seconds_of_numbers(column: _Column) -> np.ndarray:
    expected = "seconds since 1970 or a date such as 2024-12-31 18:30:00 or 31.12.2024"
    numbers = _numbers(column, expected=expected)
    too_large = np.flatnonzero(np.abs(numbers) > LARGEST_TIME)
    if len(too_large):
        first = int(too_large[0])
        column.fail(
            first,
            f"must be {expected}, got `{column.values[first]}`, which is too large for any unit",
        )
    # Before the units: a date such as 20241231 would pass for a number of seconds.
    layout = compact_layout(numbers)
    if layout is not None:
        return _seconds_of_compact_dates(column, numbers, layout)
    odd = first_of_another_unit(numbers)
    if odd is not None:
        unit = UNITS[int(unit_of(numbers)[odd])].name
        column.fail(
            odd,
            f"seems to count {unit}, unlike the rows before it; convert all times to one unit",
        )
    return seconds_of_epoch(numbers)


def _seconds_of_compact_dates(column: _Column, numbers: np.ndarray, layout: str) -> np.ndarray:
    moments = parsed_compact_dates(numbers, layout)
    bad = _first(moments.is_null())
    if bad is not None:
        column.fail(
            bad,
            f"must be a date, as the other rows seem to be (`{column.values[0]}`), "
            f"got `{column.values[bad]}`; write dates as 2024-12-31, or seconds since 1970",
        )
    logger.info(
        "%s: `%s` is read as dates written as %s",
        column.table.origin,
        column.name,
        layout,
    )
    return moments.dt.epoch("s").to_numpy()


def _seconds_of_dates(column: _Column, moments: pl.Series) -> np.ndarray:
    bad = _first(moments.is_null())
    if bad == 0:
        column.fail(
            bad,
            "must be a date such as 2024-12-31, 31.12.2024 or 2024-12-31T18:30:00+02:00, "
            f"got `{column.values[bad]}`",
        )
    if bad is not None:
        column.fail(
            bad,
            f"must be a date as in the first row (`{column.values[0]}`), "
            f"got `{column.values[bad]}`",
        )
    return moments.dt.epoch("s").to_numpy()
