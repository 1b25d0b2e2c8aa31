"""The text format of LightGCN and its descendants: a user and its items, separated by spaces."""

import re
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from pslrec.data._columns import Columns
from pslrec.data.formats._base import FORMATS, ReadOptions, Table
from pslrec.data.formats._bytes_of import decompressed, in_memory
from pslrec.data.formats._encodings import not_utf8_in
from pslrec.errors import DataError

# What distinguishes a log of ratings from lists of items: timestamps of 1973 and later, and rating
# scales of up to ten.
LEAST_TIME = 10**8
HIGHEST_RATING = 10
ENOUGH_RATINGS = 20


@FORMATS.register("lightgcn")
def read_lightgcn(path: Path, options: ReadOptions) -> Table:
    """Read lines of `user item item ...`; a user without items has no interactions."""
    raw = in_memory(decompressed(path, options.encoding))
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise not_utf8_in(path, raw, error.start) from error
    _check_marks(path, text)
    # Not `splitlines`, which also splits at characters that an id may contain.
    fields = pl.Series("line", text.split("\n")).str.strip_chars().str.split(" ")
    frame = pl.DataFrame({"user": fields.list.first(), "item": fields.list.slice(1)})
    frame = frame.with_row_index("line").explode("item")
    # Two spaces in a row make an empty item.
    frame = frame.filter(pl.col("item") != "")
    if frame.is_empty():
        raise DataError(f"{path}: no line has a user followed by items")
    lines = frame["line"]
    columns = Columns("user", "item")
    return Table(frame.drop("line"), columns, str(path), lambda row: f"line {lines[row] + 1}")


def _check_marks(path: Path, text: str) -> None:
    # A tab or another mark would become part of an id.
    for number, line in enumerate(text.split("\n"), start=1):
        mark = re.search(r"[^\S ]|\0", line.strip())
        if mark is not None:
            raise DataError(
                f"{path}: line {number} has {mark[0]!r} in it; "
                "only spaces may separate a user and its items"
            )


def looks_like_lightgcn(lines: Sequence[str]) -> bool:
    """Whether lines are whole numbers separated by single spaces, of different counts.

    >>> looks_like_lightgcn(["0 12 7 3", "1 5"])
    True
    >>> looks_like_lightgcn(["0 12", "1 5"]), looks_like_lightgcn(["user item", "1 2"])
    (False, False)
    """
    rows = [line.split(" ") for line in lines]
    n_fields = set(map(len, rows))
    # More than user, item, rating and timestamp: not a log, even if each line has as many.
    has_lists = len(n_fields) > 1 or len(rows[0]) > 4
    return has_lists and _are_whole(rows)


def is_ambiguous(lines: Sequence[str]) -> bool:
    """Whether lines may be lists of two or three items as well as ratings, perhaps with a time.

    In a log of ratings users occur more than once, ratings are small, and times are large.

    >>> is_ambiguous(["0 12 7", "1 5 9"])
    True
    >>> is_ambiguous(["0 12 4", "0 5 3"]), is_ambiguous(["0 12 5 881250949"])
    (False, False)
    """
    rows = [line.split(" ") for line in lines]
    n_fields = set(map(len, rows))
    if n_fields not in ({3}, {4}) or not _are_whole(rows):
        return False
    users = {row[0] for row in rows}
    if len(users) < len(rows):
        return False
    if n_fields == {4} and all(int(row[3] or 0) >= LEAST_TIME for row in rows):
        return False
    # Among a few lines small numbers may be items by chance.
    few = len(rows) < ENOUGH_RATINGS
    return few or any(int(row[2] or 0) > HIGHEST_RATING for row in rows)


def _are_whole(rows: Sequence[Sequence[str]]) -> bool:
    return all(field.isdecimal() for row in rows for field in row if field)
