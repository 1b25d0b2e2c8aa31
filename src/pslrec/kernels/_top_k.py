"""The best items of each row of scores, in an order that does not depend on the machine."""

from collections.abc import Callable

import torch

from pslrec.kernels._native import native

HIDDEN = -torch.inf
NOT_NUMBERS = (
    "`scores` hold values that are not numbers (NaN); the model that made them has diverged"
)
# Scores are ranked as soon as they are computed, and should still be in the cache then. But a product
# of fewer rows than these loses more than the cache brings.
_BYTES_IN_CACHE = 12 * 2**20
_FEWEST_ROWS = 256
# Rows with equal scores at the edge are copied in small lots, so that they need next to no memory.
_TIED_ROWS = 16


# A build from before this kernel has none.
_compiled: Callable[..., bool] | None = getattr(native, "top_k", None)


def rows_at_once(n_columns: int) -> int:
    """How many rows of scores are best computed and ranked together.

    Args:
        n_columns: scores of a row.

    >>> rows_at_once(8_360), rows_at_once(40_988)
    (376, 256)
    """
    bytes_per_row = 4 * max(n_columns, 1)
    return max(_BYTES_IN_CACHE // bytes_per_row, _FEWEST_ROWS)


def top_k(scores: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Values and columns of the `k` largest scores of each row, best first.

    Of equal scores the one in the lower column comes first.

    Args:
        scores: one row per user; minus infinity hides an item, which then comes last. NaN raises.
        k: how many; rows narrower than that are returned whole.

    >>> top_k(torch.tensor([[0.1, 0.7, 0.1, 0.7]]), 3)
    (tensor([[0.7000, 0.7000, 0.1000]]), tensor([[1, 3, 0]]))
    """
    if scores.ndim != 2 or k < 1:
        raise ValueError(
            "`scores` must have two dimensions and `k` be at least 1, "
            f"got shape {tuple(scores.shape)} and {k}"
        )
    k = min(k, scores.shape[1])
    if k == 0:
        # No columns: every list is empty.
        nothing = scores.new_empty((len(scores), 0))
        return nothing, nothing.to(torch.int64)
    is_plain = scores.device.type != "cpu" or scores.dtype != torch.float32
    if _compiled is None or is_plain:
        values, columns = top_k_plainly(scores, k)
        are_numbers = not bool(scores.isnan().any())
    else:
        values = torch.empty((len(scores), k))
        columns = torch.empty((len(scores), k), dtype=torch.int64)
        given = scores.detach().contiguous()
        are_numbers = _compiled(given.numpy(), values.numpy(), columns.numpy())
    if not are_numbers:
        raise ValueError(NOT_NUMBERS)
    return values, columns


def top_k_plainly(scores: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The same in plain torch, for scores that are numbers."""
    n_columns = scores.shape[1]
    if k >= n_columns:
        values, columns = scores.sort(dim=1, descending=True, stable=True)
        return values, columns
    values, columns = scores.topk(k + 1, dim=1)
    # `topk` keeps arbitrary ones of several equal scores at the edge, so rows with such an edge are
    # redone.
    is_tied = values[:, k - 1] == values[:, k]
    tied = is_tied.nonzero().flatten()
    values = values[:, :k]
    columns = columns[:, :k]
    for rows in torch.split(tied, _TIED_ROWS):
        values[rows], columns[rows] = _lowest_of_tied(scores[rows], values[rows])
    return _order(values, columns)


def _lowest_of_tied(
    scores: torch.Tensor, values: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    k = values.shape[1]
    edge = values[:, -1:]
    n_above = (values > edge).sum(dim=1, keepdim=True)
    is_equal = scores == edge
    n_equal_so_far = is_equal.cumsum(dim=1, dtype=torch.int32)
    is_among_lowest = is_equal & (n_equal_so_far <= k - n_above)
    chosen = (scores > edge) | is_among_lowest
    columns = chosen.nonzero()[:, 1].reshape(-1, k)
    return scores.gather(1, columns), columns


def _order(values: torch.Tensor, columns: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    # By column first: the stable sort by value then keeps equal scores in the order of columns.
    columns, by_column = columns.sort(dim=1)
    values, by_value = values.gather(1, by_column).sort(dim=1, descending=True, stable=True)
    return values, columns.gather(1, by_value)
