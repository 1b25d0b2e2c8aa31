"""From a table as it stands in a file to `Interactions`, with every doubtful value named by its place."""

from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import polars as pl

from pslrec.data.formats.base import Table
from pslrec.data.interactions import Interactions
from pslrec.errors import DataError

# Seconds since 1970 reach this in the year 5138; anything above was counted in milliseconds.
MILLISECONDS_FROM = 10**11


@dataclass(frozen=True)
class CleanColumns:
    """Columns without gaps or doubtful values; ids are still external."""

    users: pl.Series
    items: pl.Series
    ratings: np.ndarray | None
    timestamps: np.ndarray | None


def to_interactions(table: Table) -> Interactions:
    """Check the columns of a table and encode its ids."""
    columns = clean(table)
    if len(columns.users) == 0:
        raise DataError(f"{table.origin}: there are no interactions in it")
    return Interactions.from_ids(columns.users, columns.items, ratings=columns.ratings, timestamps=columns.timestamps)


def clean(table: Table) -> CleanColumns:
    """Check the columns of a table.

    Rows in which every column is empty (blank lines) are passed over; any other gap, or a number that is none, raises.
    """
    names = table.columns
    assert names.user is not None
    assert names.item is not None
    filled = _filled_rows(table)
    return CleanColumns(
        _ids(table, names.user, filled),
        _ids(table, names.item, filled),
        None if names.rating is None else _numbers(table, names.rating, filled),
        None if names.timestamp is None else _timestamps(table, names.timestamp, filled),
    )


def _filled_rows(table: Table) -> np.ndarray | None:
    blank = table.frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
    return (~blank).arg_true().to_numpy() if blank.any() else None


def _column(table: Table, name: str, filled: np.ndarray | None) -> pl.Series:
    column = table.frame[name]
    return column if filled is None else column.gather(filled)


def _fail(table: Table, filled: np.ndarray | None, position: int, problem: str) -> NoReturn:
    row = position if filled is None else int(filled[position])
    raise DataError(f"{table.origin}: {table.place_of(row)}: {problem}")


def _first(mask: pl.Series) -> int | None:
    position = mask.arg_max() if mask.any() else None
    return None if position is None else int(position)


def _ids(table: Table, name: str, filled: np.ndarray | None) -> pl.Series:
    column = _column(table, name, filled)
    missing = column.is_null()
    if column.dtype == pl.String:
        missing = missing | (column == "").fill_null(False)
    elif column.dtype.is_float():
        missing = missing | column.is_nan().fill_null(False)
    position = _first(missing)
    if position is not None:
        _fail(table, filled, position, f"`{name}` is empty; fill it in or remove the row")
    if column.dtype.is_float():
        return _whole(table, name, column, filled)
    if column.dtype.is_integer() or column.dtype == pl.String:
        return column
    if column.dtype in (pl.Categorical, pl.Enum, pl.Date, pl.Datetime, pl.Boolean) or column.dtype.is_decimal():
        return column.cast(pl.String)
    raise DataError(f"{table.origin}: `{name}` holds {column.dtype}, ids must be whole numbers or text")


def _whole(table: Table, name: str, column: pl.Series, filled: np.ndarray | None) -> pl.Series:
    # A frame that once had gaps holds whole-number ids as floats.
    broken = _first(~column.is_finite() | (column != column.round()))
    if broken is not None:
        _fail(table, filled, broken, f"`{name}` is {column[broken]}, ids must be whole numbers or text")
    return column.cast(pl.Int64)


def _numbers(table: Table, name: str, filled: np.ndarray | None) -> np.ndarray:
    column = _column(table, name, filled)
    numbers = (column.str.strip_chars() if column.dtype == pl.String else column).cast(pl.Float64, strict=False)
    bad = _first(~numbers.is_finite().fill_null(False))
    if bad is not None:
        _fail(table, filled, bad, f"`{name}` must be a finite number, got `{column[bad]}`")
    return numbers.to_numpy()


def _timestamps(table: Table, name: str, filled: np.ndarray | None) -> np.ndarray:
    column = _column(table, name, filled)
    if column.dtype == pl.String and column.head(1).cast(pl.Float64, strict=False).null_count():
        column = _parsed_dates(column)
        bad = _first(column.is_null())
        if bad is not None:
            original = _column(table, name, filled)[bad]
            _fail(table, filled, bad, f"`{name}` must be a date or seconds since 1970, got `{original}`")
    if column.dtype in (pl.Date, pl.Datetime):
        seconds = column.dt.epoch("s").to_numpy()
    else:
        seconds = _numbers(table, name, filled).astype(np.int64)
        seconds = seconds // 1000 if len(seconds) and np.median(seconds) > MILLISECONDS_FROM else seconds
    negative = np.flatnonzero(seconds < 0)
    if len(negative):
        _fail(table, filled, int(negative[0]), f"`{name}` must not be before 1970, got {seconds[negative[0]]}")
    return seconds


def _parsed_dates(column: pl.Series) -> pl.Series:
    # A zone written as Z or an offset is turned into UTC; without one the time is taken as UTC.
    try:
        parsed = column.str.to_datetime(strict=False, time_zone="UTC")
    except pl.exceptions.PolarsError:
        parsed = pl.Series(column.name, [None] * len(column), dtype=pl.Datetime)
    return parsed
