"""Text tables: CSV, TSV and their cousins, with or without a header line, plain or gzipped."""

import csv
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

import numpy as np
import polars as pl

from pslrec.data._columns import Columns, role_of
from pslrec.data.formats._base import FORMATS, ReadOptions, Table
from pslrec.data.formats._bytes_of import decompressed, first_lines, in_memory
from pslrec.data.formats._quoting import check_quotes
from pslrec.data.formats._records import Shape, check_records, line_of_record
from pslrec.errors import DataError

logger = logging.getLogger(__name__)

SEPARATORS = ("\t", ",", ";", "|", "::", " ")
POSITIONS = ("user", "item", "rating", "timestamp")
SAMPLE_LINES = 50
# Characters that are in no text, to stand for a separator that is longer than the one byte of the fast reader.
STAND_INS = (b"\x1f", b"\x1e", b"\x1d", b"\x1c")


@FORMATS.register("delimited")
def read_delimited(path: Path, options: ReadOptions) -> Table:
    """Read a text table; quotes protect what is between them. Without a header its columns are user, item, rating, timestamp."""
    return _read(path, options, quoted=True)


@FORMATS.register("unquoted")
def read_unquoted(path: Path, options: ReadOptions) -> Table:
    """Read a text table in which a quotation mark is a character like any other."""
    return _read(path, options, quoted=False)


@dataclass(frozen=True)
class _Layout:
    names: list[str]
    cells: list[str]
    separator: str
    has_header: bool
    first_line: int
    quoted: bool
    spelling: str = ""

    def shape(self, last_needed: int) -> Shape:
        """What each row of the table should look like."""
        spelling = self.spelling or self.separator
        return Shape(
            self.separator, spelling, len(self.names), last_needed, self.quoted, self.first_line
        )


def _read(path: Path, options: ReadOptions, *, quoted: bool) -> Table:
    layout = _layout(path, options, quoted)
    columns = options.columns.resolve(layout.names, str(path), hint=_hint(layout))
    if not layout.has_header:
        logger.info(
            "%s: line %d is taken as data, not as names of columns", path, layout.first_line
        )
    content = decompressed(path)
    if len(layout.separator.encode()) > 1:
        content, short = _with_short_separator(path, content, layout.separator)
        layout = replace(layout, separator=short, spelling=layout.separator)
    frame, positions = _parse(path, content, layout, columns)
    shape = layout.shape(0)

    def place_of(row: int) -> str:
        return f"line {line_of_record(path, content, shape, int(positions[row]))}"

    table = Table(frame, columns, str(path), place_of)
    if layout.has_header:
        _check_repeated_header(table, dict(zip(layout.names, layout.cells, strict=True)))
    return table


def _layout(path: Path, options: ReadOptions, quoted: bool) -> _Layout:
    numbered = first_lines(path, SAMPLE_LINES)
    first_line, lines = numbered[0][0], [line for _, line in numbered]
    separator = (
        detect_separator(lines) if options.separator is None else _checked(options.separator)
    )
    quoted = quoted and len(separator.encode()) == 1
    cells = split_lines(lines, separator, quoted=quoted)[0]
    if options.header is None and not options.columns.present():
        _check_pandas_index(path, first_line, cells)
    has_header = (
        _looks_like_header(cells, options.columns) if options.header is None else options.header
    )
    if has_header:
        return _Layout([cell.strip() for cell in cells], cells, separator, True, first_line, quoted)
    if len(cells) < 2:
        raise DataError(
            f"{path}: line {first_line} has one field only when split at {separator!r}; "
            "name the separator with `separator=` (on the command line `pslrec data prepare --separator`)"
        )
    names = [*POSITIONS, *(f"column_{n + 1}" for n in range(4, len(cells)))][: len(cells)]
    return _Layout(names, cells, separator, False, first_line, quoted)


def _check_pandas_index(path: Path, line: int, cells: Sequence[str]) -> None:
    # What pandas writes for a frame whose columns have no names, its index as the first column.
    numbers = [str(number) for number in range(len(cells) - 1)]
    if len(cells) > 2 and list(cells) == ["", *numbers]:
        raise DataError(
            f"{path}: line {line} (`{','.join(cells)[:40]}`) is the header that pandas writes for columns without names, "
            "behind its index; write the file with `index=False` and names for the columns, or name them as they are: "
            '`columns=Columns(user="0", item="1"), header=True` '
            "(on the command line `pslrec data prepare --user-column 0 --item-column 1`)"
        )


def _checked(separator: str) -> str:
    if separator == "" or any(character in separator for character in '"\r\n'):
        raise DataError(
            f"`separator` must be one or more characters, none a quote or the end of a line, got {separator!r}"
        )
    return separator


def _hint(layout: _Layout) -> str:
    if len(layout.names) == 1:
        return f", or name the separator if it is not {layout.separator!r}"
    return (
        ", or say that there is no header with `header=False` (on the command line `pslrec data prepare --no-header`) "
        "if these are data"
    )


def detect_separator(lines: Sequence[str]) -> str:
    """The separator that splits the lines into the most fields, the same number in each.

    >>> detect_separator(["1::31::2.5", "1::1029::3.0"])
    '::'
    """

    def quality(separator: str) -> tuple[bool, int]:
        records = split_lines(lines, separator)
        # The sample may end within a quoted field.
        counts = [
            len(record)
            for record in (
                records[:-1] if len(records) > 1 and len(lines) >= SAMPLE_LINES else records
            )
        ]
        return min(counts) == max(counts) and counts[0] > 1, counts[0]

    best = max(SEPARATORS, key=quality)
    return best if quality(best)[1] > 1 else ","


def split_lines(lines: Sequence[str], separator: str, *, quoted: bool = True) -> list[list[str]]:
    """Fields of some lines; quotes protect separators and ends of lines."""
    if quoted and len(separator) == 1:
        try:
            return list(csv.reader([f"{line}\n" for line in lines], delimiter=separator))
        except csv.Error:  # a very long field, or a carriage return within one
            pass
    return [line.split(separator) for line in lines]


def _looks_like_header(cells: Sequence[str], given: Columns) -> bool:
    if any(cell.strip() in given.present() or role_of(cell) for cell in cells):
        return True
    # A line of names has no numbers in it.
    return not any(_is_number(cell) for cell in cells)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _parse(
    path: Path, content: bytes | Path, layout: _Layout, columns: Columns
) -> tuple[pl.DataFrame, np.ndarray]:
    """The columns that are used, without blank lines, and the position of each row among the records of the file."""
    wanted = {layout.names.index(name): name for name in columns.present()}
    has_quotes = layout.quoted and check_quotes(path, content, layout.separator)
    records = check_records(path, content, layout.shape(max(wanted)))
    positions = sorted(wanted)
    try:
        # Everything is read as text: an id like 007 keeps its zeros, and a bad number can be named with its line.
        frame = pl.read_csv(
            content,
            has_header=False,
            skip_lines=layout.first_line - 1,
            separator=layout.separator,
            quote_char='"' if has_quotes else None,
            columns=positions,
            infer_schema=False,
        )
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        _explain(path, content, error)
    if frame.height != records.count:
        raise DataError(
            f"{path}: its rows cannot be told apart reliably: {records.count:,} were counted and {frame.height:,} read; "
            "write the table again with another program, or as Parquet"
        )
    frame.columns = [str(position) for position in positions]
    named = [pl.col(str(position)).alias(name) for position, name in wanted.items()]
    is_kept = np.ones(records.count, dtype=bool)
    is_kept[records.blank] = False
    is_kept[: int(layout.has_header)] = False
    kept = np.flatnonzero(is_kept)
    return frame.select(named).filter(is_kept), kept


def _with_short_separator(path: Path, content: bytes | Path, separator: str) -> tuple[bytes, str]:
    raw = in_memory(content)
    short = next((byte for byte in STAND_INS if byte not in raw), None)
    if short is None:
        raise DataError(
            f"{path}: it holds control characters that a separator of several characters, {separator!r}, is read with; "
            "write the table again with a separator of one character"
        )
    return raw.replace(separator.encode(), short), short.decode()


def _explain(path: Path, content: bytes | Path, error: Exception) -> NoReturn:
    """Say what the fast reader did not like."""
    raw = in_memory(content)
    try:
        raw.decode()
    except UnicodeDecodeError as undecodable:
        line = raw.count(b"\n", 0, undecodable.start) + 1
        raise DataError(
            f"{path}: line {line} is not UTF-8 text; convert the file to UTF-8"
        ) from error
    raise DataError(
        f"{path}: not a table that can be read ({str(error).splitlines()[0]})"
    ) from error


def _check_repeated_header(table: Table, spelling: Mapping[str, str]) -> None:
    """Raise where the header stands again among the rows, as in files that were put together from several."""
    repeats = pl.lit(True)
    for name in table.columns.present():
        repeats = repeats & (pl.col(name) == spelling[name])
    found = table.frame.select(repeats.fill_null(False).alias("repeats"))["repeats"]
    position = found.arg_max()
    if position is not None and found[position]:
        raise DataError(f"{table.origin}: {table.place_of(position)} repeats the header; remove it")
