"""What a file format yields: a table with known columns, and where each row stands in the file."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import polars as pl

from pslrec.data._columns import Columns
from pslrec.data.formats._encodings import checked_encoding
from pslrec.registry import Registry

# From here on floats cannot tell whole numbers apart: 2^53 may have been 2^53 + 1.
FLOATS_MERGE_FROM = 2.0**53


@dataclass(frozen=True)
class ReadOptions:
    """How to read a table.

    Args:
        columns: names of the columns; those not given are guessed.
        separator: the text between two fields of a text file; detected if `None`.
        header: whether the first line names the columns; detected if `None`.
        names: all fields of a text file without a header, in order. Each row must then have
            exactly these fields, whether they are used or not.
        encoding: of a text file, by any of the names that Python knows; UTF-8 if `None`.
    """

    columns: Columns = field(default_factory=Columns)
    separator: str | None = None
    header: bool | None = None
    names: tuple[str, ...] = ()
    encoding: str | None = None

    def __post_init__(self) -> None:
        # One name per encoding, and none for UTF-8, which needs no conversion.
        object.__setattr__(self, "encoding", checked_encoding(self.encoding))


def _row_number(row: int) -> str:
    return f"row {row + 1}"


@dataclass(frozen=True)
class Table:
    """Columns as they stand in a file.

    Args:
        frame: holds at least the columns that `columns` names.
        columns: the role of each column, with nothing left to guess.
        origin: what messages call the file.
        place_of: tells where in the file a row of the frame came from, for messages.
    """

    frame: pl.DataFrame
    columns: Columns
    origin: str
    place_of: Callable[[int], str] = _row_number


class Format(Protocol):
    """Reads one kind of file."""

    def __call__(self, path: Path, options: ReadOptions) -> Table:
        """The table in the file at `path`."""
        ...


FORMATS: Registry[Format] = Registry("format")
