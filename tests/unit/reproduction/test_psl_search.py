"""The search for settings of the inside form: chosen on validation, the worse trials left early."""

import importlib
import shutil
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

import pytest

from pslrec.data import write_dataset
from pslrec.data._synthetic import TasteModel, planted_tastes
from pslrec.data.splits import split_by_name
from pslrec.reproduction import Cell, Choice, Grid, Places, Results

PAPER = Path(__file__).resolve().parents[3] / "reproductions" / "psl-neurips-2024"
HEALTH = Choice(["health"], ["mf"], ["psl-relu"], modes=["catalog"])


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(PAPER / "scripts"))
    yield importlib.import_module("search_inside")
    sys.modules.pop("search_inside", None)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """The paper with data that stand in for Amazon-Health, and three epochs."""
    folder = tmp_path / "paper"
    shutil.copytree(PAPER / "published", folder / "published")
    text = (PAPER / "paper.toml").read_text()
    text = text.replace('"training.epochs" = 200', '"training.epochs" = 3')
    text = text.replace('"training.validate_every" = 5', '"training.validate_every" = 1')
    text = text.replace('"backbone.dimension" = 64', '"backbone.dimension" = 8')
    (folder / "paper.toml").write_text(text)
    (folder / "settings").mkdir()
    (folder / "settings" / "inside.csv").write_text("dataset,backbone,loss,mode,protocol\n")
    interactions = planted_tastes(n_users=80, n_items=60, model=TasteModel(n_topics=4)).interactions
    write_dataset(split_by_name(interactions, "iid"), tmp_path / "split")
    with zipfile.ZipFile(tmp_path / "amazon2014-health.zip", "w") as archive:
        for file in (tmp_path / "split").iterdir():
            archive.write(file, file.name)
    return Places(folder, tmp_path / "runs", tmp_path)


def test_the_best_on_validation_becomes_a_cell_and_nothing_is_trained_again(
    script: ModuleType, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "TEMPERATURES", (0.1, 0.5, 1.0))
    monkeypatch.setattr(script, "ROUNDS", ((1, 2), (2, 1)))
    results = Results(places.folder / "results")
    (best,) = script.search(places, HEALTH, results, Results(places.folder / "settings"))
    tried = results.rows("forms-search")
    assert len(tried) == 6
    # Three of each learning rate, of which two and then one went on.
    epochs = sorted(int(row["epochs"]) for row in tried if row["learning_rate"] == "0.1")
    assert epochs == [1, 2, 3]
    finished = [row for row in tried if row["outcome"] == "finished"]
    highest = max(finished, key=lambda row: float(row["validation_ndcg20"]))
    assert (len(finished), str(best.settings["loss.temperature"])) == (2, highest["temperature"])
    inside = Choice(["health"], ["mf"], where={"form": ["inside"]}, modes=["catalog"])
    (cell,) = Grid(places.folder).cells("forms", inside)
    assert (cell.loss, cell.settings_from) == ("PSL-relu", "inside: PSL-relu")
    assert cell.settings["loss.temperature"] == best.settings["loss.temperature"]

    shutil.rmtree(places.runs)
    script.search(places, HEALTH, results, Results(places.folder / "settings"))
    assert not places.runs.exists()
    assert results.rows("forms-search") == tried


def test_a_search_in_which_all_diverges_says_so(
    script: ModuleType,
    places: Places,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(script, "TEMPERATURES", (0.005,))
    choice = Choice(["health"], ["mf"], ["psl-atan"], modes=["catalog"])
    results = Results(places.folder / "results")
    assert script.search(places, choice, results, Results(places.folder / "settings")) == []
    assert {row["outcome"] for row in results.rows("forms-search")} == {"diverged"}
    assert "every setting of the inside form that was tried diverged" in capsys.readouterr().out


def test_a_high_learning_rate_does_not_push_out_a_low_one(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "ROUNDS", ((25, 1),))
    electronic = Choice(["electronic"], ["mf"], ["psl-relu"], modes=["catalog"])
    cell = Grid(PAPER).cells("forms", electronic)[0]
    seen: list[list[float]] = []

    def train(trials: Sequence[Cell], until: int) -> list[float]:
        rates = [trial.settings["training.learning_rate"] for trial in trials]
        seen.append(rates)
        # Ahead early, behind at the end.
        return [rate if until == 25 else -rate for rate in rates]

    best = script.best_trial(script.trials_for(cell), train)
    assert best is not None
    assert seen[1] == [0.1, 0.01]
    assert best.settings["training.learning_rate"] == 0.01
