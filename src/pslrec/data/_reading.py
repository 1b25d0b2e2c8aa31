"""The entrance: files, frames and matrices become `Interactions`."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scipy.sparse import issparse

from pslrec.data._cleaning import to_interactions
from pslrec.data._columns import Columns
from pslrec.data._interactions import Interactions
from pslrec.data._many_files import files_of, read_tables
from pslrec.data.formats import (
    ReadOptions,
    Table,
    interactions_from_matrix,
    is_frame,
    table_from_frame,
)
from pslrec.errors import DataError
from pslrec.files import at_hand

logger = logging.getLogger(__name__)


def read_interactions(
    source: Any,
    *,
    columns: Columns | Mapping[str, str] | None = None,
    format: str | None = None,  # noqa: A002 - the word users look for
    separator: str | None = None,
    header: bool | None = None,
    encoding: str | None = None,
) -> Interactions:
    """Read interactions from a file, a frame or a sparse matrix.

    Args:
        source: path of a CSV, TSV, TXT, Parquet, JSON lines, RecBole `.inter` or LightGCN text file
            (all but Parquet also gzipped), of a directory of such files or a pattern of their
            names, or an address such as `s3://bucket/log`; a pandas or polars frame or anything else with the Arrow
            stream interface, or a scipy sparse matrix whose values become weights. `Interactions`
            are returned as they are.
        columns: names of the columns by role, such as `{"user": "who", "item": "what"}`; the other
            roles are `rating`, `timestamp` (or `time`) and `weight`. Those not given are guessed
            from the usual spellings, and an empty name leaves a column out.
        format: one of the names in `pslrec.data.formats.FORMATS`; follows from the end of the
            file's name if `None`.
        separator: the text between the fields of a text file; detected if `None`.
        header: whether the first line of a text file names the columns; detected if `None`.
        encoding: of a text file, such as `latin-1`, `cp1252` or `utf-16`; UTF-8 if `None`.

    >>> import polars as pl
    >>> frame = pl.DataFrame({"uid": ["ann", "bob"], "asin": ["tea", "milk"], "stars": [5, 3]})
    >>> read_interactions(frame)
    Interactions(2 pairs of 2 users and 2 items)
    >>> read_interactions(frame.rename({"asin": "was"}), columns={"item": "was"})
    Interactions(2 pairs of 2 users and 2 items)
    """
    options = ReadOptions(Columns.of(columns), separator, header, encoding=encoding)
    if isinstance(source, Interactions):
        check_no_columns(options.columns, "interactions")
        return source
    if issparse(source):
        check_no_columns(options.columns, "a sparse matrix")
        return interactions_from_matrix(source)
    if is_frame(source):
        return _clean(table_from_frame(source, options))
    if not isinstance(source, str | Path):
        raise DataError(
            f"`source` must be a path, a frame or a sparse matrix, got {type(source).__name__}"
        )
    with at_hand(source, error=DataError) as path:
        return _clean(read_tables(files_of(path), options, format, path))


def check_no_columns(columns: Columns, what: str) -> None:
    """Raise if columns are named for data that have none to choose from.

    Args:
        columns: as the caller gave them.
        what: the data, in words.
    """
    # Ignoring them would look as if it had worked.
    if columns != Columns():
        raise DataError(f"`columns` has no effect on {what}; leave it out")


def _clean(table: Table) -> Interactions:
    # Columns are often guessed, so the log says which were taken for what.
    found = ", ".join(f"{role} = `{name}`" for role, name in table.columns.roles().items())
    logger.info("%s: read %s", table.origin, found)
    return to_interactions(table)
