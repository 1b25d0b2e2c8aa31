"""People folded in are recommended to about as well as the same people trained in: `reproductions/fold_in.py`."""

import csv
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from pslrec.data import load

REPRODUCTIONS = Path(__file__).resolve().parents[2] / "reproductions"
CELLS = [
    (backbone, loss)
    for backbone in ("mf", "lightgcn", "history")
    for loss in ("psl-relu", "sl", "bpr")
]


@pytest.fixture
def fold_in(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(REPRODUCTIONS))
    specification = importlib.util.spec_from_file_location("fold_in", REPRODUCTIONS / "fold_in.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize(("backbone", "loss"), CELLS)
def test_people_held_out_of_amazon_electronic_lose_at_most_a_tenth(
    fold_in: ModuleType, data_directory: Path, backbone: str, loss: str
) -> None:
    found = fold_in.measure(
        load(data_directory / "iid" / "amazon2014-electronic.zip"), backbone, loss
    )
    assert found["held_out"] >= 1000
    assert found["ratio"] >= 0.9


def test_nobody_of_the_record_lost_more_than_a_tenth() -> None:
    with (REPRODUCTIONS / "fold-in" / "results.csv").open() as file:
        records = list(csv.DictReader(file))
    assert [(record["backbone"], record["loss"]) for record in records] == CELLS
    assert all(
        float(record["ratio"]) >= 0.9 and int(record["held_out"]) >= 1000 for record in records
    )
