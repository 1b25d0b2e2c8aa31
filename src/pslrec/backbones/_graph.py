"""The bipartite graph of the training pairs, and the step that sends representations along its edges."""

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor, nn

from pslrec.data import Interactions
from pslrec.kernels import CompressedRows, sparse_product


def normalized_matrix(train: Interactions) -> CompressedRows:
    """D_u^-1/2 R D_i^-1/2: each training pair (u, i), counted once, weighs 1 / sqrt(degree u × degree i).

    Users and items without a pair have an empty row or column.

    >>> log = Interactions.from_ids(["ann", "bob", "bob"], ["tea", "tea", "milk"])
    >>> normalized_matrix(log).values
    tensor([0.7071, 0.7071, 0.5000])
    """
    pairs = np.unique(train.pair_keys())
    users, items = pairs // max(train.n_items, 1), pairs % max(train.n_items, 1)
    user_degrees, item_degrees = (
        np.bincount(users, minlength=train.n_users),
        np.bincount(items, minlength=train.n_items),
    )
    values = 1 / np.sqrt(user_degrees[users] * item_degrees[items])
    return CompressedRows.from_scipy(
        csr_matrix(
            (values.astype(np.float32), (users, items)), shape=(train.n_users, train.n_items)
        )
    )


class Graph(nn.Module):
    """The training pairs as edges between users and items, symmetrically normalised, without self-loops.

    It moves with its backbone between devices and precisions, and is in no state dict: it follows from the data.

    Args:
        train: the only edges there are.
    """

    def __init__(self, train: Interactions) -> None:
        super().__init__()
        self.shape = (train.n_users, train.n_items)
        self.item_offsets: Tensor
        to_items = normalized_matrix(train)
        for direction, matrix in (("user", to_items), ("item", to_items.transposed())):
            for part in ("offsets", "columns", "values"):
                self.register_buffer(f"{direction}_{part}", getattr(matrix, part), persistent=False)

    def _rows(self, direction: str, n_columns: int) -> CompressedRows:
        offsets, columns, values = (
            getattr(self, f"{direction}_{part}") for part in ("offsets", "columns", "values")
        )
        return CompressedRows(offsets, columns, values, n_columns)

    @torch.no_grad()
    def messages(self, users: Tensor, items: Tensor, *, layers: int) -> Tensor:
        """What items send to a user who joins the graph, over all layers together, shape (n_items, dimension).

        Layers 0 to `layers - 1` of each item add up, over the root of its degree with the new edge counted; that the new edge
        changes the layers themselves is left out.

        Args:
            users: the table of users, layer 0.
            items: the table of items, layer 0.
            layers: how far a representation looks.
        """
        total = items
        for _ in range(layers - 1):
            users, items = self.propagate(users, items)
            total = total + items
        degrees = self.item_offsets[1:] - self.item_offsets[:-1]
        return total / (degrees + 1).sqrt().unsqueeze(1).to(total.dtype)

    def propagate(
        self, users: Tensor, items: Tensor, *, plus: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """One layer: every user becomes the weighted sum of its items, every item that of its users.

        Args:
            users: shape (n_users, dimension).
            items: shape (n_items, dimension).
            plus: tables of users and items to be added to the sums, in the same pass.
        """
        n_users, n_items = self.shape
        by_user, by_item = self._rows("user", n_items), self._rows("item", n_users)
        plus_users, plus_items = plus or (None, None)
        return (
            sparse_product(by_user, by_item, items, addend=plus_users),
            sparse_product(by_item, by_user, users, addend=plus_items),
        )
