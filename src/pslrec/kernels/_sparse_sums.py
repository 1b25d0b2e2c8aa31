"""Sparse times sparse: added to a dense matrix, or cut down to the largest entries of each row.

Histories times item-to-item weights need the first, the weights themselves the second.
"""

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_matrix

from pslrec.kernels._native import native

# A build from before these kernels has none.
_compiled: Callable[..., None] | None = getattr(native, "add_sparse_product", None)
_compiled_largest: Callable[..., None] | None = getattr(native, "largest_of_sparse_product", None)
# The plain twins keep a sparse product in memory, so they take some rows at a time.
_ROWS_AT_ONCE = 256


def add_sparse_product(
    out: np.ndarray, left: csr_matrix, right: csr_matrix, *, columns: np.ndarray | None = None
) -> None:
    """Add `left @ right` to a dense matrix, in place.

    What a place gets depends neither on the other rows nor on the other columns.

    Args:
        out: shape (rows of `left`, columns of `right`), float32.
        left: taken as float32.
        right: taken as float32.
        columns: the column of the product that each column of `out` gets; all in order by default.

    >>> out = np.ones((1, 2), dtype=np.float32)
    >>> add_sparse_product(out, csr_matrix([[1.0, 2.0]]), csr_matrix([[0.0, 3.0], [0.0, 4.0]]))
    >>> out
    array([[ 1., 12.]], dtype=float32)
    """
    _check_factors(left, right)
    _check_out(out, left, right, columns)
    if _compiled is None:
        add_sparse_product_plainly(out, left, right, columns=columns)
        return
    places = None
    if columns is not None:
        places = np.ascontiguousarray(columns, dtype=np.int64)
    _compiled(*_parts(left), *_parts(right), right.shape[1], places, out)


def dense_product(left: csr_matrix, right: csr_matrix) -> np.ndarray:
    """`left @ right` as a dense matrix of float32.

    >>> dense_product(csr_matrix([[1.0, 2.0]]), csr_matrix([[0.0, 3.0], [0.0, 4.0]]))
    array([[ 0., 11.]], dtype=float32)
    """
    product = np.zeros((left.shape[0], right.shape[1]), dtype=np.float32)
    add_sparse_product(product, left, right)
    return product


def add_sparse_product_plainly(
    out: np.ndarray, left: csr_matrix, right: csr_matrix, *, columns: np.ndarray | None = None
) -> None:
    """The plain twin: scipy's own product."""
    left = left.astype(np.float32)
    right = right.astype(np.float32)
    for first in range(0, left.shape[0], _ROWS_AT_ONCE):
        last = first + _ROWS_AT_ONCE
        product = (left[first:last] @ right).toarray()
        if columns is not None:
            product = product[:, columns]
        out[first:last] += product


def largest_of_product(left: csr_matrix, right: csr_matrix, k: int) -> csr_matrix:
    """The largest positive entries of each row of `left @ right`, without its diagonal.

    Args:
        left: taken as float32.
        right: taken as float32.
        k: entries that a row keeps at most; of equal ones, those in lower columns.

    >>> left = csr_matrix([[1.0, 0.0], [1.0, 1.0]])
    >>> right = csr_matrix([[9.0, 2.0, 3.0], [0.0, 1.0, 0.0]])
    >>> largest_of_product(left, right, 1).toarray()
    array([[0., 0., 3.],
           [9., 0., 0.]], dtype=float32)
    """
    _check_factors(left, right)
    k = min(k, right.shape[1])
    if _compiled_largest is None:
        return largest_of_product_plainly(left, right, k)
    n_rows = left.shape[0]
    columns = np.empty((n_rows, k), dtype=np.int32)
    values = np.empty((n_rows, k), dtype=np.float32)
    counts = np.empty(n_rows, dtype=np.int64)
    _compiled_largest(*_parts(left), *_parts(right), right.shape[1], columns, values, counts)
    is_filled = np.arange(k) < counts[:, None]
    offsets = np.concatenate([[0], np.cumsum(counts)])
    parts = (values[is_filled], columns[is_filled], offsets)
    return csr_matrix(parts, shape=(n_rows, right.shape[1]))


def largest_of_product_plainly(left: csr_matrix, right: csr_matrix, k: int) -> csr_matrix:
    """The plain twin: scipy's own product, and a sort of each row."""
    left = left.astype(np.float32)
    right = right.astype(np.float32)
    values = [np.empty(0, dtype=np.float32)]
    columns = [np.empty(0, dtype=np.int64)]
    counts = [0]
    for first in range(0, left.shape[0], _ROWS_AT_ONCE):
        product = left[first : first + _ROWS_AT_ONCE] @ right
        for row in range(product.shape[0]):
            entries = slice(product.indptr[row], product.indptr[row + 1])
            found = product.indices[entries]
            sums = product.data[entries]
            order = np.lexsort((found, -sums))
            is_kept = (sums[order] > 0) & (found[order] != first + row)
            kept = order[is_kept][:k]
            kept = kept[np.argsort(found[kept])]
            values.append(sums[kept])
            columns.append(found[kept])
            counts.append(len(kept))
    parts = (np.concatenate(values), np.concatenate(columns), np.cumsum(counts))
    return csr_matrix(parts, shape=(left.shape[0], right.shape[1]))


def _parts(matrix: csr_matrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Offsets, columns and values, in the types that the kernel takes; copied only if they differ."""
    return (
        np.ascontiguousarray(matrix.indptr, dtype=np.int64),
        np.ascontiguousarray(matrix.indices, dtype=np.int32),
        np.ascontiguousarray(matrix.data, dtype=np.float32),
    )


def _check_factors(left: csr_matrix, right: csr_matrix) -> None:
    if left.format != "csr" or right.format != "csr":
        raise ValueError(
            "`left` and `right` must be in compressed rows (csr), got "
            f"{left.format} and {right.format}"
        )
    if left.shape[1] != right.shape[0]:
        raise ValueError(
            f"`left` must have a column for each row of `right`, {right.shape[0]}, "
            f"got {left.shape[1]}"
        )


def _check_out(
    out: np.ndarray, left: csr_matrix, right: csr_matrix, columns: np.ndarray | None
) -> None:
    n_columns = right.shape[1]
    if columns is not None:
        if columns.dtype.kind not in "iu":
            raise ValueError(f"`columns` must be whole numbers, got {columns.dtype}")
        if len(columns) and not 0 <= columns.min() <= columns.max() < n_columns:
            raise ValueError(f"`columns` must be from 0 to {n_columns - 1}, got {columns}")
        n_columns = len(columns)
    expected = (left.shape[0], n_columns)
    is_plain = out.dtype == np.float32 and out.flags.c_contiguous
    if out.shape != expected or not is_plain:
        raise ValueError(
            f"`out` must be contiguous float32 of shape {expected}, got {out.dtype} of shape "
            f"{out.shape}"
        )
