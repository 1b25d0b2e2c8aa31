"""Scores of a batch of users for sampled candidates, without a vector per candidate.

The plain way gathers a (batch, candidates, dimension) block; here a score is a dot product of two rows where they lie, and
the gradient goes straight to the rows it belongs to.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from pslrec.kernels._native import IS_COMPILED, native


def sampled_scores(users: Tensor, items: Tensor, candidates: Tensor, scale: float = 1.0) -> Tensor:
    """`scale * <users[b], items[candidates[b, n]]>`, shape (batch, candidates); differentiable in `users` and `items`.

    Equal to `scale * torch.einsum("bd,bnd->bn", users, items[candidates])`.

    Args:
        users: one vector per row of the batch, shape (batch, dimension).
        items: the whole table of item vectors, shape (n_items, dimension).
        candidates: item rows, shape (batch, candidates), int32, contiguous; all of them must be rows of `items`.
        scale: factor of all scores; 1/2 makes half cosines of unit vectors.

    >>> sampled_scores(torch.eye(2), torch.tensor([[2.0, 3.0]]), torch.zeros(2, 1, dtype=torch.int32))
    tensor([[2.],
            [3.]])
    """
    check_shapes(users, items, candidates)
    if runs_compiled(users):
        scores: Tensor = _SampledScores.apply(users, items, candidates, scale)  # type: ignore[no-untyped-call]
        return scores
    return sampled_scores_plainly(users, items, candidates, scale)


def sampled_scores_plainly(
    users: Tensor, items: Tensor, candidates: Tensor, scale: float = 1.0
) -> Tensor:
    """The same in torch, a slice of the batch at a time."""
    pieces = zip(users.split(_SLICE), candidates.split(_SLICE), strict=True)
    return torch.cat(
        [
            scale * torch.einsum("bd,bnd->bn", user, items[candidate.long()])
            for user, candidate in pieces
        ]
    )


_SLICE = 64


def check_shapes(users: Tensor, items: Tensor, candidates: Tensor) -> None:
    """Raise unless there is a row of candidates for every user, all of them rows of `items`, which are as wide as `users`."""
    if len(users) != len(candidates) or users.shape[1] != items.shape[1]:
        raise ValueError(
            "`users` (batch, dimension), `items` (n_items, dimension) and `candidates` (batch, any) do not fit each other, "
            f"got {tuple(users.shape)}, {tuple(items.shape)} and {tuple(candidates.shape)}"
        )
    # The compiled kernels read where they are told; one pass over the rows is little beside the scores.
    if candidates.device.type == "cpu" and candidates.numel() > 0:
        lowest, highest = (int(end) for end in torch.aminmax(candidates))
        if lowest < 0 or highest >= len(items):
            raise IndexError(
                f"`candidates` must be rows of `items`, 0 to {len(items) - 1}, got {lowest} to {highest}"
            )


def runs_compiled(tensor: Tensor) -> bool:
    """Whether the compiled kernels take this tensor: single precision, on the CPU."""
    return IS_COMPILED and tensor.dtype == torch.float32 and tensor.device.type == "cpu"


class _SampledScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, users: Tensor, items: Tensor, candidates: Tensor, scale: float) -> Tensor:
        users, items = users.detach().contiguous(), items.detach().contiguous()
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
    user_gradients, item_gradients = torch.empty_like(users), torch.empty_like(items)
    native.sampled_scores_backward(
        users, items, candidates, gradients, scale, user_gradients, item_gradients
    )
    return user_gradients, item_gradients
