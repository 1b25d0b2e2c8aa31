"""Interactions that are in memory already: frames of any library, and sparse matrices."""

from typing import Any

import numpy as np
import polars as pl

from pslrec.data._interactions import Interactions
from pslrec.data._vocabulary import Vocabulary
from pslrec.data.formats._base import ReadOptions, Table
from pslrec.errors import DataError

ORIGIN = "the frame"
# By these the frames of polars, pandas, pyarrow and duckdb are recognised, without importing them.
FRAME_ATTRIBUTES = ("__arrow_c_stream__", "__dataframe__", "to_arrow", "iterrows")


def is_frame(source: object) -> bool:
    """Whether this is a table in memory: polars, pandas, pyarrow, duckdb, or any Arrow stream."""
    # A lazy frame has none of the attributes.
    if isinstance(source, pl.LazyFrame):
        return True
    return any(hasattr(source, attribute) for attribute in FRAME_ATTRIBUTES)


def table_from_frame(source: Any, options: ReadOptions) -> Table:
    """The table in a frame of any library."""
    if hasattr(source, "iterrows"):
        return _table_from_pandas(source, options)
    try:
        eager = source
        if isinstance(source, pl.LazyFrame):
            eager = source.collect()
        frame = pl.DataFrame(eager)
    except pl.exceptions.DuplicateError as error:
        raise DataError(
            f"{ORIGIN}: a column name appears more than once; rename or remove the others"
        ) from error
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{ORIGIN} cannot be read ({str(error).splitlines()[0]})") from error
    columns = options.columns.resolve(frame.columns, ORIGIN, rows=lambda: frame.head(50).rows())
    return Table(frame.select(columns.present()), columns, ORIGIN)


def _table_from_pandas(source: Any, options: ReadOptions) -> Table:
    labels = list(source.columns)
    # Labels of pandas may be numbers, and columns are asked for by text.
    names = [str(label) for label in labels]
    columns = options.columns.resolve(
        names, ORIGIN, rows=lambda: source.head(50).to_numpy(dtype=object).tolist()
    )
    # Column by column: one that is not needed, and that polars could not hold, does no harm.
    series = []
    for name in columns.present():
        label = labels[names.index(name)]
        series.append(_pandas_column(source[label], name))
    return Table(pl.DataFrame(series), columns, ORIGIN)


def _pandas_column(column: Any, name: str) -> pl.Series:
    try:
        try:
            return pl.Series(name, column)
        except ImportError:
            # Polars takes some types of pandas through pyarrow, which need not be installed.
            values = column.astype(object).where(column.notna(), None).to_list()
            return pl.Series(name, values)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(
            f"{ORIGIN}: `{name}` must hold values of one type, whole numbers or text ({reason})"
        ) from error


def interactions_from_matrix(matrix: Any) -> Interactions:
    """The entries of a sparse user-by-item matrix that are not zero.

    Ids are the row and column numbers of the matrix, and its values become weights.

    Args:
        matrix: of any sparse format. An entry that is stored twice counts as the sum, and a
            stored zero is not an interaction.
    """
    if len(matrix.shape) != 2:
        raise DataError(
            f"the matrix must have users as rows and items as columns, got shape {matrix.shape}"
        )
    if matrix.dtype.kind not in "biuf":
        raise DataError(f"the values of the matrix must be real numbers, got {matrix.dtype}")
    entries = matrix.tocoo()
    values = np.asarray(entries.data, dtype=np.float64)
    # Before entries are summed up: a sum could hide that one of them is negative.
    wrong = ~np.isfinite(values) | (values < 0)
    if wrong.any():
        first = wrong.argmax()
        raise DataError(
            f"the values of the matrix must be finite and not negative, {wrong.sum()} are not; "
            f"the first is {values[first]:g} "
            f"in row {entries.row[first]}, column {entries.col[first]}"
        )
    # `astype` copies, so the caller's matrix stays as it is.
    summed = matrix.tocsr().astype(np.float64)
    summed.sum_duplicates()
    summed.eliminate_zeros()
    entries = summed.tocoo()
    if entries.nnz == 0:
        raise DataError(
            "the matrix has no entries other than zero, so there are no interactions in it"
        )
    weights = entries.data
    if (weights == 1).all():
        weights = None
    return Interactions(
        entries.row,
        entries.col,
        Vocabulary(np.arange(matrix.shape[0]), kind="user"),
        Vocabulary(np.arange(matrix.shape[1]), kind="item"),
        weights=weights,
    )
