"""Where the rows of a text table begin and end, found before the fast reader sees the file.

The fast reader fills up short rows and, when it reads some columns only, skips surplus fields.
Either moves values into the wrong column without a warning, so fields are counted here, and a row
with another number of fields than the header is refused.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import numpy as np

from pslrec.data.formats._bytes_of import BYTE_ORDER_MARK
from pslrec.errors import DataError

QUOTE, LINE_FEED, CARRIAGE_RETURN, NUL = b'"\n\r\0'
CHUNK = 1 << 22
# Lines that an error names.
MOST_NAMED = 10


@dataclass(frozen=True)
class Shape:
    """What the rows of a table should look like.

    Args:
        separator: one byte.
        spelling: the separator as it stands in the file, for messages.
        n_fields: how many fields each row has.
        last_needed: position of the last field that is used; a row that is too short to have it
            is let through.
        quoted: whether quotation marks protect what is between them.
        first_line: number of the first line of the table; those before it are blank.
    """

    separator: str
    spelling: str
    n_fields: int
    last_needed: int
    quoted: bool
    first_line: int


@dataclass(frozen=True)
class Records:
    """The rows of a table.

    Args:
        count: how many there are, including the header and blank lines.
        blank: positions of the blank lines among them.
    """

    count: int
    blank: np.ndarray


@dataclass(frozen=True)
class _Rows:
    starts: np.ndarray
    ends: np.ndarray
    n_separators: np.ndarray


@dataclass
class _OddRows:
    """Rows with another number of fields than the header, the first of them with their places."""

    count: int = 0
    is_refused: bool = False
    starts: list[int] = field(default_factory=list)
    n_fields: list[int] = field(default_factory=list)

    def add(self, rows: _Rows, odd: np.ndarray, shape: Shape) -> None:
        n_found = rows.n_separators[odd] + 1
        has_all_needed = n_found > shape.last_needed
        self.is_refused |= bool((has_all_needed | (n_found > shape.n_fields)).any())
        self.count += len(odd)
        n_more = MOST_NAMED - len(self.starts)
        self.starts += rows.starts[odd[:n_more]].tolist()
        self.n_fields += n_found[:n_more].tolist()


def bytes_array(content: bytes | Path) -> np.ndarray:
    """The bytes of a file as numbers, without reading it into memory."""
    if isinstance(content, Path):
        return np.memmap(content, mode="r")
    return np.frombuffer(content, dtype=np.uint8)


def check_records(path: Path, content: bytes | Path, shape: Shape) -> Records:
    """Count the rows of a table, and raise if some have another number of fields.

    Where all of these lack a field that is used, they are left to the check for gaps, which knows
    the name of the column.
    """
    data = bytes_array(content)
    _check_before(path, data, shape)
    expected = shape.n_fields - 1
    count = 0
    odd_rows = _OddRows()
    blank = [np.zeros(0, dtype=np.int64)]
    for rows in _rows(path, data, shape):
        odd = np.flatnonzero(rows.n_separators != expected)
        # Almost all rows are as expected, so only the others are looked at one by one.
        if len(odd):
            is_blank = _are_blank(data, rows, odd)
            blank.append(odd[is_blank] + count)
            odd_rows.add(rows, odd[~is_blank], shape)
        count += len(rows.starts)
    if odd_rows.is_refused:
        _refuse(path, data, odd_rows, shape)
    return Records(count, np.concatenate(blank))


def line_of_record(path: Path, content: bytes | Path, shape: Shape, position: int) -> int:
    """Number of the line in which the record at this position begins."""
    # The file is walked through again: only an error needs a line, and then only one.
    data = bytes_array(content)
    for rows in _rows(path, data, shape):
        if position < len(rows.starts):
            return line_at(data, int(rows.starts[position]))
        position -= len(rows.starts)
    raise IndexError(position)


def line_at(data: np.ndarray, position: int) -> int:
    """Number of the line in which the byte at this position stands."""
    return int(np.count_nonzero(data[:position] == LINE_FEED)) + 1


def _rows(path: Path, data: np.ndarray, shape: Shape) -> Iterator[_Rows]:
    """Start, end and number of separators of each row.

    They come in pieces, because a file may be larger than the memory.
    """
    interesting = np.zeros(256, dtype=bool)
    interesting[[LINE_FEED, CARRIAGE_RETURN, NUL, ord(shape.separator)]] = True
    interesting[QUOTE] |= shape.quoted
    first = _start_of_line(data, shape.first_line)
    start = first
    # Separators so far of a row that began in an earlier piece.
    n_pending = 0
    # Whether a quotation mark of an earlier piece is still to be closed.
    is_open = False
    for offset in range(first, len(data), CHUNK):
        chunk = data[offset : offset + CHUNK]
        places = np.flatnonzero(interesting[chunk])
        kinds = chunk[places]
        places += offset
        _check_nul(path, data, places[kinds == NUL])
        quotes = kinds == QUOTE
        if is_open or quotes.any():
            # An odd number of quotation marks up to here: this byte is part of a quoted field.
            inside = (np.cumsum(quotes) + is_open) % 2 == 1
            is_open ^= bool(np.count_nonzero(quotes) % 2)
            outside = ~(inside | quotes)
            places = places[outside]
            kinds = kinds[outside]
        returns = kinds == CARRIAGE_RETURN
        if returns.any():
            _check_returns(path, data, places[returns])
            places = places[~returns]
            kinds = kinds[~returns]
        # Only separators and line feeds are left: between two line feeds stand the separators.
        closing = np.flatnonzero(kinds == LINE_FEED)
        if len(closing) == 0:
            n_pending += len(kinds)
            continue
        n_separators = np.diff(closing, prepend=-1) - 1
        n_separators[0] += n_pending
        n_pending = len(kinds) - 1 - int(closing[-1])
        ends = places[closing]
        starts = np.concatenate(([start], ends[:-1] + 1))
        start = int(ends[-1]) + 1
        yield _Rows(starts, ends, n_separators)
    # The last row need not end with a line feed.
    if start < len(data):
        yield _Rows(np.array([start]), np.array([len(data)]), np.array([n_pending]))


def _check_before(path: Path, data: np.ndarray, shape: Shape) -> None:
    # Lines of tabs alone look blank, but where tabs separate fields they are rows of empty fields.
    before = data[: _start_of_line(data, shape.first_line)]
    separators = np.flatnonzero(before == ord(shape.separator))
    if len(separators):
        line = line_at(data, int(separators[0]))
        raise DataError(f"{path}: line {line} has nothing but separators in it; remove it")


def _start_of_line(data: np.ndarray, number: int) -> int:
    has_mark = data[: len(BYTE_ORDER_MARK)].tobytes() == BYTE_ORDER_MARK
    start = 0
    if has_mark:
        start = len(BYTE_ORDER_MARK)
    n_before = number - 1
    for offset in range(0, len(data), CHUNK):
        if n_before == 0:
            break
        ends = np.flatnonzero(data[offset : offset + CHUNK] == LINE_FEED)
        if len(ends) >= n_before:
            return int(ends[n_before - 1]) + offset + 1
        n_before -= len(ends)
    return start


def _check_nul(path: Path, data: np.ndarray, places: np.ndarray) -> None:
    if len(places):
        line = line_at(data, int(places[0]))
        # UTF-16 was recognised by the first line.
        raise DataError(f"{path}: line {line} is not UTF-8 text but binary; remove it")


def _check_returns(path: Path, data: np.ndarray, places: np.ndarray) -> None:
    # Programs disagree on whether a carriage return alone ends a line.
    last = len(data) - 1
    is_alone = data[np.minimum(places + 1, last)] != LINE_FEED
    is_alone |= places == last
    if is_alone.any():
        line = line_at(data, int(places[is_alone][0]))
        raise DataError(
            f"{path}: line {line} has a carriage return that does not end it; "
            "remove it, or put the field in quotes"
        )


def _are_blank(data: np.ndarray, rows: _Rows, chosen: np.ndarray) -> np.ndarray:
    """Which of the chosen rows hold nothing but white space.

    Separators are not white space, even where they are tabs.
    """
    starts = rows.starts[chosen]
    ends = rows.ends[chosen]
    is_blank: np.ndarray = starts == ends
    may_be_blank = (rows.n_separators[chosen] == 0) & ~is_blank
    for place in np.flatnonzero(may_be_blank).tolist():
        text = data[starts[place] : ends[place]].tobytes()
        is_blank[place] = not text.strip()
    return is_blank


def _refuse(path: Path, data: np.ndarray, odd: _OddRows, shape: Shape) -> NoReturn:
    lines = [line_at(data, start) for start in odd.starts]
    if odd.n_fields[0] < shape.n_fields:
        advice = "fill in those that are missing, or remove the line"
    elif shape.quoted:
        advice = f"put a field that has {shape.spelling!r} in it in quotes"
    else:
        advice = f"no field may have {shape.spelling!r} in it"
    fields = "field" if odd.n_fields[0] == 1 else "fields"
    others = ""
    if odd.count > 1:
        named = []
        for line, n_fields in zip(lines[1:], odd.n_fields[1:], strict=True):
            named.append(f"{line} with {n_fields}")
        more = ", ..." if odd.count > len(lines) else ""
        others = f" ({odd.count:,} lines have another number, also {', '.join(named)}{more})"
    raise DataError(
        f"{path}: line {lines[0]} has {odd.n_fields[0]} {fields} where {shape.n_fields} were "
        f"expected; {advice}{others}"
    )
