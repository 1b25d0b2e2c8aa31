"""LightGCN: representations averaged over a few steps through the training graph."""

from typing import ClassVar

import torch
from torch import Tensor

from pslrec.backbones._base import (
    MOST_LAYERS,
    Backbone,
    NewUsers,
    Representations,
    SearchSpace,
    register_backbone,
)
from pslrec.backbones._graph import Graph
from pslrec.checks import whole_number
from pslrec.data import Interactions


@register_backbone("lightgcn")
class LightGCN(Backbone):
    """LightGCN: (E + A E + ... + A^L E) / (L + 1), A the normalised training graph, E the tables.

    Args:
        train: the interactions to learn from; its pairs are the edges.
        dimension: columns of the tables.
        initialization: how the tables start; `None` is `normal`.
        seed: of the tables' first values.
        layers: L, up to 64: how far a representation looks. Time per step grows with it; the paper
            uses 2.

    >>> train = Interactions.from_ids(["ann", "bob"], ["tea", "tea"])
    >>> LightGCN(train, dimension=8, layers=1)().users.shape
    torch.Size([2, 8])
    """

    reference = "He et al., SIGIR 2020"
    search_space: ClassVar[SearchSpace] = {"backbone.layers": (1, 2, 3)}

    def __init__(
        self,
        train: Interactions,
        *,
        dimension: int = 64,
        initialization: str | None = None,
        seed: int = 0,
        layers: int = 2,
    ) -> None:
        super().__init__(train, dimension=dimension, initialization=initialization, seed=seed)
        self.layers = whole_number("layers", layers, maximum=MOST_LAYERS)
        self.graph = Graph(train)

    def forward(self, noise: torch.Generator | None = None) -> Representations:  # noqa: ARG002
        """The mean of layers 0 to L."""
        tables: tuple[Tensor, Tensor] = (self.user_table, self.item_table)
        users, items = tables
        # Horner's rule, E + A (E + A E), adds the layers up inside the products: no sums of tables
        # beside them, and none to keep for the gradient.
        for _ in range(self.layers):
            users, items = self.graph.propagate(users, items, plus=tables)
        n_layers = self.layers + 1
        return Representations(users / n_layers, items / n_layers)

    def new_users(self) -> NewUsers:
        """A new user's layers 1 to L come from its items; layer 0 is a row of its own."""
        messages = self.graph.messages(self.user_table, self.item_table, layers=self.layers)
        n_layers = self.layers + 1
        return NewUsers(messages / n_layers, share=1 / n_layers)
