"""Directions of new rows: fitted to the known where there are enough of them, else the middle of the neighbours."""

import numpy as np
import torch
from torch.nn import functional

from pslrec.evaluation.task import RowLists
from pslrec.inference.ranking import lists_of, selected_lists
from pslrec.inference.starting_rows import StartingRows, sums


def random_lists(n_lists: int, n_neighbours: int, generator: torch.Generator) -> RowLists:
    return lists_of([torch.randint(n_neighbours, (6,), generator=generator) for _ in range(n_lists)])


def test_rows_of_the_new_lie_to_their_neighbours_as_those_of_the_known_do() -> None:
    generator = torch.Generator().manual_seed(1)
    neighbours = torch.randn(40, 4, generator=generator)
    lists = random_lists(300, 40, generator)
    # As after a spectral start: neighbours have a column that the rows have not, and rows are stretched.
    stretch = torch.diag(torch.tensor([3.0, 1.0, 0.3, 0.0]))
    rows = functional.normalize(sums(functional.normalize(neighbours, dim=1), lists) @ stretch, dim=1)
    known, new = np.arange(200), np.arange(200, 300)
    started = StartingRows(neighbours, 5 * rows[:200], selected_lists(lists, known))
    found = started.directions(selected_lists(lists, new))
    middles = functional.normalize(sums(functional.normalize(neighbours, dim=1), selected_lists(lists, new)), dim=1)
    nearness, nearness_of_middles = ((each * rows[200:]).sum(dim=1).mean() for each in (found, middles))
    assert nearness > 0.95 > nearness_of_middles
    torch.testing.assert_close(found.norm(dim=1), torch.ones(100))


def test_without_any_known_a_row_starts_in_the_middle_of_its_neighbours() -> None:
    neighbours = torch.tensor([[2.0, 0.0], [0.0, 3.0]])
    started = StartingRows(neighbours, torch.ones(2, 2), lists_of([torch.tensor([], dtype=torch.int64)] * 2))
    found = started.directions(lists_of([torch.tensor([0, 1]), torch.tensor([1])]))
    torch.testing.assert_close(found, torch.tensor([[0.5**0.5, 0.5**0.5], [0.0, 1.0]]), rtol=1e-3, atol=1e-3)


def test_who_has_no_neighbours_starts_nowhere() -> None:
    started = StartingRows(torch.eye(3), torch.eye(3), lists_of([torch.tensor([row]) for row in range(3)]))
    found = started.directions(lists_of([torch.tensor([], dtype=torch.int64), torch.tensor([1])]))
    assert not found[0].any()
    assert found[1].argmax() == 1
