"""The adversary of AdvInfoNCE: tables of its own that say how hard a negative shall count."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from pslrec.losses._base import Setup


class Adversary(nn.Module):
    """User and item tables whose similarity, by a softmax over negatives, is their hardness.

    Args:
        setup: sizes of the tables, and the generator of their first values.
        is_cosine: similarity is the cosine, of tables drawn from N(0, 1); else the inner product,
            of Xavier-normal ones.
    """

    def __init__(self, setup: Setup, *, is_cosine: bool) -> None:
        super().__init__()
        self.is_cosine = is_cosine
        self.products = setup.products
        self.users = self._table(setup.n_users, setup)
        self.items = self._table(setup.n_items, setup)

    def _table(self, rows: int, setup: Setup) -> nn.Parameter:
        table = torch.randn(rows, setup.dimension, generator=setup.generator)
        if not self.is_cosine:
            # Xavier-normal. Cosines do not see the scale.
            table = table * math.sqrt(2.0 / (rows + setup.dimension))
        return nn.Parameter(table)

    def forward(self, users: Tensor, negatives: Tensor) -> Tensor:
        """Hardness log N + log softmax_j of the similarity, shape (batch, N).

        Args:
            users: row numbers, shape (batch,).
            negatives: row numbers, shape (batch, N).
        """
        similarity = self.products(*self._vectors(users, self.items), negatives)
        return functional.log_softmax(similarity, dim=1) + math.log(negatives.shape[1])

    def similarities(self, users: Tensor, items: Tensor | None = None) -> Tensor:
        """The similarity of users (any,) to some items, or to all, shape (any, items)."""
        user_rows, item_rows = self.vectors(users, items)
        return user_rows @ item_rows.T

    def vectors(self, users: Tensor, items: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Vectors of users (any,) and of some items, or of all; their products are similarities."""
        table: Tensor = self.items
        if items is not None:
            table = table[items]
        return self._vectors(users, table)

    def _vectors(self, users: Tensor, items: Tensor) -> tuple[Tensor, Tensor]:
        user_rows: Tensor = self.users[users]
        if not self.is_cosine:
            return user_rows, items
        return functional.normalize(user_rows, dim=1), functional.normalize(items, dim=1)
