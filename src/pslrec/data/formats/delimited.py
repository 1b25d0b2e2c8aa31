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
from pslrec.data._times import looks_like_date
from pslrec.data.formats._base import FORMATS, ReadOptions, Table
from pslrec.data.formats._bytes_of import decompressed, first_lines, in_memory
from pslrec.data.formats._encodings import not_utf8_in
from pslrec.data.formats._quoting import check_quotes
from pslrec.data.formats._records import Shape, check_records, line_of_record
from pslrec.errors import DataError

logger = logging.getLogger(__name__)

SEPARATORS = ("\t", ",", ";", "|", "::", " ")
POSITIONS = ("user", "item", "rating", "timestamp")
SAMPLE_LINES = 50
# Characters that occur in no text. One of them stands in for a separator of several characters,
# because the fast reader splits at single bytes only.
STAND_INS = (b"\x1f", b"\x1e", b"\x1d", b"\x1c")


@FORMATS.register("delimited")
def read_delimited(path: Path, options: ReadOptions) -> Table:
    """Read a text table in which quotes protect what is between them.

    Without a header its columns are user, item, rating and timestamp, unless `options.names` says
    otherwise.
    """
    return _read(path, options, quoted=True)


@FORMATS.register("unquoted")
def read_unquoted(path: Path, options: ReadOptions) -> Table:
    """Read a text table in which a quotation mark is a character like any other."""
    return _read(path, options, quoted=False)


@dataclass(frozen=True)
class _Layout:
    """How a text table is laid out, according to its first lines.

    Args:
        names: of the columns, in order.
        cells: the fields of the first line as they are spelled there.
        separator: what the content is split at.
        has_header: whether the first line names the columns.
        first_line: number of the first line that is not blank.
        quoted: whether quotation marks protect what is between them.
        fixed: whether each row must have all fields, even those that are not used.
        spelling: the separator in the file, where `separator` is a stand-in.
        rows: the first rows of data, as text.
    """

    names: list[str]
    cells: list[str]
    separator: str
    has_header: bool
    first_line: int
    quoted: bool
    fixed: bool = False
    spelling: str = ""
    rows: Sequence[Sequence[str]] = ()

    def shape(self, last_needed: int) -> Shape:
        """What each row of the table should look like."""
        return Shape(
            self.separator,
            self.spelling or self.separator,
            len(self.names),
            last_needed,
            self.quoted,
            self.first_line,
        )


def _read(path: Path, options: ReadOptions, *, quoted: bool) -> Table:
    layout = _layout(path, options, quoted)
    columns = options.columns.resolve(
        layout.names, str(path), hint=_hint(layout), rows=lambda: layout.rows
    )
    if not layout.has_header and not layout.fixed:
        logger.info(
            "%s: line %d is taken as data, not as names of columns", path, layout.first_line
        )
    content = decompressed(path, options.encoding)
    if len(layout.separator.encode()) > 1:
        content, short = _with_short_separator(path, content, layout.separator)
        layout = replace(layout, separator=short, spelling=layout.separator)
    frame, positions = _parse(path, content, layout, columns)
    shape = layout.shape(0)

    def place_of(row: int) -> str:
        line = line_of_record(path, content, shape, int(positions[row]))
        return f"line {line}"

    table = Table(frame, columns, str(path), place_of)
    if layout.has_header:
        _check_repeated_header(table, dict(zip(layout.names, layout.cells, strict=True)))
    return table


def _layout(path: Path, options: ReadOptions, quoted: bool) -> _Layout:
    numbered = first_lines(path, SAMPLE_LINES, options.encoding)
    first_line = numbered[0][0]
    lines = [line for _, line in numbered]
    separator = options.separator
    if separator is None:
        separator = detect_separator(lines)
    _check_separator(separator)
    # Programs that write separators of several characters do not quote.
    quoted = quoted and len(separator.encode()) == 1
    records = split_lines(lines, separator, quoted=quoted)
    cells = records[0]
    if options.names:
        names = list(options.names)
        return _Layout(names, cells, separator, False, first_line, quoted, fixed=True)
    has_header = options.header
    if has_header is None:
        if not options.columns.present():
            _check_pandas_index(path, first_line, cells)
        has_header = _looks_like_header(cells, options.columns)
    if has_header:
        names = [cell.strip() for cell in cells]
        return _Layout(names, cells, separator, True, first_line, quoted, rows=records[1:])
    if len(cells) < 2:
        raise DataError(
            f"{path}: line {first_line} has one field only when split at {separator!r}; "
            "name the separator with `separator=` "
            "(on the command line `--separator`)"
        )
    names = list(POSITIONS[: len(cells)])
    if len(cells) == 3 and looks_like_date(cells[2]):
        # A log of clicks, without ratings.
        names[2] = "timestamp"
    for number in range(len(POSITIONS) + 1, len(cells) + 1):
        names.append(f"column_{number}")
    return _Layout(names, cells, separator, False, first_line, quoted)


def _check_pandas_index(path: Path, line: int, cells: Sequence[str]) -> None:
    # What pandas writes for a frame whose columns have no names, its index as the first column.
    # Taken for data, the index would become the users.
    numbers = [str(number) for number in range(len(cells) - 1)]
    if len(cells) > 2 and list(cells) == ["", *numbers]:
        header = ",".join(cells)[:40]
        raise DataError(
            f"{path}: line {line} (`{header}`) is the header that pandas writes for columns "
            "without names, behind its index; write the file with `index=False` and names for the "
            "columns, or name them as they are: "
            '`columns={"user": "0", "item": "1"}, header=True` '
            "(on the command line `--user-column 0 --item-column 1`)"
        )


def _check_separator(separator: str) -> None:
    if separator == "" or any(character in separator for character in '"\r\n'):
        raise DataError(
            "`separator` must be one or more characters, none of them a quotation mark or a line "
            f"end, got {separator!r}"
        )


def _hint(layout: _Layout) -> str:
    if len(layout.names) == 1:
        return (
            f"if {layout.separator!r} is not what separates the fields, give `separator=` "
            "(on the command line `--separator`); otherwise "
        )
    return (
        "if these are data, there is no header: say so with `header=False` "
        "(on the command line `--no-header`); otherwise "
    )


def detect_separator(lines: Sequence[str]) -> str:
    """The separator that splits the lines into the most fields, the same number in each.

    >>> detect_separator(["1::31::2.5", "1::1029::3.0"])
    '::'
    """
    best = ","
    best_quality = (False, 1)
    for separator in SEPARATORS:
        records = split_lines(lines, separator)
        # The sample may end within a quoted field, so its last record may be incomplete.
        if len(records) > 1 and len(lines) >= SAMPLE_LINES:
            records = records[:-1]
        counts = [len(record) for record in records]
        is_regular = min(counts) == max(counts) and counts[0] > 1
        quality = (is_regular, counts[0])
        # Of equals the first of the list wins; the space, common within fields, is its last.
        if quality > best_quality:
            best = separator
            best_quality = quality
    return best


def split_lines(lines: Sequence[str], separator: str, *, quoted: bool = True) -> list[list[str]]:
    """Split lines into fields; quotes protect separators and line ends."""
    if quoted and len(separator) == 1:
        try:
            return list(csv.reader([f"{line}\n" for line in lines], delimiter=separator))
        except csv.Error:  # a very long field, or a carriage return within one
            pass
    return [line.split(separator) for line in lines]


def _looks_like_header(cells: Sequence[str], given: Columns) -> bool:
    for cell in cells:
        if cell.strip() in given.present() or role_of(cell):
            return True
    # A line of names has neither numbers nor dates in it.
    return not any(_is_number(cell) or looks_like_date(cell) for cell in cells)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _parse(
    path: Path, content: bytes | Path, layout: _Layout, columns: Columns
) -> tuple[pl.DataFrame, np.ndarray]:
    """Read the used columns, without blank lines.

    Returns:
        The frame, and the position of each of its rows among the records of the file.
    """
    wanted = {layout.names.index(name): name for name in columns.present()}
    has_quotes = layout.quoted and check_quotes(path, content, layout.separator)
    # A field that is missing at the end is better reported by the name of its column, unless the
    # file has a layout of its own that each row must follow.
    last_needed = 0 if layout.fixed else max(wanted)
    records = check_records(path, content, layout.shape(last_needed))
    positions = sorted(wanted)
    try:
        # Everything is read as text: an id like 007 keeps its zeros, and a bad number can be
        # reported with its line.
        frame = pl.read_csv(
            content,
            has_header=False,
            skip_lines=layout.first_line - 1,
            separator=layout.separator,
            # Without quotation marks in the file, not looking for them is faster.
            quote_char='"' if has_quotes else None,
            columns=positions,
            infer_schema=False,
        )
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        _explain(path, content, error)
    # Two readers that count differently disagree about where rows end: neither can be trusted.
    if frame.height != records.count:
        raise DataError(
            f"{path}: its rows cannot be told apart reliably: {records.count:,} were counted and "
            f"{frame.height:,} read; write the table again with another program, or as Parquet"
        )
    # Names of the file may repeat among columns that are not used, so columns go by position.
    frame.columns = [str(position) for position in positions]
    named = [pl.col(str(position)).alias(name) for position, name in wanted.items()]
    is_kept = np.ones(records.count, dtype=bool)
    is_kept[records.blank] = False
    if layout.has_header:
        is_kept[0] = False
    return frame.select(named).filter(is_kept), np.flatnonzero(is_kept)


def _with_short_separator(path: Path, content: bytes | Path, separator: str) -> tuple[bytes, str]:
    raw = in_memory(content)
    for byte in STAND_INS:
        if byte not in raw:
            return raw.replace(separator.encode(), byte), byte.decode()
    raise DataError(
        f"{path}: it holds control characters that a separator of several characters, "
        f"{separator!r}, is read with; write the table again with a separator of one character"
    )


def _explain(path: Path, content: bytes | Path, error: Exception) -> NoReturn:
    """Say what the fast reader did not like."""
    raw = in_memory(content)
    try:
        raw.decode()
    except UnicodeDecodeError as undecodable:
        raise not_utf8_in(path, raw, undecodable.start) from error
    reason = str(error).splitlines()[0]
    raise DataError(f"{path}: not a table that can be read ({reason})") from error


def _check_repeated_header(table: Table, spelling: Mapping[str, str]) -> None:
    """Raise where the header occurs again among the rows, as in files joined from several."""
    repeats = pl.lit(True)
    for name in table.columns.present():
        repeats = repeats & (pl.col(name) == spelling[name])
    found = table.frame.select(repeats.fill_null(False).alias("repeats"))["repeats"]
    position = found.arg_max()
    if position is not None and found[position]:
        raise DataError(f"{table.origin}: {table.place_of(position)} repeats the header; remove it")
