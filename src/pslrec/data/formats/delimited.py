"""Text tables: CSV, TSV and their cousins, with or without a header line, plain or gzipped."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import polars as pl

from pslrec.data.columns import Columns, role_of
from pslrec.data.formats.base import FORMATS, ReadOptions, Table
from pslrec.data.formats.bytes_of import decompressed, first_lines
from pslrec.errors import DataError

SEPARATORS = ("\t", ",", ";", "|", "::", " ")
POSITIONS = ("user", "item", "rating", "timestamp")


@FORMATS.register("delimited")
def read_delimited(path: Path, options: ReadOptions) -> Table:
    """Read a text table. Without a header the columns are user, item, rating, timestamp, in this order."""
    content = decompressed(path)
    layout = _layout(path, options)
    columns = options.columns.resolve(layout.names, str(path))
    frame = _parse(path, content, layout, columns)
    lines_before = layout.blank_lines + layout.has_header
    return Table(
        frame,
        columns,
        str(path),
        lambda row: f"line {_line_of_row(content, layout.separator, row + lines_before)}",
    )


@dataclass(frozen=True)
class _Layout:
    names: list[str]
    separator: str
    has_header: bool
    blank_lines: int


def _layout(path: Path, options: ReadOptions) -> _Layout:
    lines, blank_lines = first_lines(path, 50)
    if not lines:
        raise DataError(f"{path}: the file is empty")
    separator = options.separator or detect_separator(lines)
    cells = split_line(lines[0], separator)
    has_header = _looks_like_header(cells, options.columns) if options.header is None else options.header
    if has_header:
        return _Layout([cell.strip() for cell in cells], separator, True, blank_lines)
    if len(cells) < 2:
        raise DataError(
            f"{path}: line 1 has one field only when split at {separator!r}; "
            "give the `separator=` (on the command line --separator)"
        )
    names = [*POSITIONS, *(f"column_{n + 1}" for n in range(4, len(cells)))][: len(cells)]
    return _Layout(names, separator, False, blank_lines)


def detect_separator(lines: Sequence[str]) -> str:
    """The separator that splits the lines into the most fields, the same number in each.

    >>> detect_separator(["1::31::2.5", "1::1029::3.0"])
    '::'
    """

    def quality(separator: str) -> tuple[bool, int]:
        counts = [len(split_line(line, separator)) for line in lines]
        return min(counts) == max(counts) and counts[0] > 1, counts[0]

    best = max(SEPARATORS, key=quality)
    return best if quality(best)[1] > 1 else ","


def split_line(line: str, separator: str) -> list[str]:
    """Fields of one line; quotes protect separators."""
    if len(separator) > 1:
        return line.split(separator)
    return next(csv.reader([line], delimiter=separator), [])


def _looks_like_header(cells: Sequence[str], given: Columns) -> bool:
    if any(cell.strip() in given.names() or role_of(cell) for cell in cells):
        return True
    # A line of names has no numbers in it.
    return not any(_is_number(cell) for cell in cells)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _parse(path: Path, content: bytes | Path, layout: _Layout, columns: Columns) -> pl.DataFrame:
    # "a::b" is read as "a", "", "b": a field, and an empty one between it and the next.
    stride = len(layout.separator)
    wanted = {layout.names.index(name) * stride: name for name in columns.names() if name is not None}
    try:
        # Everything is read as text: an id like 007 keeps its zeros, and a bad number can be named with its line.
        frame = pl.read_csv(
            content,
            has_header=False,
            skip_lines=layout.blank_lines,
            separator=layout.separator[0],
            columns=sorted(wanted),
            infer_schema=False,
        )
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        _explain(path, content, layout, error)
    frame.columns = [wanted[position] for position in sorted(wanted)]
    return frame[1:] if layout.has_header else frame


def _explain(path: Path, content: bytes | Path, layout: _Layout, error: Exception) -> NoReturn:
    """Find the first line the fast reader can not have liked, and say what is wrong with it."""
    raw = content.read_bytes() if isinstance(content, Path) else content
    quote_opened: int | None = None
    for number, line in enumerate(raw.split(b"\n"), start=1):
        try:
            text = line.rstrip(b"\r").decode()
        except UnicodeDecodeError:
            raise DataError(f"{path}: line {number} is not UTF-8 text; convert the file to UTF-8") from error
        if len(layout.separator) == 1 and text.count('"') % 2:
            quote_opened = number if quote_opened is None else None
        elif quote_opened is None and text:
            found = len(split_line(text, layout.separator))
            if found != len(layout.names):
                raise DataError(
                    f"{path}: line {number} has {found} fields, {len(layout.names)} were expected"
                ) from error
    if quote_opened is not None:
        raise DataError(
            f"{path}: line {quote_opened} has a quotation mark that is not closed; "
            "close it, or double it inside a quoted field"
        ) from error
    raise DataError(f"{path}: not a table that can be read ({str(error).splitlines()[0]})") from error


def _line_of_row(content: bytes | Path, separator: str, row: int) -> int:
    raw = content.read_bytes() if isinstance(content, Path) else content
    if len(separator) > 1:
        return row + 1
    reader = csv.reader(io.StringIO(raw.decode(errors="replace")), delimiter=separator)
    before = 0
    for _ in range(row):
        next(reader, None)
        before = reader.line_num
    return before + 1
