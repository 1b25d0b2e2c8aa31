"""The bipartite graph of the training pairs, and the step that sends vectors along its edges."""

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor, nn

from pslrec.data import Interactions
from pslrec.kernels import CompressedRows, sparse_product


def normalized_matrix(train: Interactions) -> CompressedRows:
    """D_u^-1/2 R D_i^-1/2: each training pair (u, i) weighs 1 / sqrt(degree u × degree i).

    A pair counts once however often it occurs. Users and items without a pair have an empty row or
    column.

    Args:
        train: the pairs.

    >>> log = Interactions.from_ids(["ann", "bob", "bob"], ["tea", "tea", "milk"])
    >>> normalized_matrix(log).values
    tensor([0.7071, 0.7071, 0.5000])
    """
    pairs = np.unique(train.pair_keys())
    # Without items there are no pairs either, but nothing can be divided by 0.
    n_items = max(train.n_items, 1)
    users = pairs // n_items
    items = pairs % n_items
    user_degrees = np.bincount(users, minlength=train.n_users)
    item_degrees = np.bincount(items, minlength=train.n_items)
    values = 1 / np.sqrt(user_degrees[users] * item_degrees[items])
    shape = (train.n_users, train.n_items)
    matrix = csr_matrix((values.astype(np.float32), (users, items)), shape=shape)
    return CompressedRows.from_scipy(matrix)


class Graph(nn.Module):
    """The training pairs as edges between users and items, symmetrically normalised.

    There are no self-loops. The graph moves with its backbone between devices and precisions, and
    is in no state dict, as it follows from the data.

    Args:
        train: its pairs are the edges.
    """

    def __init__(self, train: Interactions) -> None:
        super().__init__()
        self.shape = (train.n_users, train.n_items)
        self.item_offsets: Tensor
        to_items = normalized_matrix(train)
        # Both directions are kept: a product with a transposed sparse matrix would scatter.
        for direction, matrix in (("user", to_items), ("item", to_items.transposed())):
            for part in ("offsets", "columns", "values"):
                self.register_buffer(f"{direction}_{part}", getattr(matrix, part), persistent=False)

    def _rows(self, direction: str, n_columns: int) -> CompressedRows:
        offsets = getattr(self, f"{direction}_offsets")
        columns = getattr(self, f"{direction}_columns")
        values = getattr(self, f"{direction}_values")
        return CompressedRows(offsets, columns, values, n_columns)

    @torch.no_grad()
    def messages(self, users: Tensor, items: Tensor, *, layers: int) -> Tensor:
        """What items send to a user who joins the graph, shape (n_items, dimension).

        Layers 0 to `layers - 1` of each item add up, divided by the root of its degree with the new
        edge counted. That the new edge changes the layers themselves is left out.

        Args:
            users: the table of users, layer 0.
            items: the table of items, layer 0.
            layers: how far a representation looks.
        """
        total = items
        # A user's layer l comes from layer l - 1 of its items, so the last layer sends nothing.
        for _ in range(layers - 1):
            users, items = self.propagate(users, items)
            total = total + items
        degrees = self.item_offsets[1:] - self.item_offsets[:-1]
        roots = (degrees + 1).sqrt().unsqueeze(1)
        return total / roots.to(total.dtype)

    def propagate(
        self, users: Tensor, items: Tensor, *, plus: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """One layer: a user becomes the weighted sum of its items, an item that of its users.

        Args:
            users: shape (n_users, dimension).
            items: shape (n_items, dimension).
            plus: tables of users and items to be added to the sums, in the same pass.
        """
        n_users, n_items = self.shape
        by_user = self._rows("user", n_items)
        by_item = self._rows("item", n_users)
        plus_users, plus_items = plus or (None, None)
        # Each product is given the transposed matrix as well, for its gradient.
        new_users = sparse_product(by_user, by_item, items, addend=plus_users)
        new_items = sparse_product(by_item, by_user, users, addend=plus_items)
        return new_users, new_items
