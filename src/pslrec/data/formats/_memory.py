"""Interactions that are in memory already: frames of any library, and sparse matrices."""

from typing import Any

import numpy as np
import polars as pl

from pslrec.data._interactions import Interactions
from pslrec.data._vocabulary import Vocabulary
from pslrec.data.formats._base import ReadOptions, Table
from pslrec.errors import DataError

ORIGIN = "the frame"


def is_frame(source: object) -> bool:
    """Whether this is a table in memory: polars, pandas, pyarrow, duckdb, or anything with the Arrow stream interface."""
    return isinstance(source, pl.LazyFrame) or any(
        hasattr(source, mark)
        for mark in ("__arrow_c_stream__", "__dataframe__", "to_arrow", "iterrows")
    )


def table_from_frame(source: Any, options: ReadOptions) -> Table:
    """The table in a frame of any library."""
    if hasattr(source, "iterrows"):
        return _table_from_pandas(source, options)
    try:
        frame = source.collect() if isinstance(source, pl.LazyFrame) else pl.DataFrame(source)
    except pl.exceptions.DuplicateError as error:
        raise DataError(
            f"{ORIGIN}: a column name appears more than once; rename or remove the others"
        ) from error
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{ORIGIN} can not be read ({str(error).splitlines()[0]})") from error
    columns = options.columns.resolve(frame.columns, ORIGIN)
    return Table(frame.select(columns.present()), columns, ORIGIN)


def _table_from_pandas(source: Any, options: ReadOptions) -> Table:
    # Column by column, so that one that is not needed and holds a bit of everything does no harm.
    labels = list(source.columns)
    names = [str(label) for label in labels]
    columns = options.columns.resolve(names, ORIGIN)
    frame = pl.DataFrame(
        {
            name: _pandas_column(source[labels[names.index(name)]], name)
            for name in columns.present()
        }
    )
    return Table(frame, columns, ORIGIN)


def _pandas_column(column: Any, name: str) -> pl.Series:
    try:
        try:
            return pl.Series(name, column)
        except ImportError:
            # pandas hands over some types through pyarrow, which need not be installed.
            return pl.Series(name, column.astype(object).where(column.notna(), None).to_list())
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        raise DataError(
            f"{ORIGIN}: `{name}` must hold values of one type, whole numbers or text ({str(error).splitlines()[0]})"
        ) from error


def interactions_from_matrix(matrix: Any) -> Interactions:
    """The entries of a sparse user-by-item matrix that are not zero; ids are its row and column numbers, values become weights.

    Args:
        matrix: of any sparse format; entries stored twice count as their sum, a stored zero is no interaction.
    """
    if len(matrix.shape) != 2:
        raise DataError(
            f"the matrix must have users as rows and items as columns, got shape {matrix.shape}"
        )
    if matrix.dtype.kind not in "biuf":
        raise DataError(f"the values of the matrix must be real numbers, got {matrix.dtype}")
    entries = matrix.tocoo()
    values = np.asarray(entries.data, dtype=np.float64)
    wrong = ~np.isfinite(values) | (values < 0)
    if wrong.any():
        first = wrong.argmax()
        raise DataError(
            f"the values of the matrix must be finite and not negative, {wrong.sum()} are otherwise; "
            f"the first is {values[first]:g} in row {entries.row[first]}, column {entries.col[first]}"
        )
    summed = matrix.tocsr().astype(np.float64)  # a copy, which may be changed
    summed.sum_duplicates()
    summed.eliminate_zeros()
    entries = summed.tocoo()
    if entries.nnz == 0:
        raise DataError(
            "the matrix has no entries other than zero, so there are no interactions in it"
        )
    return Interactions(
        entries.row,
        entries.col,
        Vocabulary(np.arange(matrix.shape[0]), kind="user"),
        Vocabulary(np.arange(matrix.shape[1]), kind="item"),
        weights=None if (entries.data == 1).all() else entries.data,
    )
