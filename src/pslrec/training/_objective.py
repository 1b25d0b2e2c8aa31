"""What a step minimises: scores of a batch, through the loss, plus the backbone's own term.

This is the one place where a fused operation takes_log_sum the place of the plain path written below it.
"""

import torch
from torch import Tensor
from torch.nn import functional

from pslrec.backbones import Backbone, Representations
from pslrec.kernels import sampled_log_sum, sampled_scores, takes_log_sum
from pslrec.losses import Loss, Step
from pslrec.sampling import PairBatch

SCALES = {"half-cosine": 0.5, "inner-product": 1.0}


def scored_tables(
    representations: Representations, similarity: str
) -> tuple[Tensor, Tensor, float]:
    """Users, items and the factor whose product with their inner products is the score that a loss asks for."""
    users, items = representations.users, representations.items
    if similarity == "half-cosine":
        users, items = functional.normalize(users, dim=1), functional.normalize(items, dim=1)
    return users, items, SCALES[similarity]


class SampledObjective:
    """The mean loss of a batch of pairs with sampled negatives."""

    def __init__(self, backbone: Backbone, loss: Loss) -> None:
        self.backbone, self.loss = backbone, loss

    def __call__(self, representations: Representations, batch: PairBatch) -> Tensor:
        """One number to minimise."""
        value = self._ranking_loss(representations, batch)
        auxiliary = self.backbone.auxiliary_loss(representations, batch.users, batch.positives)
        return value if auxiliary is None else value + auxiliary

    def _ranking_loss(self, representations: Representations, batch: PairBatch) -> Tensor:
        users, items, scale = self._vectors(representations, batch)
        form = self.loss.log_sum_form()
        if form is not None and takes_log_sum(users, form.surrogate):
            values = sampled_log_sum(
                users,
                items,
                batch.candidates,
                surrogate=form.surrogate,
                exponent=form.exponent,
                scale=scale,
            )
            return form.factor * values.mean()
        scores = sampled_scores(users, items, batch.candidates, scale)
        extras = (
            self.loss.extra_inputs(batch.users, batch.positives, batch.negatives.long())
            if self.loss.needs
            else {}
        )
        value: Tensor = self.loss(scores[:, 0], scores[:, 1:], **extras)
        return value

    def _vectors(
        self, representations: Representations, batch: PairBatch
    ) -> tuple[Tensor, Tensor, float]:
        # Only the batch's users are normalised; an embedding's gradient is written in parallel, an index's is not.
        users = functional.embedding(batch.users, representations.users)
        return scored_tables(representations._replace(users=users), self.loss.similarity)

    def step_of(self, batch: PairBatch) -> Step:
        """The batch as a loss sees it after the step."""
        return Step(batch.users, batch.positives, batch.negatives, self.score)

    def score(self, users: Tensor, items: Tensor) -> Tensor:
        """Scores of the backbone as it is now, users (batch,) for items (batch, any), without a graph."""
        with torch.no_grad():
            representations = self.backbone()
            batch_users = representations.users[users]
            vectors, table, scale = scored_tables(
                representations._replace(users=batch_users), self.loss.similarity
            )
            return sampled_scores(vectors, table, items.int().contiguous(), scale)
