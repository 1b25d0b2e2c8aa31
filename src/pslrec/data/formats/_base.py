"""What a file format gives: a table with its columns settled, and the place of each row for error messages."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import polars as pl

from pslrec.data._columns import Columns
from pslrec.registry import Registry

# From here on floats do not tell whole numbers apart: 2^53 may have been 2^53 + 1.
FLOATS_MERGE_FROM = 2.0**53


@dataclass(frozen=True)
class ReadOptions:
    """How to read a table.

    Args:
        columns: names of the columns, where they should not be guessed.
        separator: what stands between two fields of a text file; found out if not given.
        header: whether the first line names the columns; found out if not given.
    """

    columns: Columns = field(default_factory=Columns)
    separator: str | None = None
    header: bool | None = None


def _row_number(row: int) -> str:
    return f"row {row + 1}"


@dataclass(frozen=True)
class Table:
    """Columns as they stand in a file.

    Args:
        frame: at least the columns named by `columns`.
        columns: which is which, settled.
        origin: the file, for messages.
        place_of: where in the file a row of the frame came from, for messages.
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
