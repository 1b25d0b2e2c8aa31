"""Directions of new rows: fitted to the known where there are enough of them, else the middle of the neighbours."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from pslrec.inference._starting_rows import (
    KNOWN_PER_COLUMN,
    MOST_WORK,
    RIDGE,
    StartingRows,
    most_examples,
    sums,
)
from pslrec.rows import Rows


def random_lists(n_lists: int, n_neighbours: int, generator: torch.Generator) -> Rows:
    return Rows.from_lists(
        [torch.randint(n_neighbours, (6,), generator=generator) for _ in range(n_lists)]
    )


def test_rows_of_the_new_lie_to_their_neighbours_as_those_of_the_known_do() -> None:
    generator = torch.Generator().manual_seed(1)
    neighbours = torch.randn(40, 4, generator=generator)
    lists = random_lists(300, 40, generator)
    # As after a spectral start: neighbours have a column that the rows have not, and rows are stretched.
    stretch = torch.diag(torch.tensor([3.0, 1.0, 0.3, 0.0]))
    rows = functional.normalize(
        sums(functional.normalize(neighbours, dim=1), lists) @ stretch, dim=1
    )
    known, new = np.arange(200), np.arange(200, 300)
    started = StartingRows(neighbours, 5 * rows[:200], lists.select(known))
    found = started.directions(lists.select(new))
    middles = functional.normalize(
        sums(functional.normalize(neighbours, dim=1), lists.select(new)), dim=1
    )
    nearness, nearness_of_middles = (
        (each * rows[200:]).sum(dim=1).mean() for each in (found, middles)
    )
    assert nearness > 0.95 > nearness_of_middles
    torch.testing.assert_close(found.norm(dim=1), torch.ones(100))


def test_without_any_known_a_row_starts_in_the_middle_of_its_neighbours() -> None:
    neighbours = torch.tensor([[2.0, 0.0], [0.0, 3.0]])
    started = StartingRows(
        neighbours, torch.ones(2, 2), Rows.from_lists([torch.tensor([], dtype=torch.int64)] * 2)
    )
    found = started.directions(Rows.from_lists([torch.tensor([0, 1]), torch.tensor([1])]))
    torch.testing.assert_close(
        found, torch.tensor([[0.5**0.5, 0.5**0.5], [0.0, 1.0]]), rtol=1e-3, atol=1e-3
    )


def test_who_has_no_neighbours_starts_nowhere() -> None:
    started = StartingRows(
        torch.eye(3), torch.eye(3), Rows.from_lists([torch.tensor([row]) for row in range(3)])
    )
    found = started.directions(
        Rows.from_lists([torch.tensor([], dtype=torch.int64), torch.tensor([1])])
    )
    assert not found[0].any()
    assert found[1].argmax() == 1


def plain_means(neighbours: Tensor, degrees: np.ndarray, history: Tensor) -> Tensor:
    """What goes into the map for one list, in double precision."""
    rows = functional.normalize(neighbours.double(), dim=1)[history.unique()]
    rarity = torch.from_numpy(degrees**-0.5)[history.unique()].unsqueeze(1)
    alike, rare = rows.sum(dim=0), (rows * rarity).sum(dim=0)
    return torch.cat(
        [
            functional.normalize(alike, dim=0),
            functional.normalize(rare, dim=0),
            torch.ones(1).double(),
        ]
    )


def plain_directions(
    neighbours: Tensor, rows: Tensor, known: list[Tensor], new: list[Tensor]
) -> Tensor:
    """The twin: ridge regression towards the middle of the neighbours, by the normal equations in double precision."""
    dimension = neighbours.shape[1]
    counts = [np.bincount(history.unique().numpy(), minlength=len(neighbours)) for history in known]
    degrees = np.sum(counts, axis=0).clip(min=1).astype(np.float64)
    given_means = torch.stack([plain_means(neighbours, degrees, history) for history in known])
    wanted = functional.normalize(rows.double(), dim=1)
    squares = given_means.T @ given_means
    weight = RIDGE * float(squares.diagonal().mean())
    middle = torch.eye(2 * dimension + 1, dimension, dtype=torch.float64)
    identity = torch.eye(len(squares), dtype=torch.float64)
    fitted = torch.linalg.solve(
        squares + weight * identity, given_means.T @ wanted + weight * middle
    )
    new_means = torch.stack([plain_means(neighbours, degrees, history) for history in new])
    return functional.normalize(new_means @ fitted, dim=1)


@pytest.mark.parametrize(
    ("dimension", "n_known"),
    [(1, 1), (3, 60), (4, 9), (4, 8), (40, 5), (40, 81), (40, 80), (60, 400)],
)
def test_either_form_of_the_equations_equals_the_plain_one(dimension: int, n_known: int) -> None:
    """Fewer examples than columns are solved by the size of the examples, more by that of the columns."""
    generator = torch.Generator().manual_seed(dimension + n_known)
    neighbours = torch.randn(90, dimension, generator=generator)
    rows = torch.randn(n_known, dimension, generator=generator)
    known, new = (
        [torch.randint(90, (length,), generator=generator) for length in lengths]
        for lengths in (range(1, n_known + 1), range(1, 20))
    )
    started = StartingRows(neighbours, rows, Rows.from_lists(known))
    expected = plain_directions(neighbours, rows, known, new)
    torch.testing.assert_close(
        started.directions(Rows.from_lists(new)).double(), expected, rtol=0, atol=1e-4
    )


@given(dimension=st.integers(1, 100_000))
def test_the_fit_costs_no_more_than_the_limit_at_any_dimension(dimension: int) -> None:
    """A fit by the square of the columns took over a minute at dimension 4096."""
    n_examples, n_columns = most_examples(dimension), 2 * dimension + 1
    assert n_examples >= 1
    assert n_examples * n_columns * min(n_examples, n_columns) <= MOST_WORK
    assert n_examples <= KNOWN_PER_COLUMN * dimension
    if dimension <= 512:
        assert n_examples == KNOWN_PER_COLUMN * dimension


@pytest.mark.parametrize("dimension", [64, 1024])
def test_a_wide_table_is_fitted_by_as_many_equations_as_there_are_examples(
    monkeypatch: pytest.MonkeyPatch, dimension: int
) -> None:
    sizes: list[int] = []
    solve = torch.linalg.solve

    def watched(left: Tensor, right: Tensor) -> Tensor:
        sizes.append(len(left))
        return solve(left, right)

    monkeypatch.setattr(torch.linalg, "solve", watched)
    generator = torch.Generator().manual_seed(1)
    neighbours, rows = (torch.randn(50, dimension, generator=generator) for _ in range(2))
    StartingRows(neighbours, rows, random_lists(50, 50, generator))
    assert max(sizes, default=0) <= 50
