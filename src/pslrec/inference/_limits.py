"""Lists with at most n items of a category, otherwise in the order of their scores."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from pslrec.kernels import HIDDEN

# How many times as many items are ranked as are wanted, before the limits are applied. Where too
# few of them are left, as many times more are ranked again.
SPARE = 4
NO_CATEGORY = -1


class CategoryLimit(NamedTuple):
    """At most so many items of each category in a list.

    Args:
        categories: number of each item's category; items with -1 are not limited.
        most: how many items of a category.
    """

    categories: np.ndarray
    most: int


def best_within_limits(
    scores: Tensor,
    k: int,
    limits: Sequence[CategoryLimit],
    best: Callable[[Tensor, int], tuple[Tensor, Tensor]],
) -> tuple[Tensor, Tensor]:
    """Values and columns of the best scores of each row that stay within the limits.

    The list is the one that somebody would write who goes down the ranking and leaves out what
    exceeds a limit. Where fewer than `k` are left, values at the end are minus infinity.

    Args:
        scores: one row per user; minus infinity hides an item.
        k: length of the lists.
        limits: all of them hold at once; their categories are those of the columns.
        best: ranks the largest scores of each row.
    """
    n_columns = scores.shape[1]
    values = torch.full((len(scores), k), HIDDEN)
    columns = torch.zeros((len(scores), k), dtype=torch.int64)
    open_rows = torch.arange(len(scores))
    width = min(SPARE * k, n_columns)
    while len(open_rows):
        block = scores
        if len(open_rows) < len(scores):
            block = scores[open_rows]
        ranked_values, ranked_columns = best(block, width)
        still_open = []
        for place, row in enumerate(open_rows.tolist()):
            kept = _kept(ranked_columns[place].numpy(), k, limits)
            values[row, : len(kept)] = ranked_values[place, kept]
            columns[row, : len(kept)] = ranked_columns[place, kept]
            # A ranking that ends in hidden items holds all there is to choose from.
            has_more = width < n_columns and bool(ranked_values[place, -1] != HIDDEN)
            if len(kept) < k and has_more:
                still_open.append(row)
        open_rows = torch.tensor(still_open, dtype=torch.int64)
        width = min(SPARE * width, n_columns)
    return values, columns


def _kept(ranked: np.ndarray, k: int, limits: Sequence[CategoryLimit]) -> list[int]:
    """Places in the ranking of the first `k` items that stay within all limits."""
    categories = [limit.categories[ranked].tolist() for limit in limits]
    counts: list[Counter[int]] = [Counter() for _ in limits]
    kept: list[int] = []
    for place, own in enumerate(zip(*categories, strict=True)):
        if len(kept) == k:
            break
        is_full = False
        for limit, count, category in zip(limits, counts, own, strict=True):
            if category != NO_CATEGORY and count[category] >= limit.most:
                is_full = True
        if is_full:
            continue
        kept.append(place)
        for count, category in zip(counts, own, strict=True):
            count[category] += 1
    return kept
