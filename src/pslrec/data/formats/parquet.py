"""Parquet files."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

import polars as pl

from pslrec.data._columns import Columns
from pslrec.data.formats._base import FORMATS, ReadOptions, Table
from pslrec.data.formats._bytes_of import as_it_is, check_readable
from pslrec.errors import DataError


@FORMATS.register("parquet")
def read_parquet(path: Path, options: ReadOptions) -> Table:
    """Read the needed columns of a Parquet file."""
    lazy, columns = scan_parquet(path, options)
    with _clear_errors(path):
        return Table(lazy.collect(), columns, str(path))


def scan_parquet(path: Path, options: ReadOptions) -> tuple[pl.LazyFrame, Columns]:
    """The needed columns of a Parquet file, of which nothing is read yet, and their roles.

    The parts of a path such as `day=2024-05-01` are columns too, for those who name them.
    """
    check_readable(path)
    content = as_it_is(path)
    with _clear_errors(path):
        lazy = pl.scan_parquet(content, hive_partitioning=False)
        available = list(lazy.collect_schema())
        for name, value in partitions_of(path).items():
            # Never guessed: a partition by date beside a column of times would be one too many.
            if name in options.columns.present() and name not in available:
                available.append(name)
                lazy = lazy.with_columns(pl.lit(value).alias(name))
        columns = options.columns.resolve(
            available, str(path), rows=lambda: lazy.head(50).collect().rows()
        )
        # Parquet stores columns apart, so those that are not needed cost nothing.
        return lazy.select(columns.present()), columns


def partitions_of(path: Path) -> dict[str, str]:
    """Names and values in the directories above a file, as hive writes them.

    >>> partitions_of(Path("log/day=2024-05-01/country=is/part-0.parquet"))
    {'day': '2024-05-01', 'country': 'is'}
    """
    found = {}
    for part in path.parent.parts:
        name, sign, value = part.partition("=")
        if sign and name:
            # What a file system does not allow in a name is written as %2F and the like.
            found[name] = unquote(value)
    return found


@contextmanager
def _clear_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{path}: not a Parquet file that can be read ({reason})") from error
