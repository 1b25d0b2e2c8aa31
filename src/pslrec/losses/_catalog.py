"""What a loss sees of a block in exact training: positives against all their negatives."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from pslrec.errors import ConfigError

LARGEST_PIECE = 2**24  # numbers of one tensor where every positive meets every negative

PieceValue = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class CatalogView:
    """The scores of a block of users for all items, and which of them are positives and negatives.

    Means and sums are over a user's negatives, each by its weight; all tensors are on the device of
    the scores.

    Args:
        scores: shape (block, n_items), with a graph.
        weights: how often each item counts as a negative, shape (block, n_items): 0 for one that is
            not a negative, 1 for most others.
        users: row number of each user, shape (block,).
        owners: position in the block of each positive's user, shape (pairs,).
        items: column of each positive, shape (pairs,).
        item_rows: row number of the item of each column, shape (n_items,), if they are not
            0, 1, 2, ...

    >>> view = CatalogView(
    ...     scores=torch.tensor([[0.5, 0.1, 0.3]]),
    ...     weights=torch.tensor([[0.0, 1.0, 1.0]]),
    ...     users=torch.tensor([4]),
    ...     owners=torch.tensor([0]),
    ...     items=torch.tensor([0]),
    ... )
    >>> view.positive_scores, view.mean(view.scores)
    (tensor([0.5000]), tensor([0.2000]))
    """

    scores: Tensor
    weights: Tensor
    users: Tensor
    owners: Tensor
    items: Tensor
    item_rows: Tensor | None = None

    @cached_property
    def positive_scores(self) -> Tensor:
        """The score of each positive, shape (pairs,)."""
        return self.scores[self.owners, self.items]

    @cached_property
    def log_weights(self) -> Tensor:
        """Logarithms of the weights, -inf for items that are not negatives."""
        return self.weights.log()

    def mean(self, values: Tensor) -> Tensor:
        """The mean over each user's negatives of values (block, n_items), shape (block,)."""
        return (values * self.weights).sum(dim=1) / self.weights.sum(dim=1)

    def log_sum(self, exponents: Tensor) -> Tensor:
        """Logarithm of Σ_j w_j exp(e_j) over each user's negatives, shape (block,).

        Args:
            exponents: e, shape (block, n_items).
        """
        return torch.logsumexp(exponents + self.log_weights, dim=1)

    def log_mean(self, exponents: Tensor) -> Tensor:
        """The same for the mean instead of the sum."""
        return self.log_sum(exponents) - self.weights.sum(dim=1).log()

    def at_every_positive(self, value: PieceValue) -> Tensor:
        """The loss of each positive, shape (pairs,), from all its pairs, some positives at a time.

        What a piece computes is computed again on the way back, so that no more than one is in
        memory.

        Args:
            value: gives the loss of some positives, from the differences s_j - s (some, n_items)
                and the weights; no gradient goes to anything else that it may use.
        """
        values: Tensor = _EveryPositive.apply(
            value, self.scores, self.positive_scores, self.weights, self.owners
        )  # type: ignore[no-untyped-call]
        return values

    def by_pairs(self, value: PieceValue) -> Tensor:
        """The loss of each positive, shape (pairs,), by a function that knows nothing but scores.

        Such a function cannot weigh, so each user's negatives are gathered first and must count
        alike. As above, pieces are computed again on the way back.

        Args:
            value: gives the loss of some positives of one user, from their scores (some,) and those
                of the negatives (some, negatives).
        """
        is_negative = self.weights > 0
        highest = self.weights.amax(dim=1, keepdim=True)
        if bool((is_negative & (self.weights != highest)).any()):
            raise ConfigError(
                "negatives have different weights, which a loss without `catalog_values` cannot "
                "take; set `sampling.negatives` to a number"
            )
        # Positives are grouped by user here, and go back to the order they came in at the end.
        order = torch.argsort(self.owners, stable=True)
        counts = torch.bincount(self.owners, minlength=len(self.scores)).tolist()
        pieces = []
        for user, own in enumerate(self.positive_scores[order].split(counts)):
            negatives = self.scores[user][is_negative[user]]
            size = max(LARGEST_PIECE // max(len(negatives), 1), 1)
            for some in own.split(size):
                if not len(some):
                    continue
                pairs = negatives.expand(len(some), -1)
                pieces.append(checkpoint(value, some, pairs, use_reentrant=False))
        return torch.cat(pieces)[torch.argsort(order)]


class _EveryPositive(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        value: PieceValue,
        scores: Tensor,
        positive_scores: Tensor,
        weights: Tensor,
        owners: Tensor,
    ) -> Tensor:
        ctx.value = value
        ctx.save_for_backward(scores, positive_scores, weights, owners)
        size = _size(scores)
        values = []
        for positive, owner in zip(positive_scores.split(size), owners.split(size), strict=True):
            differences = scores.index_select(0, owner) - positive.unsqueeze(1)
            values.append(value(differences, weights.index_select(0, owner)))
        return torch.cat(values)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor, Tensor, None, None]:
        scores, positive_scores, weights, owners = ctx.saved_tensors
        score_gradients = torch.zeros_like(scores)
        positive_gradients = []
        size = _size(scores)
        pieces = zip(
            positive_scores.split(size), owners.split(size), gradients[0].split(size), strict=True
        )
        for positive, owner, gradient in pieces:
            differences = scores.index_select(0, owner) - positive.unsqueeze(1)
            with torch.enable_grad():
                differences.requires_grad_()
                values = ctx.value(differences, weights.index_select(0, owner))
                (slopes,) = torch.autograd.grad(values, differences, gradient)
            score_gradients.index_add_(0, owner, slopes)
            positive_gradients.append(-slopes.sum(dim=1))
        return None, score_gradients, torch.cat(positive_gradients), None, None


def _size(scores: Tensor) -> int:
    return max(LARGEST_PIECE // scores.shape[1], 1)


LogSums = Callable[..., Tensor]


@dataclass(frozen=True, eq=False)
class CatalogFactors:
    """A block as vectors instead of scores, for losses that need no more than log-sums of products.

    Args:
        user_vectors: shape (block, dimension), with a graph; products with `item_vectors` are
            scores.
        item_vectors: shape (n_items, dimension), with a graph.
        users: as in `CatalogView`, and so are `owners`, `items` and `item_rows`.
        log_sums: `log_sums((left, right), ...)` is log Σ_j w_j exp(Σ <left_u, right_j>) over the
            negatives of each user, shape (block,), differentiable in all tables.
    """

    user_vectors: Tensor
    item_vectors: Tensor
    users: Tensor
    owners: Tensor
    items: Tensor
    item_rows: Tensor | None
    log_sums: LogSums

    @cached_property
    def positive_scores(self) -> Tensor:
        """The score of each positive, shape (pairs,)."""
        return (self.user_vectors[self.owners] * self.item_vectors[self.items]).sum(dim=1)


@dataclass(frozen=True, eq=False)
class CatalogStep:
    """The block that has just been trained on exactly, for losses that look at the model again.

    Args:
        users: row number of each user of the block, shape (block,).
        scores: gives the current model's scores of these users for their positives and negatives,
            without a graph, shape (block, n_items); -inf where an item is neither.
    """

    users: Tensor
    scores: Callable[[], Tensor]


def log_mean_by_group(exponents: Tensor, groups: Tensor, n_groups: int) -> Tensor:
    """Logarithm of the mean of exp over the exponents of each group, shape (n_groups,).

    A group without any gives -inf.

    >>> log_mean_by_group(torch.tensor([0.0, 1.0, 0.0]), torch.tensor([0, 1, 0]), 2)
    tensor([0., 1.])
    """
    empty = exponents.new_zeros(n_groups)
    # Subtracted before the exponential and added after the logarithm, so that nothing overflows.
    highest = torch.full_like(empty, -float("inf")).scatter_reduce(
        0, groups, exponents.detach(), reduce="amax"
    )
    sums = empty.index_add(0, groups, torch.exp(exponents - highest[groups]))
    counts = empty.index_add(0, groups, torch.ones_like(exponents))
    return highest + torch.log(sums / counts.clamp(min=1.0))
