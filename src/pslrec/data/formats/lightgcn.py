"""The text format of LightGCN and its descendants: a user, then all its items, separated by spaces."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from pslrec.data.columns import Columns
from pslrec.data.formats.base import FORMATS, ReadOptions, Table
from pslrec.data.formats.bytes_of import decompressed, in_memory
from pslrec.errors import DataError


@FORMATS.register("lightgcn")
def read_lightgcn(path: Path, options: ReadOptions) -> Table:  # noqa: ARG001 - the layout is fixed
    """Read lines of `user item item ...`; a user without items has no interactions."""
    raw = in_memory(decompressed(path))
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise DataError(f"{path}: line {line} is not UTF-8 text; convert the file to UTF-8") from error
    fields = pl.Series("line", text.split("\n")).str.strip_chars().str.split(" ")
    frame = pl.DataFrame({"user": fields.list.first(), "item": fields.list.slice(1)})
    frame = frame.with_row_index("line").explode("item").filter(pl.col("item") != "")
    if frame.is_empty():
        raise DataError(f"{path}: no line has a user followed by items")
    lines = frame["line"]
    return Table(frame.drop("line"), Columns("user", "item"), str(path), lambda row: f"line {lines[row] + 1}")


def looks_like_lightgcn(lines: Sequence[str]) -> bool:
    """Whether lines are whole numbers separated by single spaces, of different counts.

    >>> looks_like_lightgcn(["0 12 7 3", "1 5"]), looks_like_lightgcn(["0 12", "1 5"]), looks_like_lightgcn(["user item", "1 2"])
    (True, False, False)
    """
    rows = [line.split(" ") for line in lines]
    whole = all(field.isdigit() for row in rows for field in row if field)
    return whole and (len({len(row) for row in rows}) > 1 or len(rows[0]) > 4)
