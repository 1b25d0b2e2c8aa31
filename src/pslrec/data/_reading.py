"""The way in: whatever holds interactions becomes `Interactions`, and a published split becomes a `Dataset`."""

import logging
from pathlib import Path
from typing import Any

from scipy.sparse import issparse

from pslrec.data._cleaning import to_interactions
from pslrec.data._columns import Columns
from pslrec.data._interactions import Interactions
from pslrec.data.formats import (
    FORMATS,
    ReadOptions,
    Table,
    format_of,
    interactions_from_matrix,
    is_frame,
    table_from_frame,
)
from pslrec.errors import DataError
from pslrec.files import local_path

logger = logging.getLogger(__name__)


def read_interactions(
    source: Any,
    *,
    columns: Columns | None = None,
    format: str | None = None,  # noqa: A002 - the word users look for
    separator: str | None = None,
    header: bool | None = None,
) -> Interactions:
    """Read interactions from a file, a frame or a sparse matrix.

    Args:
        source: path of a CSV, TSV, TXT, Parquet, JSON lines, RecBole `.inter` or LightGCN text file (each but Parquet
            also gzipped), a pandas or polars frame or anything else with the Arrow stream interface, or a scipy sparse
            matrix whose values become weights. `Interactions` pass through.
        columns: names of the columns where the guess from the usual spellings is not wanted.
        format: one of the names in `pslrec.data.formats.FORMATS`, where the end of the file's name does not tell.
        separator: between the fields of a text file, where it should not be found out.
        header: whether the first line of a text file names the columns, where it should not be found out.

    >>> import polars as pl
    >>> read_interactions(pl.DataFrame({"uid": ["ann", "bob"], "asin": ["tea", "milk"], "stars": [5, 3]}))
    Interactions(2 pairs of 2 users and 2 items)
    """
    if isinstance(source, Interactions):
        return source
    if issparse(source):
        return interactions_from_matrix(source)
    options = ReadOptions(columns or Columns(), separator, header)
    if is_frame(source):
        return _clean(table_from_frame(source, options))
    if not isinstance(source, str | Path):
        raise DataError(
            f"`source` must be a path, a frame or a sparse matrix, got {type(source).__name__}"
        )
    path = local_path(source, error=DataError)
    return _clean(FORMATS[format or format_of(path)](path, options))


def _clean(table: Table) -> Interactions:
    found = ", ".join(f"{role} = `{name}`" for role, name in table.columns.roles().items())
    logger.info("%s: read %s", table.origin, found)
    return to_interactions(table)
