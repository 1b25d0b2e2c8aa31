"""A backbone without users: a user is the sum of what is in the history."""

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from pslrec.backbones._base import Backbone, NewUsers, Representations, register_backbone
from pslrec.checks import one_of, part, share
from pslrec.data import Interactions
from pslrec.errors import ConfigError
from pslrec.kernels import CompressedRows, sparse_product
from pslrec.rows import Rows

PREDICTED = ("all", "hidden")


@register_backbone("history")
class History(Backbone):
    """`history`: a user is the sum of E over the items in the history, scaled to length 1.

    Items are ranked by a second table, Y. In each epoch of training a part of every history is
    hidden: the visible part makes the user's vector, which is trained to rank the whole history, or
    the hidden part alone, above all other items. No item of the history is a negative.

    A user who was not there in training is represented as everybody else, without fold-in, and a
    new interaction counts at once. The size of the model does not depend on the number of users.

    Args:
        train: the interactions to learn from.
        dimension: columns of the tables.
        initialization: how the tables start; `None` is `spectral:2`.
        seed: of the tables' first values.
        visible: the share of every history that is visible in an epoch, up to 1. Hiding more keeps
            sparse data from being learnt by heart, and slows down learning where there is plenty.
            Of two or more items at least one stays visible and, below 1, one is hidden.
        predicts: which items of the history are positives, `all` or the `hidden` ones. With the
            latter a vector is never trained to predict what it is made of; it learns half as fast.
        popularity: how much of every user's vector all users share, from 0 to below 1. It lets a
            column of Y learn how popular each item is, which helps where much of what people do
            follows popularity. With a single column there is no room for it, and it is 0.

    >>> train = Interactions.from_ids(["ann", "ann", "bob"], ["tea", "milk", "tea"])
    >>> backbone = History(train, dimension=8)
    >>> backbone().users.shape
    torch.Size([2, 8])
    >>> bool((backbone.encode(train.rows) == backbone().users).all())
    True
    """

    reference = "Linear autoencoder; Steck, WWW 2019, for the idea of hiding items"
    sums_histories = True
    takes_item_parts = True
    default_initialization = "spectral:2"

    def __init__(
        self,
        train: Interactions,
        *,
        dimension: int = 64,
        initialization: str | None = None,
        seed: int = 0,
        visible: float = 0.5,
        predicts: str = "all",
        popularity: float = 0.0,
    ) -> None:
        super().__init__(train, dimension=dimension, initialization=initialization, seed=seed)
        self.visible = share("visible", visible)
        self.predicts = one_of("predicts", predicts, PREDICTED)
        if predicts == "hidden" and visible == 1:
            raise ConfigError(
                "`visible` must be below 1 where `predicts` is hidden, as nothing is hidden; "
                "set `predicts` to all"
            )
        self.popularity = part("popularity", popularity)
        if dimension == 1:
            # The only column is needed for taste.
            self.popularity = 0.0
        self.histories = train.rows

    def forward(self, noise: torch.Generator | None = None) -> Representations:  # noqa: ARG002
        """Every user by the whole history."""
        return Representations(self.encode(self.histories), self.item_table)

    def step_tables(self, noise: torch.Generator | None = None) -> Representations:  # noqa: ARG002
        """The tables: a step makes the vectors of its own users only."""
        return Representations(self.user_table, self.item_table)

    def users_of(
        self, tables: Representations, users: Tensor, visible: Rows | None = None
    ) -> Tensor:
        """Sums over the visible part of each user's history, of length 1."""
        histories = visible
        if histories is None:
            histories = self.histories
        # With sampled negatives a user comes once for each of its positives.
        distinct, places = torch.unique(users, return_inverse=True)
        vectors = self._vectors(tables.users, histories.select(distinct.cpu().numpy()))
        if len(distinct) == len(users):
            # Blocks of users are ascending and without repeats, so nothing has to be copied.
            is_in_order = torch.equal(distinct, users)
            if is_in_order:
                return vectors
        return functional.embedding(places, vectors)

    def encode(self, histories: Rows) -> Tensor:
        """The sum over each history, with the part that all users share; of length 1.

        Zeros where a history is empty.
        """
        return self._vectors(self.user_table, histories)

    def _vectors(self, table: Tensor, histories: Rows) -> Tensor:
        if self.item_part is None:
            sums = _sums(table, histories)
        else:
            own = _sums(table, histories.within(self.item_part.rows))
            sums = self.item_part.combine(own)
        if self.popularity == 0:
            return functional.normalize(sums, dim=1)
        # The last column is the part that all users share. The spectral start keeps there how much
        # the items lack in length, the rarest most, so it counts against them.
        tastes = functional.normalize(sums[:, :-1], dim=1)
        weight = math.sqrt(1 - self.popularity**2)
        has_history = torch.from_numpy(histories.lengths > 0).to(tastes)
        shared = -self.popularity * has_history.unsqueeze(1)
        return torch.cat([weight * tastes, shared], dim=1)

    def new_users(self) -> NewUsers:
        """New users have no rows either: `encode` represents them."""
        return NewUsers(share=0.0)


def _sums(table: Tensor, histories: Rows) -> Tensor:
    """The sum of the table's rows over each list, whoever else is asked for."""
    matrix = _indicators(histories, len(table), table)
    # Gradients go back by the transpose, which is made only where there will be some.
    transposed = matrix
    if table.requires_grad and torch.is_grad_enabled():
        transposed = matrix.transposed()
    return sparse_product(matrix, transposed, table)


def _indicators(histories: Rows, n_items: int, like: Tensor) -> CompressedRows:
    ones = torch.ones(len(histories.items), dtype=like.dtype)
    offsets = torch.from_numpy(histories.offsets.astype(np.int32))
    columns = torch.from_numpy(histories.items)
    device = like.device
    return CompressedRows(offsets.to(device), columns.to(device), ones.to(device), n_items)
