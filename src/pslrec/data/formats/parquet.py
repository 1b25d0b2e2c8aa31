"""Parquet files."""

from pathlib import Path

import polars as pl

from pslrec.data.formats._base import FORMATS, ReadOptions, Table
from pslrec.data.formats._bytes_of import as_it_is, check_readable
from pslrec.errors import DataError


@FORMATS.register("parquet")
def read_parquet(path: Path, options: ReadOptions) -> Table:
    """Read the needed columns of a Parquet file."""
    check_readable(path)
    content = as_it_is(path)
    try:
        available = list(pl.read_parquet_schema(content))
        columns = options.columns.resolve(
            available, str(path), rows=lambda: pl.read_parquet(content, n_rows=50).rows()
        )
        # Parquet stores columns apart, so those that are not needed cost nothing.
        frame = pl.read_parquet(content, columns=columns.present())
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{path}: not a Parquet file that can be read ({reason})") from error
    return Table(frame, columns, str(path))
