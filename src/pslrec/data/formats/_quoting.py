"""A look at the bytes of a text table for quotation marks that the fast reader would misread."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pslrec.data.formats._bytes_of import BYTE_ORDER_MARK
from pslrec.data.formats._records import CARRIAGE_RETURN, LINE_FEED, QUOTE, bytes_array, line_at
from pslrec.errors import DataError

CHUNK = 1 << 22


def check_quotes(path: Path, content: bytes | Path, separator: str) -> bool:
    """Whether there are quotation marks at all; raises at the first that would merge or tear rows.

    The fast reader takes any quotation mark as one that opens or closes a field, and so can lose
    rows without a warning.
    """
    data = bytes_array(content)
    # Bytes that may stand beside a quotation mark on its outer side.
    ends = np.zeros(256, dtype=bool)
    ends[[QUOTE, LINE_FEED, CARRIAGE_RETURN, ord(separator)]] = True
    last_opening: int | None = None
    is_open = False
    for positions in _quotes(data):
        # They open and close in turn; a doubled one closes and opens again.
        if is_open:
            opening = positions[1::2]
            closing = positions[0::2]
        else:
            opening = positions[0::2]
            closing = positions[1::2]
        wrong_opening = opening[~_ends_before(data, opening, ends)]
        wrong_closing = closing[~_ends_after(data, closing, ends)]
        if len(wrong_opening) or len(wrong_closing):
            _fail(path, data, _to_blame(positions, wrong_opening, wrong_closing, last_opening))
        if len(opening):
            last_opening = int(opening[-1])
        is_open ^= bool(len(positions) % 2)
    if is_open and last_opening is not None:
        _fail(path, data, last_opening)
    return last_opening is not None


def _quotes(data: np.ndarray) -> Iterator[np.ndarray]:
    # In pieces: a mask over a whole file would take as much memory as the file itself.
    for start in range(0, len(data), CHUNK):
        positions = np.flatnonzero(data[start : start + CHUNK] == QUOTE)
        if len(positions):
            yield positions + start


def _ends_before(data: np.ndarray, positions: np.ndarray, ends: np.ndarray) -> np.ndarray:
    starts_at = 0
    if data[: len(BYTE_ORDER_MARK)].tobytes() == BYTE_ORDER_MARK:
        starts_at = len(BYTE_ORDER_MARK)
    before: np.ndarray = ends[data[np.maximum(positions - 1, 0)]]
    before[positions == starts_at] = True
    return before


def _ends_after(data: np.ndarray, positions: np.ndarray, ends: np.ndarray) -> np.ndarray:
    last = len(data) - 1
    after: np.ndarray = ends[data[np.minimum(positions + 1, last)]]
    after[positions == last] = True
    return after


def _to_blame(
    positions: np.ndarray,
    wrong_opening: np.ndarray,
    wrong_closing: np.ndarray,
    last_opening: int | None,
) -> int:
    blamed = wrong_opening[:1].tolist()
    if len(wrong_closing):
        # A mark that closes in the wrong place was meant to open: the one before was never closed.
        place = int(np.searchsorted(positions, wrong_closing[0]))
        if place:
            blamed.append(positions[place - 1])
        else:
            blamed.append(last_opening)
    return int(min(blamed))


def _fail(path: Path, data: np.ndarray, position: int) -> None:
    line = line_at(data, position)
    raise DataError(
        f"{path}: line {line} has a quotation mark that is not closed, or that stands inside a "
        'field; close it or double it, or read with `format="unquoted"` '
        "(on the command line `--format unquoted`) "
        "if it means nothing in this file"
    )
