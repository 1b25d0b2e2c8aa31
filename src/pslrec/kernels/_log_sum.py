"""Losses that are the logarithm of a sum over sampled negatives, value and gradient in one pass.

    L_b = log sum_n sigma(scores[b, n] - scores[b, 0])^exponent,    n = 1, 2, ...

Column 0 is the positive. With sigma = exp and exponent 1/temperature this is the softmax loss, with
the other surrogates PSL.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from pslrec.forms import FusedForm
from pslrec.kernels._native import native
from pslrec.kernels._sampled import (
    check_shapes,
    runs_compiled,
    sampled_gradients,
    sampled_scores_plainly,
)

SURROGATES = ("exp", "tanh", "atan", "relu", "softplus")
FLOOR = 1e-7  # an activation never counts as less, as in the losses


def sampled_log_sum(
    users: Tensor,
    items: Tensor,
    candidates: Tensor,
    *,
    surrogate: str,
    exponent: float,
    scale: float,
) -> Tensor:
    """The loss of each row of a batch of sampled candidates, shape (batch,).

    Differentiable in `users` and `items`. A row with a score that is NaN or infinite gives NaN.

    Args:
        users: one vector per row, shape (batch, dimension).
        items: the whole table, shape (n_items, dimension).
        candidates: the positive in column 0, its negatives in the others, int32.
        surrogate: one of `SURROGATES`.
        exponent: 1 / temperature.
        scale: factor of the scores.
    """
    if candidates.ndim != 2 or not candidates.shape[1]:
        raise ValueError(
            f"`candidates` must have the positives in column 0, got shape {tuple(candidates.shape)}"
        )
    if not runs_compiled(users) or surrogate not in SURROGATES:
        scores = sampled_scores_plainly(users, items, candidates, scale)
        return log_sum_plainly(scores, surrogate=surrogate, exponent=exponent)
    check_shapes(users, items, candidates)
    values: Tensor = _SampledLogSum.apply(
        users, items, candidates, SURROGATES.index(surrogate), exponent, scale
    )  # type: ignore[no-untyped-call]
    return values


def log_sum_plainly(scores: Tensor, *, surrogate: str, exponent: float) -> Tensor:
    """The same in torch, from the scores: the positive's in column 0, its negatives' in the others.

    >>> scores = torch.tensor([[0.5, 0.0, 0.5]])
    >>> log_sum_plainly(scores, surrogate="relu", exponent=2.0)  # log(0.5² + 1²)
    tensor([0.2231])
    """
    differences = scores[:, 1:] - scores[:, :1]
    logarithms = _LOGARITHMS[surrogate](differences)
    return torch.logsumexp(exponent * logarithms, dim=1)


# Written here again, as the kernels must not know the losses that they are checked against.
_LOGARITHMS: dict[str, Callable[[Tensor], Tensor]] = {
    "exp": lambda difference: difference,
    "tanh": lambda difference: math.log(2.0) + functional.logsigmoid(2.0 * difference),
    "atan": lambda difference: torch.log((torch.atan(difference) + 1.0).clamp(min=FLOOR)),
    "relu": lambda difference: torch.log((difference + 1.0).clamp(min=FLOOR)),
    "softplus": lambda difference: -functional.logsigmoid(-difference),
}


def takes_sampled(vectors: Tensor, form: FusedForm) -> bool:
    """Whether `sampled_log_sum` computes this form, fused, for these vectors."""
    is_known = form.kind == "log-sum" and form.surrogate in SURROGATES
    return is_known and runs_compiled(vectors)


class _SampledLogSum(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        users: Tensor,
        items: Tensor,
        candidates: Tensor,
        surrogate: int,
        exponent: float,
        scale: float,
    ) -> Tensor:
        users = users.detach().contiguous()
        items = items.detach().contiguous()
        scores = torch.empty(candidates.shape, dtype=torch.float32)
        values = torch.empty(len(candidates), dtype=torch.float32)
        native.sampled_scores(users, items, candidates, scale, scores)
        native.log_sum_rows(surrogate, exponent, scores, values)
        # `scores` has become the gradient of each row's value.
        ctx.save_for_backward(users, items, candidates, scores)
        ctx.scale = scale
        return values

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None, None, None]:
        users, items, candidates, slopes = ctx.saved_tensors
        # In place: torch refuses to walk through the graph a second time, rather than use what has
        # been changed.
        slopes = slopes.mul_(gradients[0].unsqueeze(1))
        user_gradients, item_gradients = sampled_gradients(
            users, items, candidates, slopes, ctx.scale
        )
        return user_gradients, item_gradients, None, None, None, None
