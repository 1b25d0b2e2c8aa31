"""The losses that are the logarithm of a sum over negatives, value and gradient in one pass over the scores.

    L_b = log sum_n sigma(scores[b, n] - scores[b, 0])^exponent,    n = 1, 2, ...

Column 0 is the positive. With sigma = exp and exponent 1/temperature this is the softmax loss, with the other surrogates PSL.
"""

from typing import Any

import torch
from torch import Tensor

from pslrec.kernels.native import native
from pslrec.kernels.sampled import runs_compiled, sampled_gradients

SURROGATES = ("exp", "tanh", "atan", "relu", "softplus")


def sampled_log_sum(
    users: Tensor, items: Tensor, candidates: Tensor, *, surrogate: str, exponent: float, scale: float
) -> Tensor:
    """The loss of each row of a batch of sampled candidates, shape (batch,); see `sampled_scores` for the arguments.

    Args:
        users: one vector per row, shape (batch, dimension), float32.
        items: the whole table, shape (n_items, dimension).
        candidates: the positive in column 0, its negatives in the others, int32.
        surrogate: one of `SURROGATES`.
        exponent: 1 / temperature.
        scale: factor of the scores.
    """
    values: Tensor = _SampledLogSum.apply(users, items, candidates, SURROGATES.index(surrogate), exponent, scale)  # type: ignore[no-untyped-call]
    return values


def takes(tensor: Tensor, surrogate: str) -> bool:
    """Whether the fused operation is there for these vectors and this surrogate."""
    return runs_compiled(tensor) and surrogate in SURROGATES


class _SampledLogSum(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, users: Tensor, items: Tensor, candidates: Tensor, surrogate: int, exponent: float, scale: float
    ) -> Tensor:
        users, items = users.detach().contiguous(), items.detach().contiguous()
        scores, values = torch.empty(candidates.shape), torch.empty(len(candidates))
        native.sampled_scores(users, items, candidates, scale, scores)
        native.log_sum_rows(surrogate, exponent, scores, values)
        # `scores` has become the gradient of each row's value.
        ctx.save_for_backward(users, items, candidates, scores)
        ctx.scale = scale
        return values

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None, None, None]:
        users, items, candidates, slopes = ctx.saved_tensors
        slopes = slopes.mul_(gradients[0].unsqueeze(1))
        user_gradients, item_gradients = sampled_gradients(users, items, candidates, slopes, ctx.scale)
        return user_gradients, item_gradients, None, None, None, None
