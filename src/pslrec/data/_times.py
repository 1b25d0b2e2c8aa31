"""Times as they are written in data: counted since 1970 in some unit, or as dates."""

import re
from typing import NamedTuple

import numpy as np
import polars as pl


class Unit(NamedTuple):
    """A unit in which times since 1970 are counted."""

    name: str
    per_second: int
    from_number: float


# Seconds reach the lower bound of milliseconds in the year 5138, and so on, so the size of a number
# of today reveals its unit.
UNITS = (
    Unit("seconds", 1, 0.0),
    Unit("milliseconds", 10**3, 1e11),
    Unit("microseconds", 10**6, 1e14),
    Unit("nanoseconds", 10**9, 1e17),
)

# The last nanosecond that fits into 64 bits.
LARGEST_TIME = 2.0**63

# Dates written as one number, by the least and the greatest number that can be one. As counts since
# 1970 they would lie in August 1970, in 1976 or in the 26th century, of which there are no logs.
COMPACT_LAYOUTS = {
    "YYYYMMDD": (19000101, 21001231),
    "YYYYMMDDhhmm": (190001010000, 210012312359),
    "YYYYMMDDhhmmss": (19000101000000, 21001231235959),
}

DATE = (
    # Year, month, day.
    r"^(\d{4})[-/](\d{1,2})[-/](\d{1,2})"
    # Hour, minute, second, and a fraction that is dropped.
    r"(?:[T ](\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d+)?)?)?"
    # The time zone: sign, hours, minutes.
    r"\s*(?:Z|UTC|([+-])(\d{2}):?(\d{2}))?$"
)

# Day, month, year: wherever people write points, they begin with the day.
DAY_FIRST = r"^\s*(\d{1,2})\.(\d{1,2})\.(\d{4})"


def unit_of(numbers: np.ndarray) -> np.ndarray:
    """Position in `UNITS` of the unit of each number, by its size.

    Zero fits all units and counts as seconds.
    """
    lower_bounds = [unit.from_number for unit in UNITS]
    units: np.ndarray = np.searchsorted(lower_bounds, np.abs(numbers), side="right") - 1
    return units


def first_of_another_unit(numbers: np.ndarray) -> int | None:
    """Position of the first number that has another unit than those before it, if there is one."""
    counted = np.flatnonzero(numbers != 0)
    sizes = np.abs(numbers[counted])
    if len(counted) == 0:
        return None
    # The two extremes decide for nearly all files, without the unit of each number.
    if unit_of(sizes.min()) == unit_of(sizes.max()):
        return None
    units = unit_of(sizes)
    others = np.flatnonzero(units != units[0])
    return int(counted[others[0]])


def seconds_of_epoch(numbers: np.ndarray) -> np.ndarray:
    """Whole seconds since 1970 of numbers that are all in the same unit.

    >>> seconds_of_epoch(np.array([1_700_000_000_123.0]))
    array([1700000000])
    """
    unit = UNITS[int(unit_of(np.abs(numbers).max()))]
    return np.floor(numbers / unit.per_second).astype(np.int64)


def compact_layout(numbers: np.ndarray) -> str | None:
    """The layout of dates written as one number that all of these numbers fit, or `None`.

    >>> compact_layout(np.array([20240501.0, 20231231.0]))
    'YYYYMMDD'
    >>> compact_layout(np.array([1_700_000_000.0])) is None
    True
    """
    least = numbers.min()
    greatest = numbers.max()
    for layout, (first, last) in COMPACT_LAYOUTS.items():
        if first <= least and greatest <= last:
            return layout
    return None


def parsed_compact_dates(numbers: np.ndarray, layout: str) -> pl.Series:
    """Moments in UTC of dates written as one number; null where there is no such date.

    >>> parsed_compact_dates(np.array([20240501.0, 20240532.0]), "YYYYMMDD").dt.year().to_list()
    [2024, None]
    """
    missing = "0" * (len("YYYYMMDDhhmmss") - len(layout))
    whole = pl.Series(np.floor(numbers).astype(np.int64)).cast(pl.String)
    return (whole + missing).str.to_datetime(
        "%Y%m%d%H%M%S", strict=False, time_unit="us", time_zone="UTC"
    )


def looks_like_date(text: str) -> bool:
    """Whether this starts like a date with the year first, or with points, where the day is first.

    Other orders could be read in two ways.

    >>> looks_like_date("2024-12-31"), looks_like_date("31.12.2024"), looks_like_date("12/31/2024")
    (True, True, False)
    """
    return re.match(rf"\s*\d{{4}}[-/]\d|{DAY_FIRST}", text) is not None


def parsed_dates(column: pl.Series) -> pl.Series:
    """Moments in UTC; null where there is no date. Without a zone the time is taken as UTC.

    >>> parsed_dates(pl.Series(["2024-12-31", "2024-12-31T01:00:00+01:00"])).dt.epoch("s").to_list()
    [1735603200, 1735603200]
    >>> parsed_dates(pl.Series(["31.12.2024", "1.2.2025 18:30"])).dt.month().to_list()
    [12, 2]
    """
    if len(column) and re.match(DAY_FIRST, str(column[0])):
        return _parsed_by_parts(column.str.replace(DAY_FIRST, "${3}-${2}-${1}"))
    try:
        parsed = column.str.to_datetime(strict=False, time_zone="UTC")
    except pl.exceptions.PolarsError:
        return _parsed_by_parts(column)
    # The fast way expects all values to be written like the first.
    if parsed.null_count():
        return _parsed_by_parts(column)
    return parsed


def _parsed_by_parts(column: pl.Series) -> pl.Series:
    parts = column.str.strip_chars().str.extract_groups(DATE).struct.unnest()
    parts.columns = [
        "year",
        "month",
        "day",
        "hour",
        "minute",
        "second",
        "sign",
        "zone_hours",
        "zone_minutes",
    ]
    padded = pl.col("month", "day", "hour", "minute", "second").fill_null("0").str.zfill(2)
    parts = parts.with_columns(padded)
    text = pl.format("{}-{}-{} {}:{}:{}", "year", "month", "day", "hour", "minute", "second")
    moment = text.str.to_datetime(
        "%Y-%m-%d %H:%M:%S", strict=False, time_unit="us", time_zone="UTC"
    )
    minutes = pl.col("zone_hours").cast(pl.Int64) * 60 + pl.col("zone_minutes").cast(pl.Int64)
    # Without a zone there is no sign, and the time is taken as UTC.
    offset = pl.when(pl.col("sign") == "-").then(-minutes).otherwise(minutes).fill_null(0)
    in_utc = moment - pl.duration(minutes=offset)
    return parts.select(in_utc.alias("moment")).to_series()
