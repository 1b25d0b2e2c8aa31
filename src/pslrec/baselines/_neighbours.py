"""Item-to-item matrices cut down to the nearest neighbours, block by block."""

from collections.abc import Callable

import numpy as np
import torch
from scipy.sparse import csr_matrix

from pslrec.kernels import top_k

# Similarities are made dense for this many bytes of items at a time, then cut down to the
# neighbours: all of them at once would fill the memory of a large catalogue.
_BLOCK_BYTES = 64 * 2**20


def nearest_neighbours(
    similarities: Callable[[slice], np.ndarray],
    *,
    n_items: int,
    neighbours: int,
) -> csr_matrix:
    """The largest positive similarities of each item to others, in a row per item.

    Args:
        similarities: dense rows of the items of a slice, float32, not negative; may be overwritten.
        n_items: of the catalogue.
        neighbours: entries that a row keeps at most; of equally similar items, the lower rows.

    >>> rows = np.array([[9, 3, 4], [3, 9, 0], [4, 0, 9]], dtype=np.float32)
    >>> nearest_neighbours(lambda block: rows[block], n_items=3, neighbours=1).toarray()
    array([[0., 0., 4.],
           [3., 0., 0.],
           [4., 0., 0.]], dtype=float32)
    """
    n_rows = max(1, _BLOCK_BYTES // (4 * n_items))
    value_blocks = []
    column_blocks = []
    for start in range(0, n_items, n_rows):
        block = similarities(slice(start, start + n_rows))
        # No item is a neighbour of its own.
        np.fill_diagonal(block[:, start:], 0.0)
        block_values, block_columns = top_k(torch.from_numpy(block), neighbours)
        value_blocks.append(block_values)
        column_blocks.append(block_columns)
    values = torch.cat(value_blocks).numpy()
    columns = torch.cat(column_blocks).numpy()
    offsets = np.arange(n_items + 1) * values.shape[1]
    parts = (values.ravel(), columns.ravel(), offsets)
    nearest = csr_matrix(parts, shape=(n_items, n_items))
    # Lists of items with few neighbours are filled up with similarities of 0.
    nearest.eliminate_zeros()
    return nearest


def cosine_scale(n_users_of_item: np.ndarray, shrinkage: float, block: slice) -> np.ndarray:
    """What common users of some items and all others are divided by to give shrunk cosines.

    Args:
        n_users_of_item: of all items.
        shrinkage: added to the product of the lengths.
        block: the items of the rows.
    """
    lengths = np.sqrt(n_users_of_item).astype(np.float32)
    scale = lengths[block, None] * lengths + np.float32(shrinkage)
    # An item without users has nothing in common with any; without shrinkage its scale is 0.
    smallest = np.finfo(np.float32).tiny
    result: np.ndarray = np.maximum(scale, smallest)
    return result
