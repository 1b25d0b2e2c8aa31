"""The thresholds of top-K weighting: what they are, and the positives they are found among."""

import torch
from torch import Tensor, nn

from pslrec.losses._base import Setup, Step
from pslrec.losses._catalog import CatalogStep
from pslrec.rows import Rows


class TopKThresholds(nn.Module):
    """About the k-th largest score of every user, 0 before it is first looked at.

    Args:
        setup: number of users and their training positives.
        k: list length.
        lowest: the lowest score there is.
    """

    values: Tensor
    history: Tensor

    def __init__(self, setup: Setup, *, k: int, lowest: float = -0.5) -> None:
        super().__init__()
        if setup.history is None:
            raise ValueError(
                "`history` must be given: thresholds are looked for among the training positives"
            )
        self.k = k
        self.lowest = lowest
        self.register_buffer("values", torch.zeros(setup.n_users))
        self.register_buffer("history", padded_history(setup.history), persistent=False)

    def forward(self, users: Tensor) -> Tensor:
        """The threshold of each of the users."""
        return self.values[users]

    @torch.no_grad()
    def update(self, step: Step | CatalogStep) -> None:
        """Look again for the users of a batch, by the current model.

        Of a repeated user the last pair counts.
        """
        if isinstance(step, CatalogStep):
            scores = step.scores()
            # Positives are among the scores of the whole row already.
            found = top_k_threshold(scores, scores[:, :0], k=self.k, lowest=self.lowest)
            self.values[step.users] = found.to(self.values.dtype)
            return
        items = self.history[step.users]
        # Padding is scored as item 0, then hidden: row numbers must exist.
        positive_scores = step.score(step.users, items.clamp(min=0))
        positive_scores = positive_scores.masked_fill(items < 0, -float("inf"))
        negative_scores = step.score(step.users, step.negatives)
        found = top_k_threshold(positive_scores, negative_scores, k=self.k, lowest=self.lowest)
        # Not `values[users] = found`: which of repeated users wins there depends on device and
        # threads.
        distinct, places = torch.unique(step.users, return_inverse=True)
        positions = torch.arange(len(places), device=places.device)
        last = torch.zeros_like(distinct).scatter_reduce_(
            0, places, positions.to(distinct.dtype), reduce="amax"
        )
        self.values[distinct] = found[last].to(self.values.dtype)


def top_k_threshold(
    positive_scores: Tensor, negative_scores: Tensor, *, k: int, lowest: float = -0.5
) -> Tensor:
    """The k-th largest of each row of both tensors together, shape (batch,).

    A row with fewer than k gives the lowest score there is: everything is within its top k.

    Args:
        positive_scores: scores of the user's positives, padded with -inf, shape (batch, any).
        negative_scores: scores of the negatives, shape (batch, negatives).
        k: list length.
        lowest: the lowest score there is, -1/2 for half cosines.

    >>> top_k_threshold(torch.tensor([[0.4, 0.1]]), torch.tensor([[0.3, -0.2, 0.0]]), k=2)
    tensor([0.3000])
    """
    candidates = torch.cat([positive_scores, negative_scores], dim=1)
    if candidates.shape[1] < k:
        return torch.full_like(candidates[:, 0], lowest)
    return candidates.topk(k, dim=1).values[:, -1].clamp(min=lowest)


def padded_history(history: Rows, *, share: float = 0.9) -> Tensor:
    """Each user's items as a row padded with -1, cut where this share of users ends.

    Of a longer list the lowest row numbers are kept, as in the code behind the published numbers.

    >>> padded_history(Rows.from_lists([[5], [9, 2]]), share=1.0)
    tensor([[ 5, -1],
            [ 2,  9]])
    """
    offsets, items = history.tensors
    lengths = offsets.diff()
    width = max(int(torch.quantile(lengths.double(), share)), 1)
    users = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
    # Lists need not be ascending here. Stable sorts, the minor key first: by user, then item.
    order = torch.argsort(items, stable=True)
    order = order[torch.argsort(users[order], stable=True)]
    places = torch.arange(len(items)) - offsets[users]
    kept = places < width
    rows = torch.full((len(lengths), width), -1, dtype=torch.long)
    rows[users[kept], places[kept]] = items[order][kept].long()
    return rows
