"""Lists with at most n items of a category, otherwise in the order of their scores."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from pslrec.kernels import HIDDEN

# How many times as many items are ranked as are wanted, before the limits are applied. Where too
# few of them are left, as many times more are ranked again.
SPARE = 3
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
    values = np.full((len(scores), k), HIDDEN, dtype=np.float32)
    columns = np.zeros((len(scores), k), dtype=np.int64)
    open_rows = np.arange(len(scores))
    width = min(SPARE * k, n_columns)
    while len(open_rows):
        block = scores
        if len(open_rows) < len(scores):
            block = scores[torch.from_numpy(open_rows)]
        ranked_values, ranked_columns = (found.numpy() for found in best(block, width))
        places, n_kept = _kept(ranked_columns, k, limits)
        own = np.arange(len(places))[:, None]
        chosen = ranked_values[own, places]
        # Places beyond the end of a list repeat the first one.
        chosen[np.arange(k) >= n_kept[:, None]] = HIDDEN
        values[open_rows] = chosen
        columns[open_rows] = ranked_columns[own, places]
        # A ranking that ends in hidden items holds all there is to choose from.
        has_more = ranked_values[:, -1] != HIDDEN
        if width == n_columns:
            has_more[:] = False
        open_rows = open_rows[(n_kept < k) & has_more]
        width = min(SPARE * width, n_columns)
    return torch.from_numpy(values), torch.from_numpy(columns)


def _kept(
    ranked: np.ndarray, k: int, limits: Sequence[CategoryLimit]
) -> tuple[np.ndarray, np.ndarray]:
    """Places in each ranking of the first `k` items that stay within all limits, and how many."""
    places = np.zeros((len(ranked), k), dtype=np.int64)
    n_kept = np.zeros(len(ranked), dtype=np.int64)
    # As lists of Python's numbers, which a loop reads many times faster than arrays.
    categories = [limit.categories[ranked].tolist() for limit in limits]
    most = [limit.most for limit in limits]
    for row, own in enumerate(zip(*categories, strict=True)):
        if len(own) == 1:
            kept = _kept_by_one_limit(own[0], k, most[0])
        else:
            kept = _kept_by_all_limits(list(zip(*own, strict=True)), k, most)
        n_kept[row] = len(kept)
        places[row, : len(kept)] = kept
    return places, n_kept


def _kept_by_one_limit(ranking: list[int], k: int, most: int) -> list[int]:
    """The same for one ranking and one limit, given as the categories of its items.

    A loop of its own, since it takes a fourth of the time of the general one.
    """
    counts: dict[int, int] = {}
    kept: list[int] = []
    for place, category in enumerate(ranking):
        count = counts.get(category, 0)
        if count == most:
            continue
        if category != NO_CATEGORY:
            counts[category] = count + 1
        kept.append(place)
        if len(kept) == k:
            break
    return kept


def _kept_by_all_limits(ranking: list[tuple[int, ...]], k: int, most: Sequence[int]) -> list[int]:
    """The same for one ranking, given as the categories of its items, one for each limit."""
    counts: list[dict[int, int]] = [{} for _ in most]
    kept: list[int] = []
    for place, categories in enumerate(ranking):
        is_full = False
        for count, category, limit in zip(counts, categories, most, strict=True):
            if category != NO_CATEGORY and count.get(category, 0) >= limit:
                is_full = True
        if is_full:
            continue
        kept.append(place)
        if len(kept) == k:
            break
        for count, category in zip(counts, categories, strict=True):
            count[category] = count.get(category, 0) + 1
    return kept
