"""What a step of exact training minimises: the mean loss of a block's positives over all their negatives."""

import torch
from torch import Tensor
from torch.nn import functional

from pslrec.backbones import Backbone, Representations
from pslrec.errors import ConfigError
from pslrec.kernels.catalog import CatalogBlock, catalog_log_sum, catalog_log_sum_plainly, takes
from pslrec.losses import SURROGATES, Loss
from pslrec.losses.base import Step
from pslrec.training.objective import SCALES, scored_tables


class CatalogObjective:
    """The mean loss of a block of users with all their positives."""

    def __init__(self, backbone: Backbone, loss: Loss) -> None:
        form = loss.log_sum_form()
        if form is None:
            raise ConfigError(
                f"loss `{loss.name}` ({loss.extra_repr()}) can not be trained on the whole catalogue yet; "
                'set `sampling.negatives` to a number instead of "catalog"'
            )
        self.backbone, self.loss, self.form = backbone, loss, form

    def __call__(self, representations: Representations, batch: CatalogBlock) -> Tensor:
        """One number to minimise."""
        users = functional.embedding(batch.users, representations.users)
        users, items, _ = scored_tables(representations._replace(users=users), self.loss.similarity)
        value = self.ranking_loss(users, items, batch)
        owners, pair_items = batch.pairs()
        auxiliary = self.backbone.auxiliary_loss(representations, batch.users[owners], pair_items)
        return value if auxiliary is None else value + auxiliary

    def ranking_loss(self, users: Tensor, items: Tensor, block: CatalogBlock) -> Tensor:
        """The mean loss of the block's positives, differentiable in both tables.

        Args:
            users: vectors of the block's users, shape (block, dimension), of norm 1 where the loss asks for cosines.
            items: vectors of all items, likewise.
            block: whose vectors these are.
        """
        form, scale = self.form, SCALES[self.loss.similarity]
        if takes(users, form.surrogate):
            options = {"surrogate": form.surrogate, "exponent": form.exponent, "scale": scale}
            values = catalog_log_sum(users, items, block, **options)  # type: ignore[arg-type]
        else:
            log_sigma = SURROGATES[form.surrogate]().log_value
            values = catalog_log_sum_plainly(torch.mm(users, items.T) * scale, block, log_sigma, form.exponent)
        return form.factor * values.sum().to(users.dtype) / block.n_pairs

    def step_of(self, batch: CatalogBlock) -> Step | None:  # noqa: ARG002
        """Losses of this form keep nothing that a step would change."""
        return None
