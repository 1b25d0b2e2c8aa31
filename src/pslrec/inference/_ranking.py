"""Ranked lists: one matrix product for a block of users, then the best items of each row."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from pslrec.errors import ConfigError, DataError
from pslrec.inference._run_files import ModelError
from pslrec.kernels import HIDDEN, top_k
from pslrec.rows import Rows

DEFAULT_MEMORY_BUDGET = 256 * 2**20
NOTHING = -1


class TopItems(NamedTuple):
    """Ranked lists, best first.

    Args:
        items: rows of the items (or users, where users are alike), shape (lists, k), int64; -1 where a list is shorter.
        scores: their scores, same shape, float32; minus infinity where a list is shorter.
    """

    items: Tensor
    scores: Tensor


def top_items(
    users: Tensor,
    items: Tensor,
    k: int,
    *,
    hidden: Rows | None = None,
    candidates: Tensor | None = None,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> TopItems:
    """The items with the largest inner products with each user, equal ones by lower row.

    Args:
        users: vectors, one list is made for each.
        items: vectors of the catalogue.
        k: length of the lists; never longer than there are items to choose from.
        hidden: items that a list must not hold, one list per row of `users`.
        candidates: rows of the items to choose from; all if not given.
        memory_budget: bytes for scores; less means fewer users at a time.

    >>> top_items(torch.eye(2), torch.tensor([[0.5, 0.0], [1.0, 2.0]]), 1).items.tolist()
    [[1], [1]]
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise ConfigError(f"`k` must be a whole number of at least 1, got {k!r}")
    chosen = None if candidates is None else checked_rows(candidates, len(items), "items").unique()
    table = items if chosen is None else items[chosen]
    width = min(k, len(table))
    found = TopItems(
        torch.full((len(users), width), NOTHING),
        torch.full((len(users), width), HIDDEN, dtype=torch.float32),
    )
    if not width:
        return found
    places = None if chosen is None else _places(chosen, len(items))
    rows = max(memory_budget // (len(table) * 4), 1)
    buffer = torch.empty((min(rows, len(users)), len(table)))
    for start in range(0, len(users), rows):
        block = users[start : start + rows]
        scores = torch.mm(block, table.T, out=buffer[: len(block)])
        if hidden is not None:
            _hide(scores, hidden, np.arange(start, start + len(block)), places)
        values, columns = _best(scores, width)
        found.scores[start : start + len(block)] = values
        found.items[start : start + len(block)] = columns if chosen is None else chosen[columns]
    found.items[found.scores == HIDDEN] = NOTHING
    return found


def _best(scores: Tensor, width: int) -> tuple[Tensor, Tensor]:
    try:
        return top_k(scores, width)
    except ValueError as error:
        # Finite vectors may have products that are not: an infinite one less another.
        raise ModelError(
            "the vectors of the model must have scores that are numbers, got NaN: they are too long "
            "for single precision; train again with a smaller learning rate or weight decay"
        ) from error


def _places(chosen: Tensor, n_items: int) -> np.ndarray:
    places = np.full(n_items, NOTHING)
    places[chosen.numpy()] = np.arange(len(chosen))
    return places


def _hide(scores: Tensor, hidden: Rows, lists: np.ndarray, places: np.ndarray | None) -> None:
    rows, columns = hidden.positions(lists)
    if places is not None:
        columns = places[columns]
        rows, columns = rows[columns >= 0], columns[columns >= 0]
    scores[torch.from_numpy(rows), torch.from_numpy(columns)] = HIDDEN


def checked_rows(rows: Tensor, n_rows: int, name: str) -> Tensor:
    """The rows as int64, if they are row numbers of a table."""
    rows = torch.as_tensor(rows)
    if rows.ndim != 1 or rows.is_floating_point() or rows.dtype == torch.bool:
        raise DataError(
            f"`{name}` must be a list of row numbers, got {rows.dtype} of shape {tuple(rows.shape)}"
        )
    rows = rows.long()
    if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < n_rows:
        raise DataError(
            f"`{name}` must be row numbers below {n_rows}, got {int(rows.min())} to {int(rows.max())}"
        )
    return rows
