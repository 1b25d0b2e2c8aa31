"""What a step of exact training minimises: the mean loss of a block's positives over all their negatives."""

from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from pslrec.backbones import Backbone, Representations
from pslrec.errors import ConfigError
from pslrec.kernels import (
    CatalogBlock,
    CatalogPass,
    RowOperation,
    catalog_log_sums,
    catalog_row_values,
    runs_compiled,
    takes_rows,
)
from pslrec.losses import CatalogFactors, CatalogStep, CatalogView, Loss
from pslrec.training._objective import SCALES, scored_tables


class CatalogObjective:
    """The mean loss of a block of users with all their positives."""

    def __init__(self, backbone: Backbone, loss: Loss) -> None:
        form = loss.catalog_form()
        if form is None and type(loss).catalog_values is Loss.catalog_values:
            raise ConfigError(
                f"loss `{loss.name}` can not be trained on the whole catalogue: it defines no `catalog_values`; "
                "set `sampling.negatives` to a number"
            )
        self.backbone, self.loss = backbone, loss
        self._operation = (
            None if form is None else RowOperation(form.kind, form.surrogate, form.exponent)
        )
        self._factor = 1.0 if form is None else form.factor
        self._takes_factors = (
            type(loss).catalog_values_of_factors is not Loss.catalog_values_of_factors
        )

    def __call__(self, representations: Representations, batch: CatalogBlock) -> Tensor:
        """One number to minimise."""
        device = representations.users.device
        users = functional.embedding(batch.users.to(device), representations.users)
        users, items, _ = scored_tables(representations._replace(users=users), self.loss.similarity)
        value = self.ranking_loss(users, items, batch)
        owners, pair_items = batch.pairs()
        pairs = batch.users[owners].to(device), pair_items.to(device)
        auxiliary = self.backbone.auxiliary_loss(representations, *pairs)
        return value if auxiliary is None else value + auxiliary

    def ranking_loss(self, users: Tensor, items: Tensor, block: CatalogBlock) -> Tensor:
        """The mean loss of the block's positives, differentiable in both tables.

        Args:
            users: vectors of the block's users, shape (block, dimension), of norm 1 where the loss asks for cosines.
            items: vectors of all items, likewise.
            block: whose vectors these are.
        """
        if self._operation is None or not takes_rows(users, self._operation):
            return self._values(users, items, block).mean()
        return self._compiled(users, items, block, self._operation)

    def _compiled(
        self, users: Tensor, items: Tensor, block: CatalogBlock, operation: RowOperation
    ) -> Tensor:
        scale, constant = SCALES[self.loss.similarity], 0.0
        if block.drawn is None:
            values = catalog_row_values(users, items, block, operation, scale=scale)
        else:
            reduced = block.reduced()
            rows = items.index_select(0, reduced.columns)
            values = catalog_row_values(users, rows, reduced.block, operation, scale=scale)
            if operation.kind != "mean":
                # A sum over the part stands for one over the whole.
                constant = float((reduced.shares.log() * reduced.block.positives.lengths()).sum())
        return self._factor * (values.sum() + constant).to(users.dtype) / block.n_pairs

    def _values(self, users: Tensor, items: Tensor, block: CatalogBlock) -> Tensor:
        if self._takes_factors and runs_compiled(users):
            return self.loss.catalog_values_of_factors(self._factors(users, items, block))
        return self.loss.catalog_values(self.view(users, items, block))

    def _factors(self, users: Tensor, items: Tensor, block: CatalogBlock) -> CatalogFactors:
        part, columns = block, None
        if block.drawn is not None:
            reduced = block.reduced()
            part, columns = reduced.block, reduced.columns
            items = items.index_select(0, columns)
        owners, pair_items = part.pairs()
        return CatalogFactors(
            user_vectors=users * SCALES[self.loss.similarity],
            item_vectors=items,
            users=block.users,
            owners=owners,
            items=pair_items,
            item_rows=columns,
            log_sums=partial(catalog_log_sums, part),
        )

    def graphless(self, vectors: Tensor) -> tuple[CatalogPass, float] | None:
        """The compiled pass over whole blocks and the factor of its values, if it is there for such vectors."""
        if self._operation is None or not takes_rows(vectors, self._operation):
            return None
        return CatalogPass(self._operation, scale=SCALES[self.loss.similarity]), self._factor

    def view(self, users: Tensor, items: Tensor, block: CatalogBlock) -> CatalogView:
        """The block as a loss sees it; arguments as in `ranking_loss`."""
        device, part, columns = users.device, block, None
        shares = torch.ones(len(block.users), dtype=torch.float64)
        if block.drawn is not None:
            reduced = block.reduced()
            part, columns, shares = reduced.block, reduced.columns.to(device), reduced.shares
            items = items.index_select(0, columns)
        owners, pair_items = part.pairs()
        return CatalogView(
            scores=torch.mm(users * SCALES[self.loss.similarity], items.T),
            weights=part.weights(users.dtype).mul_(shares.unsqueeze(1)).to(device),
            users=block.users.to(device),
            owners=owners.to(device),
            items=pair_items.to(device),
            item_rows=columns,
        )

    def step_of(self, batch: CatalogBlock) -> CatalogStep:
        """The block as a loss sees it after the step."""
        return CatalogStep(batch.users, lambda: self._current_scores(batch))

    @torch.no_grad()
    def _current_scores(self, batch: CatalogBlock) -> Tensor:
        representations = self.backbone()
        batch_users = representations.users[batch.users]
        vectors, table, _ = scored_tables(
            representations._replace(users=batch_users), self.loss.similarity
        )
        view = self.view(vectors, table, batch)
        is_candidate = view.weights > 0
        is_candidate[view.owners, view.items] = True
        return view.scores.masked_fill(~is_candidate, -float("inf"))
