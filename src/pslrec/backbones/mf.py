"""Matrix factorisation: the tables are the representations."""

import torch

from pslrec.backbones._base import Backbone, Representations, register_backbone


@register_backbone("mf")
class MatrixFactorization(Backbone):
    """MF: a user or item is represented by its row of the table.

    The fastest backbone, as a step touches the rows of its batch only. Arguments as in `Backbone`.

    >>> from pslrec.data import Interactions
    >>> train = Interactions.from_ids(["ann", "bob"], ["tea", "milk"])
    >>> backbone = MatrixFactorization(train, dimension=8)
    >>> backbone().users is backbone.user_table
    True
    """

    reference = "Koren et al., IEEE Computer 2009"
    is_lookup = True

    def forward(self, noise: torch.Generator | None = None) -> Representations:  # noqa: ARG002
        """The tables themselves, not copies."""
        return Representations(self.user_table, self.item_table)
