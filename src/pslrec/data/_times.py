"""Times as they are written in data: counted since 1970 in one unit or another, or as dates."""

import re
from typing import NamedTuple

import numpy as np
import polars as pl


class Unit(NamedTuple):
    """A unit in which times since 1970 are counted."""

    name: str
    per_second: int
    from_number: float


# Seconds reach the lower bound of milliseconds in the year 5138, and so on: today's numbers tell their unit.
UNITS = (
    Unit("seconds", 1, 0.0),
    Unit("milliseconds", 10**3, 1e11),
    Unit("microseconds", 10**6, 1e14),
    Unit("nanoseconds", 10**9, 1e17),
)

# The last nanosecond that 64 bits count.
LARGEST_TIME = 2.0**63

# Dates written without marks, by the least and the greatest number that can be one. Taken as counts since 1970 they would
# be days of August 1970, hours of 1976 or of the 26th century, in which no log was kept.
COMPACT_LAYOUTS = {
    "YYYYMMDD": (19000101, 21001231),
    "YYYYMMDDhhmm": (190001010000, 210012312359),
    "YYYYMMDDhhmmss": (19000101000000, 21001231235959),
}

DATE = (
    r"^(\d{4})[-/](\d{1,2})[-/](\d{1,2})"  # year, month, day
    r"(?:[T ](\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d+)?)?)?"  # hour, minute, second, a fraction that is dropped
    r"\s*(?:Z|UTC|([+-])(\d{2}):?(\d{2}))?$"  # the zone: sign, hours, minutes
)


def unit_of(numbers: np.ndarray) -> np.ndarray:
    """Which of the `UNITS` each number is counted in, by its size; zero fits all and counts as seconds."""
    units: np.ndarray = (
        np.searchsorted([unit.from_number for unit in UNITS], np.abs(numbers), side="right") - 1
    )
    return units


def first_of_another_unit(numbers: np.ndarray) -> int | None:
    """Position of the first number that is in another unit than those before it, if there is one."""
    counted = np.flatnonzero(numbers != 0)
    sizes = np.abs(numbers[counted])
    if len(counted) == 0 or unit_of(sizes.min()) == unit_of(sizes.max()):
        return None
    units = unit_of(sizes)
    return int(counted[np.flatnonzero(units != units[0])[0]])


def seconds_of_epoch(numbers: np.ndarray) -> np.ndarray:
    """Whole seconds since 1970 of numbers that are all in the same unit.

    >>> seconds_of_epoch(np.array([1_700_000_000_123.0]))
    array([1700000000])
    """
    unit = UNITS[int(unit_of(np.abs(numbers).max()))]
    return np.floor(numbers / unit.per_second).astype(np.int64)


def compact_layout(numbers: np.ndarray) -> str | None:
    """The layout of dates without marks that all of these numbers fit by their size, or `None`.

    >>> compact_layout(np.array([20240501.0, 20231231.0])), compact_layout(np.array([1_700_000_000.0]))
    ('YYYYMMDD', None)
    """
    least, greatest = numbers.min(), numbers.max()
    for layout, (first, last) in COMPACT_LAYOUTS.items():
        if first <= least and greatest <= last:
            return layout
    return None


def parsed_compact_dates(numbers: np.ndarray, layout: str) -> pl.Series:
    """Moments in UTC of dates without marks; null where there is no such date.

    >>> parsed_compact_dates(np.array([20240501.0, 20240532.0]), "YYYYMMDD").dt.year().to_list()
    [2024, None]
    """
    missing = "0" * (len("YYYYMMDDhhmmss") - len(layout))
    whole = pl.Series(np.floor(numbers).astype(np.int64)).cast(pl.String)
    return (whole + missing).str.to_datetime(
        "%Y%m%d%H%M%S", strict=False, time_unit="us", time_zone="UTC"
    )


def looks_like_date(text: str) -> bool:
    """Whether this begins like a date with the year first: any other order could be read in two ways.

    >>> looks_like_date("2024-12-31"), looks_like_date("1700000000"), looks_like_date("12/31/2024")
    (True, False, False)
    """
    return re.match(r"\s*\d{4}[-/]\d", text) is not None


def parsed_dates(column: pl.Series) -> pl.Series:
    """Moments in UTC; null where there is no date. Without a zone the time is taken as UTC.

    >>> parsed_dates(pl.Series(["2024-12-31", "2024-12-31T01:00:00+01:00"])).dt.epoch("s").to_list()
    [1735603200, 1735603200]
    """
    try:
        parsed = column.str.to_datetime(strict=False, time_zone="UTC")
    except pl.exceptions.PolarsError:
        return _parsed_by_parts(column)
    # The fast way takes the form of the first value for all.
    return _parsed_by_parts(column) if parsed.null_count() else parsed


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
    padded = {
        name: pl.col(name).fill_null("0").str.zfill(2)
        for name in ("month", "day", "hour", "minute", "second")
    }
    text = pl.format("{}-{}-{} {}:{}:{}", pl.col("year"), *padded.values())
    moment = text.str.to_datetime(
        "%Y-%m-%d %H:%M:%S", strict=False, time_unit="us", time_zone="UTC"
    )
    minutes = pl.col("zone_hours").cast(pl.Int64) * 60 + pl.col("zone_minutes").cast(pl.Int64)
    offset = pl.when(pl.col("sign") == "-").then(-minutes).otherwise(minutes).fill_null(0)
    return parts.select((moment - pl.duration(minutes=offset)).alias("moment")).to_series()
