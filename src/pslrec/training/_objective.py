"""What a step with sampled negatives minimises: the loss of a batch and the backbone's term."""

import torch
from torch import Tensor

from pslrec.backbones import Backbone, Representations
from pslrec.kernels import sampled_scores
from pslrec.losses import Loss, Step
from pslrec.rows import Rows
from pslrec.sampling import PairBatch
from pslrec.training._operations import Kernels, operation_for
from pslrec.training._scores import scored_tables


class SampledObjective:
    """The mean loss of a batch of pairs with sampled negatives.

    Args:
        backbone: what gives the representations.
        loss: what is minimised, built.
        kernels: `plain` computes the loss as it is written, `auto` fused where that is possible.
        n_processes: how many share a step.
    """

    def __init__(
        self, backbone: Backbone, loss: Loss, kernels: Kernels = "auto", *, n_processes: int = 1
    ) -> None:
        self.backbone = backbone
        self.loss = loss
        self._kernels = kernels
        self._n_processes = n_processes

    def __call__(self, representations: Representations, batch: PairBatch) -> Tensor:
        """One number to minimise."""
        batch = batch.to(representations.users.device)
        # Only the batch's users are normalised.
        batch_users = self.backbone.users_of(representations, batch.users, batch.visible)
        of_batch = representations._replace(users=batch_users)
        users, items, _ = scored_tables(of_batch, self.loss.similarity)
        operation = operation_for(self.loss, "sampled", users, self._kernels)
        value = operation.value(users, items, batch)
        pairs = batch.step_pairs()
        auxiliary = self.backbone.auxiliary_loss(representations, *pairs)
        if auxiliary is None:
            return value
        # It compares all pairs of the step with each other, so every process computes all of it.
        return value + auxiliary / self._n_processes

    def step_of(self, batch: PairBatch) -> Step:
        """The batch as a loss sees it after the step."""

        def score(users: Tensor, items: Tensor) -> Tensor:
            # By what the step saw: a loss compares these scores with those of the step.
            return self.score(users, items, batch.visible)

        batch = batch.to(self.backbone.user_table.device)
        return Step(batch.users, batch.positives, batch.negatives, score)

    @torch.no_grad()
    def score(self, users: Tensor, items: Tensor, visible: Rows | None = None) -> Tensor:
        """Scores of the backbone as it is now, without a graph.

        Args:
            users: row numbers, shape (batch,).
            items: row numbers, shape (batch, any).
            visible: as in `Backbone.users_of`.
        """
        tables = self.backbone.step_tables()
        of_batch = tables._replace(users=self.backbone.users_of(tables, users, visible))
        vectors, table, scale = scored_tables(of_batch, self.loss.similarity)
        return sampled_scores(vectors, table, items.int().contiguous(), scale)
