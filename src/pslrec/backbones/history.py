"""A backbone without users: a user is the sum of what is in the history."""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from pslrec.backbones._base import Backbone, NewUsers, Representations, register_backbone
from pslrec.checks import one_of, share
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

    >>> train = Interactions.from_ids(["ann", "ann", "bob"], ["tea", "milk", "tea"])
    >>> backbone = History(train, dimension=8)
    >>> backbone().users.shape
    torch.Size([2, 8])
    >>> bool((backbone.encode(train.rows) == backbone().users).all())
    True
    """

    reference = "Linear autoencoder; Steck, WWW 2019, for the idea of hiding items"
    sums_histories = True
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
    ) -> None:
        super().__init__(train, dimension=dimension, initialization=initialization, seed=seed)
        self.visible = share("visible", visible)
        self.predicts = one_of("predicts", predicts, PREDICTED)
        if predicts == "hidden" and visible == 1:
            raise ConfigError(
                "`visible` must be below 1 where `predicts` is hidden, as nothing is hidden; "
                "set `predicts` to all"
            )
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
        vectors = _unit_sums(tables.users, histories.select(distinct.cpu().numpy()))
        if len(distinct) == len(users):
            # Blocks of users are ascending and without repeats, so nothing has to be copied.
            is_in_order = torch.equal(distinct, users)
            if is_in_order:
                return vectors
        return functional.embedding(places, vectors)

    def encode(self, histories: Rows) -> Tensor:
        """The sum over each history, of length 1; zeros where a history is empty."""
        return _unit_sums(self.user_table, histories)

    def new_users(self) -> NewUsers:
        """New users have no rows either: `encode` represents them."""
        return NewUsers(share=0.0)


def _unit_sums(table: Tensor, histories: Rows) -> Tensor:
    """The sum of the table's rows over each list, of length 1, whoever else is asked for."""
    matrix = _indicators(histories, len(table), table)
    # Gradients go back by the transpose, which is made only where there will be some.
    transposed = matrix
    if table.requires_grad and torch.is_grad_enabled():
        transposed = matrix.transposed()
    return functional.normalize(sparse_product(matrix, transposed, table), dim=1)


def _indicators(histories: Rows, n_items: int, like: Tensor) -> CompressedRows:
    ones = torch.ones(len(histories.items), dtype=like.dtype)
    offsets = torch.from_numpy(histories.offsets.astype(np.int32))
    columns = torch.from_numpy(histories.items)
    device = like.device
    return CompressedRows(offsets.to(device), columns.to(device), ones.to(device), n_items)
