"""Scores of a batch of users for sampled candidates, without a vector per candidate.

The plain way gathers a (batch, candidates, dimension) block; here a score is a dot product of two
rows where they lie, and the gradient goes straight to the rows it belongs to.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from pslrec.kernels._native import IS_COMPILED, native


def sampled_scores(users: Tensor, items: Tensor, candidates: Tensor, scale: float = 1.0) -> Tensor:
    """`scale * <users[b], items[candidates[b, n]]>`, shape (batch, candidates).

    Differentiable in `users` and `items`, and equal to
    `scale * torch.einsum("bd,bnd->bn", users, items[candidates])`.

    Args:
        users: one vector per row of the batch, shape (batch, dimension).
        items: the whole table of item vectors, shape (n_items, dimension).
        candidates: rows of `items`, shape (batch, candidates), int32, contiguous.
        scale: factor of all scores; 1/2 makes half cosines of unit vectors.

    >>> items, candidates = torch.tensor([[2.0, 3.0]]), torch.zeros(2, 1, dtype=torch.int32)
    >>> sampled_scores(torch.eye(2), items, candidates)
    tensor([[2.],
            [3.]])
    """
    check_shapes(users, items, candidates)
    if not runs_compiled(users):
        return sampled_scores_plainly(users, items, candidates, scale)
    arguments = (users, items, candidates, scale)
    scores: Tensor = _SampledScores.apply(*arguments)  # type: ignore[no-untyped-call]
    return scores


def sampled_scores_plainly(
    users: Tensor, items: Tensor, candidates: Tensor, scale: float = 1.0
) -> Tensor:
    """The same in torch, a slice of the batch at a time."""
    scores = []
    for some_users, some_candidates in zip(
        users.split(_SLICE), candidates.split(_SLICE), strict=True
    ):
        vectors = items[some_candidates.long()]
        scores.append(scale * torch.einsum("bd,bnd->bn", some_users, vectors))
    return torch.cat(scores)


# Rows of a batch whose candidates' vectors are gathered at once: 16 MB of 1000 candidates, d = 64.
_SLICE = 64


def check_shapes(users: Tensor, items: Tensor, candidates: Tensor) -> None:
    """Raise unless every user has a row of candidates, and all are rows of a table as wide."""
    are_as_many = len(users) == len(candidates)
    are_as_wide = users.shape[1] == items.shape[1]
    if not (are_as_many and are_as_wide):
        raise ValueError(
            "`users` (batch, dimension), `items` (n_items, dimension) and `candidates` "
            "(batch, any) do not fit each other, "
            f"got {tuple(users.shape)}, {tuple(items.shape)} and {tuple(candidates.shape)}"
        )
    # The compiled kernels read where they are told; one pass over the rows is little beside the
    # scores.
    if candidates.device.type == "cpu" and candidates.numel() > 0:
        ends = torch.aminmax(candidates)
        lowest = int(ends.min)
        highest = int(ends.max)
        if lowest < 0 or highest >= len(items):
            raise IndexError(
                f"`candidates` must be rows of `items`, 0 to {len(items) - 1}, "
                f"got {lowest} to {highest}"
            )


def runs_compiled(tensor: Tensor) -> bool:
    """Whether the compiled kernels take this tensor: single precision, on the CPU."""
    return IS_COMPILED and tensor.dtype == torch.float32 and tensor.device.type == "cpu"


class _SampledScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, users: Tensor, items: Tensor, candidates: Tensor, scale: float) -> Tensor:
        users = users.detach().contiguous()
        items = items.detach().contiguous()
        scores = torch.empty(candidates.shape, dtype=torch.float32)
        native.sampled_scores(users, items, candidates, scale, scores)
        ctx.save_for_backward(users, items, candidates)
        ctx.scale = scale
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        users, items, candidates = ctx.saved_tensors
        user_gradients, item_gradients = sampled_gradients(
            users, items, candidates, gradients[0].contiguous(), ctx.scale
        )
        return user_gradients, item_gradients, None, None


def sampled_gradients(
    users: Tensor, items: Tensor, candidates: Tensor, gradients: Tensor, scale: float
) -> tuple[Tensor, Tensor]:
    """What a gradient with respect to the scores means for `users` and `items`; compiled only."""
    user_gradients = torch.empty_like(users)
    item_gradients = torch.empty_like(items)
    native.sampled_scores_backward(
        users,
        items,
        candidates,
        gradients,
        scale,
        user_gradients,
        item_gradients,
    )
    return user_gradients, item_gradients
