"""Ranked lists: one matrix product for a block of users, then the best items of each row."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from pslrec.artifacts import ArtifactError, Walks
from pslrec.errors import ConfigError, DataError
from pslrec.inference._limits import best_within_limits
from pslrec.inference._rules import NO_RULES, RowRules
from pslrec.kernels import HIDDEN, rows_at_once, times_transposed, top_k
from pslrec.rows import Rows

DEFAULT_MEMORY_BUDGET = 256 * 2**20
NOTHING = -1
BYTES_PER_SCORE = 4


class TopItems(NamedTuple):
    """Ranked lists, best first.

    Args:
        items: rows of the items (of users, where similar users were asked for), shape (lists, k),
            int64; -1 where a list is shorter.
        scores: their scores, same shape, float32; minus infinity where a list is shorter.
    """

    items: Tensor
    scores: Tensor


class WalksFrom(NamedTuple):
    """Walks that are added to the scores of some users.

    Args:
        walks: over the columns of the item table.
        histories: one list per user, from which the walks start.
    """

    walks: Walks
    histories: Rows


def top_items(
    users: Tensor,
    items: Tensor,
    k: int,
    *,
    hidden: Rows | None = None,
    candidates: Tensor | None = None,
    rules: RowRules = NO_RULES,
    walks: WalksFrom | None = None,
    parents: Tensor | None = None,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> TopItems:
    """The items with the largest scores for each user; ties go to the lower row.

    A score is an inner product, and what walks add to it.

    Args:
        users: vectors; each gets a list.
        items: vectors of the catalogue.
        k: length of the lists, which are shorter where there are fewer items to choose from.
        hidden: items to leave out, one list per row of `users`.
        candidates: rows of the items to choose from; all by default.
        rules: what else limits the choice.
        walks: what is added to the inner products, if anything is.
        parents: the row whose vector each item has, its own or a lower one; all have their own by
            default.
        memory_budget: bytes for scores at most; a tight budget means fewer users at a time.

    >>> top_items(torch.eye(2), torch.tensor([[0.5, 0.0], [1.0, 2.0]]), 1).items.tolist()
    [[1], [1]]
    """
    # Python counts true as a whole number.
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise ConfigError(f"`k` must be a whole number of at least 1, got {k!r}")
    chosen = None
    chosen_columns = None
    columns_of_items = None
    table = items
    if candidates is None:
        candidates = rules.few_allowed(len(users))
    if candidates is not None:
        # In ascending order, so that ties still go to the lower row.
        chosen = checked_rows(candidates, len(items), "items").unique()
        chosen_columns = chosen.numpy()
        columns_of_items = _columns_of_items(chosen, len(items))
        table = items[chosen]
        rules = rules.among(chosen)
    copies = _copies(parents, chosen)
    width = min(k, len(table))
    top = TopItems(
        torch.full((len(users), width), NOTHING),
        torch.full((len(users), width), HIDDEN, dtype=torch.float32),
    )
    if not width:
        return top
    affordable = max(memory_budget // (len(table) * BYTES_PER_SCORE), 1)
    users_at_once = min(affordable, rows_at_once(len(table)))
    # One buffer for all blocks, so that the memory of a large matrix is mapped only once.
    buffer = torch.empty((min(users_at_once, len(users)), len(table)))
    for start in range(0, len(users), users_at_once):
        block = users[start : start + users_at_once]
        end = start + len(block)
        scores = times_transposed(block, table, out=buffer[: len(block)])
        copies.write(scores)
        if walks is not None:
            started = walks.histories.select(np.arange(start, end))
            walks.walks.add_to(scores, started, chosen=chosen_columns)
        if hidden is not None:
            _hide(scores, hidden, np.arange(start, end), columns_of_items)
        if rules.hidden is not None:
            _hide(scores, rules.hidden, np.arange(start, end), columns_of_items)
        values, columns = _best_allowed(scores, width, rules)
        top.scores[start:end] = values
        if chosen is None:
            top.items[start:end] = columns
        else:
            top.items[start:end] = chosen[columns]
    # Where too few items are left, hidden ones fill the list up.
    top.items[top.scores == HIDDEN] = NOTHING
    return top


class _Copies(NamedTuple):
    """Columns of scores that are equal to others."""

    children: Tensor
    parents: Tensor

    def write(self, scores: Tensor) -> None:
        """Products may round equal columns differently, and a new item must not pass its parent."""
        if len(self.children):
            scores[:, self.children] = scores[:, self.parents]


def _copies(parents: Tensor | None, chosen: Tensor | None) -> _Copies:
    if parents is None:
        nothing = torch.zeros(0, dtype=torch.int64)
        return _Copies(nothing, nothing)
    children = torch.nonzero(parents != torch.arange(len(parents))).flatten()
    if chosen is None:
        return _Copies(children, parents[children])
    columns = torch.from_numpy(_columns_of_items(chosen, len(parents)))
    places = _Copies(columns[children], columns[parents[children]])
    are_both_here = (places.children != NOTHING) & (places.parents != NOTHING)
    return _Copies(places.children[are_both_here], places.parents[are_both_here])


def _best_allowed(scores: Tensor, width: int, rules: RowRules) -> tuple[Tensor, Tensor]:
    if rules.forbidden is not None:
        scores.masked_fill_(rules.forbidden, HIDDEN)
    if rules.limits:
        return best_within_limits(scores, width, rules.limits, _best)
    return _best(scores, width)


def _best(scores: Tensor, width: int) -> tuple[Tensor, Tensor]:
    try:
        return top_k(scores, width)
    except ValueError as error:
        # Finite vectors may have a product that is NaN: one infinite term minus another.
        raise ArtifactError(
            "the vectors of the model must have scores that are numbers, got NaN: they are too "
            "long for single precision; train again with a smaller learning rate or weight decay"
        ) from error


def _columns_of_items(chosen: Tensor, n_items: int) -> np.ndarray:
    columns = np.full(n_items, NOTHING)
    columns[chosen.numpy()] = np.arange(len(chosen))
    return columns


def _hide(
    scores: Tensor, hidden: Rows, lists: np.ndarray, columns_of_items: np.ndarray | None
) -> None:
    rows, columns = hidden.positions(lists)
    if columns_of_items is not None:
        columns = columns_of_items[columns]
        is_candidate = columns != NOTHING
        rows = rows[is_candidate]
        columns = columns[is_candidate]
    scores[torch.from_numpy(rows), torch.from_numpy(columns)] = HIDDEN


def checked_rows(rows: Tensor, n_rows: int, name: str) -> Tensor:
    """The rows as int64, after checking that a table has them.

    Args:
        rows: a list of row numbers.
        n_rows: number of rows that the table has.
        name: of the argument, for messages.
    """
    rows = torch.as_tensor(rows)
    if rows.ndim != 1 or rows.is_floating_point() or rows.dtype == torch.bool:
        raise DataError(
            f"`{name}` must be a list of row numbers, got {rows.dtype} of shape {tuple(rows.shape)}"
        )
    rows = rows.long()
    if not len(rows):
        return rows
    lowest = int(rows.min())
    highest = int(rows.max())
    if lowest < 0 or highest >= n_rows:
        raise DataError(f"`{name}` must be row numbers below {n_rows}, got {lowest} to {highest}")
    return rows
