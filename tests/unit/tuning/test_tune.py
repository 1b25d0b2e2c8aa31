"""A search from its first cell to its choice."""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pytest

from pslrec.config import RunConfig
from pslrec.data._sealing import SealedInteractions
from pslrec.data._synthetic import TasteModel, planted_tastes
from pslrec.errors import ConfigError
from pslrec.experiment import build_batches, load_training_data, run
from pslrec.training import TrainingInterrupted
from pslrec.training._events import EpochFinished
from pslrec.tuning import CellFinished, CellStarted, study, tune

GRID = {"loss.temperature": [0.1], "training.learning_rate": [0.001, 0.1]}


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    model = TasteModel(n_topics=4, median_history=9, minimum_history=6)
    path = tmp_path_factory.mktemp("data") / "log.csv"
    planted_tastes(60, 40, model=model, seed=2).interactions.to_frame().write_csv(path)
    return path


@pytest.fixture(scope="module")
def config(log):
    return RunConfig.from_settings(
        {
            "data.source": str(log),
            "backbone.dimension": 8,
            "sampling.negatives": 5,
            "training.epochs": 3,
            "training.validate_every": 1,
        }
    )


@pytest.fixture(scope="module")
def searched(config, tmp_path_factory):
    directory = tmp_path_factory.mktemp("search")
    return tune(config, GRID, out=directory)


def trained_cells(events):
    return [event.outcome.cell.key for event in events if isinstance(event, CellFinished)]


def test_search_chooses_the_best_on_validation_and_judges_it_as_a_run_would(searched, config):
    values = [cell.value("ndcg@20") for cell in searched.cells]
    assert len(values) == 2
    assert values == sorted(values, reverse=True)
    assert values[0] > values[-1]
    again = run(searched.best.cell.config)
    assert searched.metrics["test"] == again.metrics["test"]
    assert searched.metrics["validation"] == again.metrics["validation"]
    assert searched.metrics["best_epoch"] == again.metrics["best_epoch"]


def test_only_the_chosen_cell_was_judged_on_the_test_part(searched):
    with_test = [
        cell.cell.key for cell in searched.cells if (cell.directory / "metrics.json").exists()
    ]
    assert with_test == [searched.best.cell.key]
    assert all("test" not in cell.found for cell in searched.cells)


def test_the_test_part_is_opened_once_after_all_cells_are_trained(config, tmp_path, monkeypatch):
    happened = []
    unseal = SealedInteractions.unseal
    monkeypatch.setattr(
        SealedInteractions,
        "unseal",
        lambda self, reason: (happened.append("opened"), unseal(self, reason))[1],
    )
    listener = lambda event: happened.append("cell") if isinstance(event, CellFinished) else None  # noqa: E731
    tune(config, GRID, out=tmp_path, listener=listener)
    assert happened == ["cell"] * 2 + ["opened"]


def test_files_say_what_was_found_and_the_best_configuration_trains(searched):
    table = pl.read_csv(searched.directory / "results.csv")
    assert table["rank"].to_list() == [1, 2]
    assert set(GRID) < set(table.columns)
    assert not [column for column in table.columns if "test" in column]
    assert table["validation_ndcg@20"][0] == searched.best.value("ndcg@20")
    summary = json.loads((searched.directory / "results.json").read_text())
    assert summary["best"]["settings"] == dict(searched.best.cell.settings)
    assert summary["metrics"]["test"] == searched.metrics["test"]
    assert (
        RunConfig.from_toml(searched.directory / "best.toml").resolved()
        == searched.best.cell.config
    )


def test_best_values_at_the_edge_of_the_grid_are_named(searched):
    assert searched.at_the_edge() == ["training.learning_rate"]


def test_finished_cells_are_not_trained_again_and_new_ones_are(searched, config, tmp_path):
    events = []
    again = tune(config, GRID, out=searched.directory, listener=events.append)
    assert events == []
    assert again.metrics == searched.metrics
    wider = {**GRID, "loss.temperature": [0.1, 0.15]}
    more = tune(config, wider, out=searched.directory, listener=events.append)
    assert len(more.cells) == 4
    assert len(trained_cells(events)) == 2


def test_search_goes_on_after_an_interruption_to_the_same_numbers(searched, config, tmp_path):
    def interrupt(event):
        if isinstance(event, EpochFinished) and event.epoch == 2:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(TrainingInterrupted):
        tune(config, GRID, out=tmp_path, listener=interrupt)
    result = tune(config, GRID, out=tmp_path)
    assert result.metrics["test"] == searched.metrics["test"]
    assert [cell.found["validation"] for cell in result.cells] == [
        cell.found["validation"] for cell in searched.cells
    ]


def test_budget_stops_between_epochs_and_chooses_nothing(config, tmp_path, searched):
    result = tune(config, GRID, out=tmp_path, budget_seconds=0)
    assert not result.is_complete
    assert result.metrics == {}
    assert {cell.state for cell in result.cells} == {"open"}
    assert not (tmp_path / "best.toml").exists()
    assert tune(config, GRID, out=tmp_path).metrics["test"] == searched.metrics["test"]


def test_budget_that_ends_in_a_cell_pauses_it(config, tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(study.time, "monotonic", lambda: now[0])

    def listener(event):
        now[0] += isinstance(event, EpochFinished)

    result = tune(config, GRID, out=tmp_path, budget_seconds=1.5, listener=listener)
    assert (result.cells[0].state, result.cells[0].epochs) == ("paused", 2)
    assert not result.is_complete


def test_all_cells_of_a_search_have_the_number_of_epochs_that_auto_stands_for(config, tmp_path):
    few = {"training.epochs": "auto", "sampling.batch_pairs": 8, "training.patience": 1}
    config = RunConfig.from_settings(few, base=config)
    steps = len(build_batches(config.resolved(), load_training_data(config.resolved())))
    expected = max(10, -(-1600 // steps))
    until = []
    result = tune(
        config,
        GRID,
        out=tmp_path,
        listener=lambda event: (
            until.append(event.until) if isinstance(event, CellStarted) else None
        ),
    )
    assert {cell.cell.config.training.epochs for cell in result.cells} == {expected}
    assert until == [expected] * len(result.cells)


def test_auto_epochs_are_no_value_of_a_grid(config, tmp_path):
    with pytest.raises(ConfigError, match="`auto` goes beside the grid"):
        tune(config, {"training.epochs": ["auto", 3]}, out=tmp_path)


def test_halving_leaves_the_worse_cells_early_and_finishes_the_better(config, tmp_path):
    longer = RunConfig.from_settings({"training.epochs": 9}, base=config)
    four = {**GRID, "loss.temperature": [0.1, 0.2]}
    started = []
    result = tune(
        longer,
        four,
        out=tmp_path,
        halving=True,
        listener=lambda event: (
            started.append(event.until) if isinstance(event, CellStarted) else None
        ),
    )
    assert started == [3, 3, 3, 3, 9, 9]
    assert [cell.state for cell in result.cells] == ["finished", "finished", "paused", "paused"]
    assert {cell.epochs for cell in result.cells} == {3, 9}
    assert result.is_complete
    whole = run(result.best.cell.config)
    assert result.metrics["test"] == whole.metrics["test"]


def test_a_cell_that_diverges_is_noted_and_never_chosen(config, tmp_path):
    grid = {"training.learning_rate": [1e38, 0.1]}
    result = tune(config, grid, out=tmp_path)
    assert [cell.state for cell in result.cells] == ["finished", "failed"]
    assert "learning rate 1e+38" in result.cells[1].found["failed"]
    events = []
    tune(config, grid, out=tmp_path, listener=events.append)
    assert events == []


def test_a_search_in_which_everything_diverges_says_so(config):
    with pytest.raises(ConfigError, match="no cell could be trained"):
        tune(config, {"training.learning_rate": [1e38]})


def test_nothing_is_ever_chosen_on_the_test_part(config, log):
    for settings in (
        {"data.validation": "none"},
        {"data.split": "popularity", "evaluation.protocol": "paper"},
    ):
        with pytest.raises(ConfigError, match="never chooses on the test part"):
            tune(RunConfig.from_settings(settings, base=config), GRID)


def test_refitting_is_for_what_was_chosen(config):
    with pytest.raises(ConfigError, match="refit what it chose"):
        tune(RunConfig.from_settings({"training.refit": True}, base=config), GRID)


def test_metric_and_length_can_be_chosen(config):
    result = tune(config, {"training.learning_rate": [0.1]}, metric="recall@7")
    assert result.metrics["validation"]["recall@7"] == result.best.value("recall@7")
    with pytest.raises(ConfigError, match="`metric` must be one of"):
        tune(config, GRID, metric="accuracy")


def test_two_searches_at_once_share_the_cells(config, tmp_path, searched):
    trained = []

    def listener(event):
        if isinstance(event, CellFinished):
            trained.append(event.outcome.cell.key)

    # Locks belong to an open file, so two threads keep out of each other's way as two processes do.
    with ThreadPoolExecutor(2) as pool:
        searches = [
            pool.submit(tune, config, GRID, out=tmp_path, listener=listener) for _ in range(2)
        ]
        results = [search.result(timeout=60) for search in searches]
    assert len(trained) == len(set(trained)) == 2
    assert [result.metrics["test"] for result in results] == [searched.metrics["test"]] * 2


@pytest.mark.slow
def test_two_processes_share_the_cells_of_a_search(config, tmp_path, searched):
    program = (
        "import sys; from pathlib import Path; import torch; torch.set_num_threads(1); from pslrec.config import RunConfig\n"
        "from pslrec.tuning import CellFinished, tune\n"
        "trained = []\n"
        "listener = lambda event: trained.append(event.outcome.cell.key) if isinstance(event, CellFinished) else None\n"
        f"result = tune(RunConfig.from_toml(Path(sys.argv[1])), {GRID!r}, out=Path(sys.argv[2]), listener=listener)\n"
        "print(*trained, result.metrics['test']['ndcg@20'])"
    )
    (tmp_path / "base.toml").write_text(config.to_toml())
    command = [sys.executable, "-c", program, str(tmp_path / "base.toml"), str(tmp_path / "search")]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    printed = [process.communicate(timeout=60)[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    trained = [key for words in printed for key in words[:-1]]
    assert len(trained) == len(set(trained)) == 2
    assert {float(words[-1]) for words in printed} == {searched.metrics["test"]["ndcg@20"]}
