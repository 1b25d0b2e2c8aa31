"""The page about losses names what the registry holds, and its examples run."""

import doctest
from pathlib import Path

import pytest

from pslrec.losses import LOSSES

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "losses.md"


def table_rows() -> dict[str, list[str]]:
    lines = [
        line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")
    ]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0].strip("`"): row[1:] for row in rows if len(row) == 5}


def test_every_loss_has_a_row():
    assert sorted(table_rows()) == LOSSES.names()


@pytest.mark.parametrize("name", LOSSES.names())
def test_row_shows_reference_default_temperature_and_grid(name):
    _, reference, default, grid = table_rows()[name]
    loss = LOSSES[name]()
    assert reference in loss.reference
    if "temperature" in loss.options():
        assert f"{loss.options()['temperature']:g}" in default
    own = [values for setting, values in loss.search_space.items() if setting.startswith("loss.")]
    ends = {f"{end:g}" for values in own for end in (values[0], values[-1])}
    assert all(end in grid for end in ends)


def test_examples_of_the_page_run():
    results = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert results.attempted > 5
    assert results.failed == 0
