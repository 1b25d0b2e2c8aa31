"""A block of users as a loss sees it: scores of all items, or the vectors they are products of."""

from functools import partial

import torch
from torch import Tensor

from pslrec.kernels import catalog_log_sums
from pslrec.losses import CatalogFactors, CatalogView, Loss
from pslrec.sampling import CatalogBlock
from pslrec.training._scores import SCALES


def catalog_view(loss: Loss, users: Tensor, items: Tensor, block: CatalogBlock) -> CatalogView:
    """The block as scores.

    Args:
        loss: whose similarity the scores are.
        users: vectors of the block's users, shape (block, dimension), of norm 1 where the loss asks
            for cosines.
        items: vectors of all items, likewise.
        block: whose vectors these are.
    """
    device = users.device
    part = block
    columns = None
    shares = torch.ones(len(block.users), dtype=torch.float64)
    if block.drawn is not None:
        reduced = block.reduced()
        part = reduced.block
        columns = reduced.columns.to(device)
        shares = reduced.shares
        items = items.index_select(0, columns)
    owners, pair_items = part.pairs()
    weights = part.weights(users.dtype)
    # A sum over the part stands for one over the whole.
    weights.mul_(shares.unsqueeze(1))
    return CatalogView(
        scores=torch.mm(users * SCALES[loss.similarity], items.T),
        weights=weights.to(device),
        users=block.users.to(device),
        owners=owners.to(device),
        items=pair_items.to(device),
        item_rows=columns,
    )


def catalog_factors(
    loss: Loss, users: Tensor, items: Tensor, block: CatalogBlock
) -> CatalogFactors:
    """The block as vectors, with fused log-sums of their products.

    Arguments as in `catalog_view`.
    """
    part = block
    columns = None
    if block.drawn is not None:
        reduced = block.reduced()
        part = reduced.block
        columns = reduced.columns
        items = items.index_select(0, columns)
    owners, pair_items = part.pairs()
    return CatalogFactors(
        user_vectors=users * SCALES[loss.similarity],
        item_vectors=items,
        users=block.users,
        owners=owners,
        items=pair_items,
        item_rows=columns,
        log_sums=partial(catalog_log_sums, part.lists),
    )
