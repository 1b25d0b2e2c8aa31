"""Rows for new users (or items), predicted from the rows of their neighbours."""

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from pslrec.rows import Rows

# Examples per column of the table: enough to fit the map, and the work does not grow with the data.
KNOWN_PER_COLUMN = 32
# Wide tables get fewer examples, so that the fit needs no more multiplications than this. Up to
# dimension 512 the limit changes nothing.
MOST_WORK = 1.8e10
# What few examples do not tell stays at the mean of the neighbours, which is right for most tables.
RIDGE = 0.01


class StartingRows:
    """Predicts the direction of a row from its neighbours, by a linear map fitted to known rows.

    A user's neighbours are the items of the history. The map gets two means of their directions:
    one weighs all neighbours alike, the other weighs rare neighbours more. Where a row lies
    relative to these means differs between models: after long training it is near the first one,
    after a spectral initialisation it is elsewhere.

    Args:
        neighbours: rows of the other side, shape (n_neighbours, dimension).
        rows: known rows, shape (n_known, dimension).
        lists: the neighbours of each known row.
    """

    def __init__(self, neighbours: Tensor, rows: Tensor, lists: Rows) -> None:
        directions = functional.normalize(neighbours, dim=1)
        degrees = np.bincount(lists.items, minlength=len(neighbours)).clip(min=1)
        rarity = torch.from_numpy(degrees**-0.5).to(directions.dtype).unsqueeze(1)
        self._tables = (directions, directions * rarity)
        self._correction = self._fitted(rows, lists)

    def directions(self, lists: Rows) -> Tensor:
        """Rows of length 1, predicted from their neighbours; zeros where there are none.

        Args:
            lists: the neighbours of each row that is wanted.
        """
        means = self._means(lists)
        dimension = self._tables[0].shape[1]
        correction = means
        for factor in self._correction:
            correction = correction @ factor
        predicted = functional.normalize(means[:, :dimension] + correction, dim=1)
        # Without neighbours, what the map adds for everybody would be the prediction.
        has_neighbours = torch.from_numpy(lists.lengths > 0).unsqueeze(1)
        return predicted * has_neighbours

    def _fitted(self, rows: Tensor, lists: Rows) -> tuple[Tensor, ...]:
        """The correction of the first mean, as matrices to multiply the means by in turn.

        This is the ridge regression of the difference between the rows and the first mean. It has
        two forms with the same solution: one solves a system as large as the number of columns,
        the other one as large as the number of examples. The smaller system is solved, which keeps
        wide tables affordable.
        """
        dimension = rows.shape[1]
        candidates = np.flatnonzero(lists.lengths > 0)
        n_examples = min(most_examples(dimension), len(candidates))
        # Evenly spaced rather than drawn: the same data give the same map without a seed.
        places = np.linspace(0, len(candidates) - 1, num=n_examples).astype(np.int64)
        examples = candidates[places]
        targets = functional.normalize(rows[torch.from_numpy(examples)], dim=1)
        means = self._means(lists.select(examples))
        residuals = targets - means[:, :dimension]
        n_columns = means.shape[1]
        mean_square = float(means.square().sum()) / n_columns
        # The lower bound keeps the system solvable where all means are zero.
        weight = RIDGE * max(mean_square, 1e-6)
        if n_examples < n_columns:
            return means.T, _solved(means @ means.T, weight, residuals)
        return (_solved(means.T @ means, weight, means.T @ residuals),)

    def _means(self, lists: Rows) -> Tensor:
        """Both means of each list side by side, and a last column that is 1 where there are any."""
        plain, by_rarity = self._tables
        has_neighbours = torch.from_numpy(lists.lengths > 0).to(plain.dtype).unsqueeze(1)
        return torch.cat(
            [
                functional.normalize(sums(plain, lists), dim=1),
                functional.normalize(sums(by_rarity, lists), dim=1),
                has_neighbours,
            ],
            dim=1,
        )


def most_examples(dimension: int) -> int:
    """How many known rows the map is fitted to: a number per column, within the limit of work.

    Args:
        dimension: of the table.
    """
    n_columns = 2 * dimension + 1
    by_work = MOST_WORK / n_columns**2
    if by_work < n_columns:
        # The system is then as large as the number of examples, whose square is what counts.
        by_work = math.sqrt(MOST_WORK / n_columns)
    return min(KNOWN_PER_COLUMN * dimension, int(by_work))


def _solved(squares: Tensor, weight: float, right: Tensor) -> Tensor:
    squares.diagonal().add_(weight)
    solution: Tensor = torch.linalg.solve(squares, right)
    return solution


def sums(table: Tensor, lists: Rows) -> Tensor:
    """The sum of the table's rows over each list.

    Args:
        table: one row per item.
        lists: rows of the table to add up.
    """
    items = torch.from_numpy(lists.items).long()
    offsets = torch.from_numpy(lists.offsets)
    return functional.embedding_bag(items, table, offsets, mode="sum", include_last_offset=True)
