"""Every table of metrics says how many users and pairs it stands on."""

import json
import logging

import numpy as np
import polars as pl
import pytest
import torch
from rich.console import Console

from pslrec import Recommender
from pslrec.cli._results import show_metrics
from pslrec.config import RunConfig
from pslrec.data import Dataset, Interactions
from pslrec.data.splits import split_by_name
from pslrec.errors import DataError
from pslrec.evaluation import EmbeddingScorer, Evaluated, evaluate
from pslrec.experiment import evaluate_run, run
from pslrec.reporting import run_report


def new_users_come_late():
    """Ten users are there from the beginning to the end, fifty come late."""
    users = np.repeat(np.arange(60), 10)
    items = np.tile(np.arange(10), 60) + (users % 3)
    times = np.where(users < 10, 13 * np.arange(600) % 1000, 900 + np.arange(600))
    return Interactions.from_ids(users, items, timestamps=times)


def test_pairs_that_a_split_left_out_are_counted():
    dataset = split_by_name(new_users_come_late(), "temporal", train_fraction=0.15)
    assert dataset.n_left_out + len(dataset.test) == 510
    scorer = EmbeddingScorer(torch.ones(dataset.n_users, 2), torch.ones(dataset.n_items, 2))
    found = evaluate(scorer, dataset, k=[5]).evaluated
    assert (found.of_users, found.of_pairs) == (60, 510)
    assert found.pairs == len(dataset.test)
    assert found.users == len(np.unique(dataset.test.users))


@pytest.mark.parametrize("protocol", ["paper", "strict"])
def test_users_without_pairs_are_not_evaluated_whatever_the_protocol(protocol):
    log = Interactions.from_ids([1, 1, 2, 3], ["a", "b", "a", "b"])
    dataset = Dataset(log.select(np.array([0, 2, 3])), log.select(np.array([1])))
    scorer = EmbeddingScorer(torch.ones(3, 2), torch.ones(2, 2))
    assert evaluate(scorer, dataset, k=[1], protocol=protocol).evaluated == Evaluated(1, 3, 1, 1)


@pytest.mark.parametrize(
    ("users", "of_users", "is_few"),
    [(99, 99, True), (100, 1000, False), (20, 659, True), (120, 5000, True)],
)
def test_few_users_are_few(users, of_users, is_few):
    assert Evaluated(users, of_users, 1, 1).is_few is is_few


@pytest.fixture
def finished(tmp_path):
    path = tmp_path / "log.csv"
    new_users_come_late().to_frame().write_csv(path)
    settings = {
        "data.source": str(path),
        "data.split": "temporal",
        "data.train_fraction": 0.14,
        "training.epochs": 1,
        "backbone.dimension": 4,
    }
    run(RunConfig.from_settings(settings), out=tmp_path / "run")
    return tmp_path / "run"


def test_metrics_table_and_report_say_it_and_warn(finished, caplog, tmp_path):
    metrics = json.loads((finished / "metrics.json").read_text())
    counts = metrics["evaluated"]["test"]
    assert counts["of_users"] == 60
    assert counts["users"] < 60
    assert metrics["evaluated"]["validation"]["of_pairs"] > 0
    sentence = Evaluated(**counts).sentence("test")
    console = Console(record=True, width=120)
    show_metrics(metrics, console)
    assert sentence in console.export_text()
    with caplog.at_level(logging.WARNING, logger="pslrec"):
        again = evaluate_run(finished)
    assert again["evaluated"]["test"] == counts
    assert f"the model was {sentence}: too few" in caplog.text
    report = run_report([finished], tmp_path / "report.html").read_text()
    assert f"{sentence}: too few to tell models apart" in report


def fitted():
    log = new_users_come_late()
    return Recommender("sl", epochs=1, dimension=4).fit(log, validation="none"), log


def test_evaluating_on_training_rows_is_refused():
    recommender, log = fitted()
    with pytest.raises(
        DataError, match="all 600 rows of `interactions` that the model knows were in training"
    ):
        recommender.evaluate(log.to_frame())


def test_evaluating_on_strangers_is_refused():
    recommender, _ = fitted()
    with pytest.raises(
        DataError, match="has no row whose user and item were both in the training data"
    ):
        recommender.evaluate(pl.DataFrame({"user": [1000], "item": [0]}))


def test_rows_of_training_are_told_and_left_out(caplog):
    recommender, _ = fitted()
    new = pl.DataFrame({"user": [0, 1, 3], "item": [11, 11, 11]})
    mixed = pl.concat([new, pl.DataFrame({"user": [0, 1, 900], "item": [5, 5, 5]})])
    expected = recommender.evaluate(new)
    with caplog.at_level(logging.WARNING, logger="pslrec"):
        found = recommender.evaluate(mixed)
    assert found == expected
    assert "2 of 6 rows were in training and are left out" in caplog.text
    assert (
        "1 of 6 rows are left out: their user or item was not in the training data" in caplog.text
    )


def test_a_large_sample_is_never_too_few():
    assert Evaluated(9_999, 10**6, 10_000, 10**6).is_few
    assert not Evaluated(10_000, 10**6, 10_000, 10**6).is_few
