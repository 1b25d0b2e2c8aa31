"""What a step of exact training minimises: the loss of a block's positives over all negatives."""

import torch
from torch import Tensor

from pslrec.backbones import Backbone, Representations
from pslrec.errors import ConfigError
from pslrec.kernels import TorchPass
from pslrec.losses import CatalogStep, Loss
from pslrec.sampling import CatalogBlock
from pslrec.training._catalog_views import catalog_view
from pslrec.training._operations import Kernels, operation_for
from pslrec.training._scores import scored_tables


class CatalogObjective:
    """The mean loss of a block of users with all their positives.

    Args:
        backbone: what gives the representations.
        loss: what is minimised, built.
        kernels: `plain` computes the loss as it is written, `auto` fused where that is possible.
        torch_pass: as in `operation_for`.
        n_processes: how many share a step.

    Raises:
        ConfigError: the loss does not say what it is over a whole catalogue.
    """

    def __init__(
        self,
        backbone: Backbone,
        loss: Loss,
        kernels: Kernels = "auto",
        torch_pass: TorchPass | None = None,
        *,
        n_processes: int = 1,
    ) -> None:
        why_not = loss.why_not_on_catalog()
        if why_not is not None:
            raise ConfigError(f"{why_not}; set `sampling.negatives` to a number")
        self.backbone = backbone
        self.loss = loss
        self._kernels = kernels
        self._torch_pass = torch_pass
        self._n_processes = n_processes

    def __call__(self, representations: Representations, batch: CatalogBlock) -> Tensor:
        """One number to minimise."""
        device = representations.users.device
        batch_users = self.backbone.users_of(representations, batch.users.to(device), batch.visible)
        of_batch = representations._replace(users=batch_users)
        users, items, _ = scored_tables(of_batch, self.loss.similarity)
        value = self.ranking_loss(users, items, batch)
        # The backbone's own term is over pairs, as with sampled negatives.
        pair_users, pair_items = batch.step_pairs()
        auxiliary = self.backbone.auxiliary_loss(
            representations, pair_users.to(device), pair_items.to(device)
        )
        if auxiliary is None:
            return value
        # As with sampled negatives, every process computes all of it.
        return value + auxiliary / self._n_processes

    def ranking_loss(self, users: Tensor, items: Tensor, block: CatalogBlock) -> Tensor:
        """The mean loss of the block's positives, differentiable in both tables.

        Args:
            users: vectors of the block's users, shape (block, dimension), of norm 1 where the loss
                asks for cosines.
            items: vectors of all items, likewise.
            block: whose vectors these are.
        """
        operation = operation_for(self.loss, "catalog", users, self._kernels, self._torch_pass)
        return operation.value(users, items, block)

    def step_of(self, batch: CatalogBlock) -> CatalogStep:
        """The block as a loss sees it after the step."""
        # Most losses never ask for the scores, which cost a product.
        users = batch.users.to(self.backbone.user_table.device)
        return CatalogStep(users, lambda: self._current_scores(batch))

    @torch.no_grad()
    def _current_scores(self, batch: CatalogBlock) -> Tensor:
        tables = self.backbone.step_tables()
        # By what the step saw: a loss compares these scores with those of the step.
        users = batch.users.to(tables.users.device)
        batch_users = self.backbone.users_of(tables, users, batch.visible)
        of_batch = tables._replace(users=batch_users)
        users, items, _ = scored_tables(of_batch, self.loss.similarity)
        view = catalog_view(self.loss, users, items, batch)
        is_candidate = view.weights > 0
        is_candidate[view.owners, view.items] = True
        return view.scores.masked_fill(~is_candidate, -float("inf"))
