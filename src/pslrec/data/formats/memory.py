"""Interactions that are in memory already: frames of any library, and sparse matrices."""

from typing import Any

import numpy as np
import polars as pl
from scipy.sparse import issparse

from pslrec.data.formats.base import ReadOptions, Table
from pslrec.data.interactions import Interactions
from pslrec.data.vocabulary import Vocabulary
from pslrec.errors import DataError


def is_frame(source: object) -> bool:
    """Whether this is a table in memory: polars, pandas, pyarrow, duckdb, or anything with the Arrow stream interface."""
    return isinstance(source, pl.LazyFrame) or any(
        hasattr(source, mark) for mark in ("__arrow_c_stream__", "__dataframe__", "to_arrow", "iterrows")
    )


def table_from_frame(source: Any, options: ReadOptions) -> Table:
    """The table in a frame of any library."""
    frame = _polars_frame(source)
    columns = options.columns.resolve(frame.columns, "the frame")
    return Table(frame.select([name for name in columns.names() if name is not None]), columns, "the frame")


def _polars_frame(source: Any) -> pl.DataFrame:
    if isinstance(source, pl.LazyFrame):
        return source.collect()
    if isinstance(source, pl.DataFrame):
        return source
    names = [str(name) for name in getattr(source, "columns", [])]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataError(
            f"the frame: column `{repeated[0]}` appears {names.count(repeated[0])} times; rename or remove the others"
        )
    try:
        return pl.DataFrame(source)
    except ImportError:
        # pandas hands over its columns through pyarrow, which need not be installed.
        return pl.DataFrame({str(name): source[name].to_list() for name in source.columns})


def interactions_from_matrix(matrix: Any) -> Interactions:
    """The stored entries of a sparse user-by-item matrix; ids are its row and column numbers, values become weights."""
    assert issparse(matrix)
    entries = matrix.tocoo()
    values = np.asarray(entries.data, dtype=np.float64)
    if len(values) == 0:
        raise DataError("the matrix has no stored entries, so there are no interactions in it")
    if not np.isfinite(values).all():
        raise DataError(f"the values of the matrix must be finite, {np.count_nonzero(~np.isfinite(values))} are not")
    return Interactions(
        entries.row,
        entries.col,
        Vocabulary(np.arange(matrix.shape[0]), kind="user"),
        Vocabulary(np.arange(matrix.shape[1]), kind="item"),
        weights=None if (values == 1).all() else values,
    )
