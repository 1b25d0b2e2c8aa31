"""A log in pieces of some million rows, each checked like a table of its own."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from pslrec.data._cleaning import CleanColumns, clean
from pslrec.data._columns import Columns
from pslrec.data._many_files import check_same_columns
from pslrec.data._times import UNITS, compact_layout, looks_like_date, unit_of
from pslrec.data.formats import FORMATS, ReadOptions, Table, format_of, scan_parquet
from pslrec.errors import DataError

# Bytes that a row of a text takes, about.
TEXT_ROW = 30


@dataclass(frozen=True)
class Log:
    """The files of a log.

    Args:
        files: of one format, on this machine.
        options: how to read each of them.
        format: name of the format; follows from the end of the names if `None`.
    """

    files: Sequence[Path]
    options: ReadOptions
    format: str | None

    def format_of(self, file: Path) -> str:
        """The name of a file's format."""
        return self.format or format_of(file, self.options.encoding)

    def count_rows(self) -> int:
        """Rows of all files: what Parquet says, and for text an estimate from its size."""
        n_rows = 0
        for file in self.files:
            if self.format_of(file) == "parquet":
                lazy, _ = scan_parquet(file, self.options)
                n_rows += int(lazy.select(pl.len()).collect().item())
            else:
                n_rows += file.stat().st_size // TEXT_ROW
        return n_rows

    def tables(self, n_rows: int) -> Iterator[Table]:
        """The rows of all files, in order, some at a time.

        Args:
            n_rows: at a time; a text file is read as a whole, and then cut.
        """
        first: Table | None = None
        for file in self.files:
            for table in self._tables_of(file, n_rows):
                if first is None:
                    first = table
                check_same_columns(first.columns, table.columns, first.origin, table.origin)
                if len(table.frame):
                    yield table

    def _tables_of(self, file: Path, n_rows: int) -> Iterator[Table]:
        if self.format_of(file) != "parquet":
            whole = FORMATS[self.format_of(file)](file, self.options)
            for start in range(0, max(len(whole.frame), 1), n_rows):
                yield _cut(whole, whole.frame.slice(start, n_rows), start)
            return
        lazy, columns = scan_parquet(file, self.options)
        n_in_file = int(lazy.select(pl.len()).collect().item())
        for start in range(0, max(n_in_file, 1), n_rows):
            frame = lazy.slice(start, n_rows).collect()
            yield _cut(Table(frame, columns, str(file)), frame, start)


def _cut(table: Table, frame: pl.DataFrame, start: int) -> Table:
    """Some rows of a table, which keep their places for messages."""
    return Table(frame, table.columns, table.origin, lambda row: table.place_of(start + row))


class Cleaner:
    """Checks one piece after the other, and that all of them are written alike."""

    def __init__(self) -> None:
        self.columns: Columns | None = None
        self._spelling: str | None = None

    def clean(self, table: Table) -> CleanColumns:
        """The columns of a piece without gaps or doubtful values.

        Args:
            table: the piece.
        """
        self.columns = table.columns
        if table.columns.timestamp:
            self._check_times(table, table.frame[table.columns.timestamp])
        return clean(table)

    def _check_times(self, table: Table, values: pl.Series) -> None:
        # A piece shows how its times are written only by itself, and two pieces may look different.
        spelling = spelling_of_times(values)
        if spelling is None:
            return
        if self._spelling is None:
            self._spelling = spelling
        elif self._spelling != spelling:
            raise DataError(
                f"{table.origin}: {table.place_of(0)}: `{values.name}` seems to hold {spelling}, "
                f"the rows before it {self._spelling}; write all times alike"
            )


def spelling_of_times(values: pl.Series) -> str | None:
    """How times are written, in words; `None` where all are zero, which fits everything.

    >>> spelling_of_times(pl.Series([1_700_000_000])), spelling_of_times(pl.Series([20240501]))
    ('seconds', 'dates as YYYYMMDD')
    """
    dtype = values.dtype
    if dtype == pl.String and values[0] is not None and looks_like_date(values[0]):
        return "dates as text"
    if not dtype.is_numeric() and dtype != pl.String:
        return str(dtype)
    numbers = values.cast(pl.Float64, strict=False).drop_nulls().to_numpy()
    sizes = np.abs(numbers[numbers != 0])
    if len(sizes) == 0:
        return None
    layout = compact_layout(numbers)
    if layout is not None:
        return f"dates as {layout}"
    return UNITS[int(unit_of(sizes.max()))].name
