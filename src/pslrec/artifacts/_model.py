"""A trained model: its tables, and how two of their rows become a score."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from pslrec.artifacts._walks import WalkingScorer, Walks
from pslrec.backbones import Backbone, Representations
from pslrec.evaluation import EmbeddingScorer, Scorer
from pslrec.rows import Rows
from pslrec.training import scored_tables


def trained_tables(backbone: Backbone) -> dict[str, Tensor]:
    """The tables of a backbone that a run keeps.

    `users` and `items` are the representations, which score. Where the backbone computes them from
    other tables, these are kept as `user_table` and `item_table`, to represent new users and to
    start a later run from. A table that is a representation itself is not kept twice.

    Args:
        backbone: is left in the mode, training or evaluation, that it was in.
    """
    was_training = backbone.training
    # Representations of training may be perturbed on purpose.
    backbone.eval()
    with torch.no_grad():
        representations = backbone()
    backbone.train(was_training)
    tables = {"users": representations.users, "items": representations.items}
    if representations.users is not backbone.user_table:
        tables["user_table"] = backbone.user_table
    if representations.items is not backbone.item_table:
        tables["item_table"] = backbone.item_table
    # Files hold tables row by row, and everything that reads a model runs on the processor.
    return {name: table.detach().cpu().contiguous() for name, table in tables.items()}


# Without `eq`: comparing tensors gives no single truth value.
@dataclass(frozen=True, eq=False)
class Model:
    """A trained model as a value: what it learnt and how it scores.

    Args:
        tables: at least `users` and `items`, one row each, as `trained_tables` gives them.
        similarity: what the loss asks for: `half-cosine` or `inner-product`.
        walks: what is added to the scores of the vectors, if anything is.
        histories: the items of each user, from which the walks start.

    >>> users = torch.tensor([[2.0, 0.0]])
    >>> items = torch.tensor([[0.0, 1.0], [3.0, 0.0]])
    >>> model = Model({"users": users, "items": items}, "half-cosine")
    >>> model.user_vectors @ model.item_vectors.T
    tensor([[0.0000, 0.5000]])
    """

    tables: Mapping[str, Tensor]
    similarity: str
    walks: Walks | None = None
    histories: Rows | None = None

    @classmethod
    def of(cls, backbone: Backbone, similarity: str) -> "Model":
        """The model that a backbone is now; it changes if the backbone is trained further.

        Args:
            backbone: the trained one.
            similarity: what its loss asks for.
        """
        return cls(trained_tables(backbone), similarity)

    # Both at once and only once, as normalising large tables takes time and memory.
    @cached_property
    def _vectors(self) -> tuple[Tensor, Tensor]:
        representations = Representations(self.tables["users"], self.tables["items"])
        users, items, scale = scored_tables(representations, self.similarity)
        # On one side only, so that the factor counts once in a product.
        return users * scale, items

    @property
    def user_vectors(self) -> Tensor:
        """One row per user; its inner product with a row of `item_vectors` is the score.

        Without the walks, if there are any.
        """
        return self._vectors[0]

    @property
    def item_vectors(self) -> Tensor:
        """One row per item."""
        return self._vectors[1]

    def vector_scorer(self) -> EmbeddingScorer:
        """The vectors alone as something that evaluation can rank by."""
        return EmbeddingScorer(self.user_vectors, self.item_vectors)

    def scorer(self) -> Scorer:
        """The model as something that evaluation can rank by."""
        vectors = self.vector_scorer()
        if self.walks is None:
            return vectors
        if self.histories is None:
            raise ValueError("`histories` must be given where the model has `walks`")
        return WalkingScorer(vectors, self.walks, self.histories)
