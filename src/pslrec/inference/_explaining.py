"""Which items of a history speak for a recommended item."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional


class Reason(NamedTuple):
    """An item of a history that is near a recommended item.

    Args:
        item: row of the item.
        similarity: cosine of the two items' vectors.
    """

    item: int
    similarity: float


def nearest_of_history(
    vectors: Tensor, items: Tensor, history: Tensor, n_reasons: int
) -> list[list[Reason]]:
    """For each item the items of the history with the largest cosines, largest first.

    Args:
        vectors: of all items.
        items: rows of the items to explain.
        history: rows of the items to choose from; an item is never a reason for itself.
        n_reasons: how many to choose for each item, if the history has as many.
    """
    if not len(items) or not len(history) or not n_reasons:
        return [[] for _ in items]
    directions = functional.normalize(vectors[items], dim=1)
    cosines = directions @ functional.normalize(vectors[history], dim=1).T
    cosines[items[:, None] == history[None, :]] = -torch.inf
    values, places = cosines.topk(min(n_reasons, len(history)), dim=1)
    chosen = history[places]
    reasons = []
    for near_items, near_values in zip(chosen.tolist(), values.tolist(), strict=True):
        found = []
        for item, similarity in zip(near_items, near_values, strict=True):
            # In a short history the item itself may come up last.
            if similarity != -torch.inf:
                found.append(Reason(item, similarity))
        reasons.append(found)
    return reasons
