"""Rows for who is new: as the rows of the known lie to those of their neighbours."""

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from pslrec.rows import Rows

# Of the known, so many per column of the table are looked at: enough to fit the map, and the same work for any number of them.
KNOWN_PER_COLUMN = 32
# In wide tables fewer are looked at, so that the fit costs no more multiplications than this. It
# leaves dimension 512 as it is.
MOST_WORK = 1.8e10
# What few examples do not tell is left at the middle of the neighbours, which is right for most tables.
RIDGE = 0.01


class StartingRows:
    """Guesses the direction of a row from the neighbours it has, by a linear map that is fitted to the known.

    A user's neighbours are the items of the history. Two means of their directions go in, one in which all count alike and one
    in which rare neighbours count more. How rows lie to these differs between models: after long training they lie near the
    first, after a spectral start elsewhere.

    Args:
        neighbours: rows of the other side, shape (n_neighbours, dimension).
        rows: of the known, shape (n_known, dimension).
        lists: neighbours of each of the known.
    """

    def __init__(self, neighbours: Tensor, rows: Tensor, lists: Rows) -> None:
        directions = functional.normalize(neighbours, dim=1)
        degrees = np.bincount(lists.items, minlength=len(neighbours)).clip(min=1)
        rarity = torch.from_numpy(degrees**-0.5).to(directions.dtype).unsqueeze(1)
        self._tables = directions, directions * rarity
        self._correction = self._fitted(rows, lists)

    def directions(self, lists: Rows) -> Tensor:
        """Rows of length 1 for who has these neighbours; of zeros for who has none."""
        means = self._means(lists)
        dimension = self._tables[0].shape[1]
        corrected = means
        for factor in self._correction:
            corrected = corrected @ factor
        found = functional.normalize(means[:, :dimension] + corrected, dim=1)
        return found * torch.from_numpy(lists.lengths > 0).unsqueeze(1)

    def _fitted(self, rows: Tensor, lists: Rows) -> tuple[Tensor, ...]:
        """What is added to the first mean, as matrices by which the means are multiplied in turn.

        Ridge regression of what the first mean leaves over. It has two forms with the same
        solution, one of the size of the columns and one of the size of the examples; solving the
        smaller one is what keeps wide tables affordable.
        """
        dimension = rows.shape[1]
        are_known = np.flatnonzero(lists.lengths > 0)
        count = min(most_examples(dimension), len(are_known))
        looked_at = are_known[np.linspace(0, len(are_known) - 1, num=count).astype(np.int64)]
        wanted = functional.normalize(rows[torch.from_numpy(looked_at)], dim=1)
        given = self._means(lists.select(looked_at))
        left_over = wanted - given[:, :dimension]
        n_columns = given.shape[1]
        weight = RIDGE * max(float(given.square().sum()) / n_columns, 1e-6)
        if count < n_columns:
            return given.T, _solved(given @ given.T, weight, left_over)
        return (_solved(given.T @ given, weight, given.T @ left_over),)

    def _means(self, lists: Rows) -> Tensor:
        means = [functional.normalize(sums(table, lists), dim=1) for table in self._tables]
        has_any = torch.from_numpy(lists.lengths > 0).to(means[0].dtype).unsqueeze(1)
        return torch.cat([*means, has_any], dim=1)


def most_examples(dimension: int) -> int:
    """Of the known, how many are looked at: the rule per column, within the limit of work."""
    n_columns = 2 * dimension + 1
    by_work = MOST_WORK / n_columns**2
    if by_work < n_columns:
        # The equations then have the size of the examples, whose square counts.
        by_work = math.sqrt(MOST_WORK / n_columns)
    return min(KNOWN_PER_COLUMN * dimension, int(by_work))


def _solved(squares: Tensor, weight: float, right: Tensor) -> Tensor:
    squares.diagonal().add_(weight)
    solved: Tensor = torch.linalg.solve(squares, right)
    return solved


def sums(table: Tensor, lists: Rows) -> Tensor:
    """The sum of the table's rows over each list."""
    offsets, items = lists.tensors
    return functional.embedding_bag(
        items.long(), table, offsets, mode="sum", include_last_offset=True
    )
