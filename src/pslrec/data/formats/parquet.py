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
        columns = options.columns.resolve(list(pl.read_parquet_schema(content)), str(path))
        frame = pl.read_parquet(content, columns=columns.present())
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(
            f"{path}: not a Parquet file that can be read ({str(error).splitlines()[0]})"
        ) from error
    return Table(frame, columns, str(path))
