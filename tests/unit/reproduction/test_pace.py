"""How long the cells that wait will take, by those that are done."""

from pathlib import Path

import pytest
from pslrec.reproduction.execution import Pace, Task
from pslrec.reproduction.grid import Choice, Grid

DIRECTORY = Path(__file__).resolve().parents[3] / "reproductions" / "psl-neurips-2024"


def test_cells_that_wait_are_expected_to_take_as_long_as_those_that_are_done() -> None:
    cells = Grid(DIRECTORY).cells("iid", Choice(["health"], ["mf"]))[:3]
    first, second, third = tasks = [
        Task(cell, seconds) for cell, seconds in zip(cells, (100, 200, 400), strict=True)
    ]
    pace = Pace()
    first.state = "running"
    pace.correct(tasks, expected=100, taken=20)
    assert [task.seconds for task in tasks] == pytest.approx([100, 40, 80])
    first.state, second.state = "done", "running"
    # A second one that took twice as long as it was then expected to: both together took 100 of 300.
    pace.correct(tasks, expected=second.seconds, taken=80)
    assert [task.seconds for task in tasks] == pytest.approx([100, 40, 400 / 3])
    assert third.seconds_left == third.seconds
