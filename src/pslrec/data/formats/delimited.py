"""Text tables: CSV, TSV and their cousins, with or without a header line, plain or gzipped."""

import csv
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import polars as pl

from pslrec.data.columns import Columns, role_of
from pslrec.data.formats.base import FORMATS, ReadOptions, Table
from pslrec.data.formats.bytes_of import decompressed, first_lines, in_memory
from pslrec.data.formats.quoting import check_quotes, fields_add_up
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
    separator: str
    has_header: bool
    first_line: int
    quoted: bool


def _read(path: Path, options: ReadOptions, *, quoted: bool) -> Table:
    layout = _layout(path, options, quoted)
    columns = options.columns.resolve(layout.names, str(path), hint=_hint(layout))
    if not layout.has_header:
        logger.info("%s: line %d is taken as data, not as names of columns", path, layout.first_line)
    content = decompressed(path)
    frame = _parse(path, content, layout, columns)
    return Table(frame, columns, str(path), lambda row: f"line {_line_of_row(content, layout, row)}")


def _layout(path: Path, options: ReadOptions, quoted: bool) -> _Layout:
    numbered = first_lines(path, SAMPLE_LINES)
    first_line, lines = numbered[0][0], [line for _, line in numbered]
    separator = detect_separator(lines) if options.separator is None else _checked(options.separator)
    quoted = quoted and len(separator.encode()) == 1
    cells = split_lines(lines, separator, quoted=quoted)[0]
    has_header = _looks_like_header(cells, options.columns) if options.header is None else options.header
    if has_header:
        return _Layout([cell.strip() for cell in cells], separator, True, first_line, quoted)
    if len(cells) < 2:
        raise DataError(
            f"{path}: line {first_line} has one field only when split at {separator!r}; "
            "name the separator with `separator=` (on the command line `pslrec data prepare --separator`)"
        )
    names = [*POSITIONS, *(f"column_{n + 1}" for n in range(4, len(cells)))][: len(cells)]
    return _Layout(names, separator, False, first_line, quoted)


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
            len(record) for record in (records[:-1] if len(records) > 1 and len(lines) >= SAMPLE_LINES else records)
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


def _parse(path: Path, content: bytes | Path, layout: _Layout, columns: Columns) -> pl.DataFrame:
    wanted = {layout.names.index(name): name for name in columns.present()}
    separator = layout.separator
    if len(separator.encode()) > 1:
        content, separator = _with_short_separator(content, separator)
    has_quotes = layout.quoted and check_quotes(path, content, separator)
    # With only some columns to parse, the fast reader would pass over surplus fields, which move others out of place.
    some = len(wanted) == len(layout.names) or fields_add_up(content, separator, len(layout.names))
    positions = sorted(wanted) if some else list(range(len(layout.names)))
    try:
        # Everything is read as text: an id like 007 keeps its zeros, and a bad number can be named with its line.
        frame = pl.read_csv(
            content,
            has_header=False,
            skip_lines=layout.first_line - 1,
            separator=separator,
            quote_char='"' if has_quotes else None,
            columns=positions,
            infer_schema=False,
        )
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        _explain(path, content, layout, error)
    frame.columns = [str(position) for position in positions]
    named = [pl.col(str(position)).alias(name) for position, name in wanted.items()]
    return frame.select(named).slice(int(layout.has_header))


def _with_short_separator(content: bytes | Path, separator: str) -> tuple[bytes, str]:
    raw = in_memory(content)
    short = next((byte for byte in STAND_INS if byte not in raw), STAND_INS[0])
    return raw.replace(separator.encode(), short), short.decode()


def _explain(path: Path, content: bytes | Path, layout: _Layout, error: Exception) -> NoReturn:
    """Find the first line the fast reader can not have liked, and say what is wrong with it."""
    raw, expected = in_memory(content), len(layout.names)
    try:
        raw.decode()
    except UnicodeDecodeError as undecodable:
        line = raw.count(b"\n", 0, undecodable.start) + 1
        raise DataError(f"{path}: line {line} is not UTF-8 text; convert the file to UTF-8") from error
    for number, record in _records(raw, quoted=layout.quoted):
        found = (
            len(split_lines(record.decode().split("\n"), layout.separator, quoted=layout.quoted)[0]) if record else 0
        )
        if found > expected and number >= layout.first_line:
            raise DataError(
                f"{path}: line {number} has {found} fields where {expected} were expected; "
                f"put a field that has {layout.separator!r} in it in quotes"
            ) from error
    raise DataError(
        f"{path}: not a table that can be read ({str(error or 'too many fields').splitlines()[0]})"
    ) from error


def _records(raw: bytes, *, quoted: bool) -> Iterator[tuple[int, bytes]]:
    """The rows of a table, which may run over several lines in quotes, each with the number of its first line."""
    parts: list[bytes] = []
    for number, line in enumerate(raw.split(b"\n"), start=1):
        parts.append(line.rstrip(b"\r"))
        if not quoted or sum(part.count(b'"') for part in parts) % 2 == 0:
            yield number - len(parts) + 1, b"\n".join(parts)
            parts = []


def _line_of_row(content: bytes | Path, layout: _Layout, row: int) -> int:
    numbers = (
        number for number, _ in _records(in_memory(content), quoted=layout.quoted) if number >= layout.first_line
    )
    return next(number for position, number in enumerate(numbers) if position == row + layout.has_header)
