"""What a step of exact training minimises: the mean loss of a block's positives over all their negatives."""

import torch
from torch import Tensor
from torch.nn import functional

from pslrec.backbones import Backbone, Representations
from pslrec.errors import ConfigError
from pslrec.kernels.catalog import CatalogBlock, catalog_log_sum, catalog_log_sum_plainly, takes
from pslrec.losses import SURROGATES, Loss
from pslrec.losses.base import LogSumForm, Step
from pslrec.training.objective import scored_tables


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
        owners, items = batch.pairs()
        value = self.form.factor * self._sum_of_losses(representations, batch, self.form) / len(items)
        auxiliary = self.backbone.auxiliary_loss(representations, batch.users[owners], items)
        return value if auxiliary is None else value + auxiliary

    def _sum_of_losses(self, representations: Representations, block: CatalogBlock, form: LogSumForm) -> Tensor:
        users = functional.embedding(block.users, representations.users)
        users, items, scale = scored_tables(representations._replace(users=users), self.loss.similarity)
        if takes(users, form.surrogate):
            options = {"surrogate": form.surrogate, "exponent": form.exponent, "scale": scale}
            return catalog_log_sum(users, items, block, **options).sum().to(users.dtype)  # type: ignore[arg-type]
        scores = torch.mm(users, items.T) * scale
        log_sigma = SURROGATES[form.surrogate]().log_value
        return catalog_log_sum_plainly(scores, block, log_sigma, form.exponent).sum()

    def step_of(self, batch: CatalogBlock) -> Step | None:  # noqa: ARG002
        """Losses of this form keep nothing that a step would change."""
        return None
