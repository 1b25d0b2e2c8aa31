"""The text format of LightGCN and its descendants: a user, then all its items, separated by spaces."""

import re
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from pslrec.data._columns import Columns
from pslrec.data.formats._base import FORMATS, ReadOptions, Table
from pslrec.data.formats._bytes_of import decompressed, in_memory
from pslrec.errors import DataError

# What tells a log of ratings from lists of items: seconds of 1973 and later, and scales of up to ten.
LEAST_TIME = 10**8
HIGHEST_RATING = 10
ENOUGH_RATINGS = 20


@FORMATS.register("lightgcn")
def read_lightgcn(path: Path, options: ReadOptions) -> Table:  # noqa: ARG001 - the layout is fixed
    """Read lines of `user item item ...`; a user without items has no interactions."""
    raw = in_memory(decompressed(path))
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise DataError(
            f"{path}: line {line} is not UTF-8 text; convert the file to UTF-8"
        ) from error
    fields = pl.Series("line", text.split("\n")).str.strip_chars().str.split(" ")
    _check_marks(path, text)
    frame = pl.DataFrame({"user": fields.list.first(), "item": fields.list.slice(1)})
    frame = frame.with_row_index("line").explode("item").filter(pl.col("item") != "")
    if frame.is_empty():
        raise DataError(f"{path}: no line has a user followed by items")
    lines = frame["line"]
    return Table(
        frame.drop("line"), Columns("user", "item"), str(path), lambda row: f"line {lines[row] + 1}"
    )


def _check_marks(path: Path, text: str) -> None:
    # A tab or another mark would become part of an id.
    for number, line in enumerate(text.split("\n"), start=1):
        mark = re.search(r"[^\S ]|\0", line.strip())
        if mark is not None:
            raise DataError(
                f"{path}: line {number} has {mark[0]!r} in it; only spaces may separate a user and its items"
            )


def looks_like_lightgcn(lines: Sequence[str]) -> bool:
    """Whether lines are whole numbers separated by single spaces, of different counts.

    >>> looks_like_lightgcn(["0 12 7 3", "1 5"]), looks_like_lightgcn(["0 12", "1 5"]), looks_like_lightgcn(["user item", "1 2"])
    (True, False, False)
    """
    rows = [line.split(" ") for line in lines]
    return _are_whole(rows) and (len({len(row) for row in rows}) > 1 or len(rows[0]) > 4)


def is_ambiguous(lines: Sequence[str]) -> bool:
    """Whether lines may be a user with two or three items as well as a user, an item, a rating and perhaps a time.

    In a log of ratings users come again, ratings are small, and times are large.

    >>> is_ambiguous(["0 12 7", "1 5 9"]), is_ambiguous(["0 12 4", "0 5 3"]), is_ambiguous(["0 12 5 881250949"])
    (True, False, False)
    """
    rows = [line.split(" ") for line in lines]
    n_fields = {len(row) for row in rows}
    if n_fields not in ({3}, {4}) or not _are_whole(rows):
        return False
    users_come_again = len({row[0] for row in rows}) < len(rows)
    have_times = n_fields == {4} and all(int(row[3] or 0) >= LEAST_TIME for row in rows)
    have_ratings = len(rows) >= ENOUGH_RATINGS and all(
        int(row[2] or 0) <= HIGHEST_RATING for row in rows
    )
    return not (users_come_again or have_times or have_ratings)


def _are_whole(rows: Sequence[Sequence[str]]) -> bool:
    return all(field.isdecimal() for row in rows for field in row if field)
