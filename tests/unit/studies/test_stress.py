"""Stress tests: the shifted split, the runs, and what is written about them."""

import json

import numpy as np
import polars as pl
import pytest

from pslrec.config import RunConfig
from pslrec.data._synthetic import TasteModel, planted_tastes
from pslrec.errors import ConfigError, UnknownNameError
from pslrec.reporting import stress_chart
from pslrec.studies import StressPlan, stress, summarize, write_stress
from pslrec.studies._shifting import shifted_split


@pytest.fixture(scope="module")
def interactions():
    model = TasteModel(n_topics=4, median_history=12, minimum_history=8, popularity_exponent=1.0)
    return planted_tastes(300, 80, model=model, seed=2).interactions


@pytest.fixture(scope="module")
def config(interactions, tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "log.csv"
    interactions.to_frame().write_csv(path)
    return RunConfig.from_settings(
        {
            "data.source": str(path),
            "backbone.dimension": 8,
            "loss.temperature": 0.2,
            "sampling.negatives": "catalog",
            "training.epochs": 5,
            "training.validate_every": 5,
            "training.learning_rate": 0.1,
        }
    )


@pytest.fixture(scope="module")
def plan():
    return StressPlan(
        ("sl", "psl-relu"),
        noise=(0.1, 0.5),
        shift=(0.0, 1.0),
        options={"sl": {"loss.temperature": 0.1}},
    )


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("stress")


@pytest.fixture(scope="module")
def runs(config, plan, directory):
    return stress(config, plan, out=directory)


def popularity_in_test(dataset):
    counts = dataset.whole().item_counts()
    return counts[dataset.test.items].mean()


def test_shifted_split_turns_to_unpopular_items_with_its_strength(interactions):
    means = [
        popularity_in_test(shifted_split(interactions, strength))
        for strength in (0.0, 0.5, 1.0, 2.0)
    ]
    assert means == sorted(means, reverse=True)
    assert means[0] == pytest.approx(interactions.item_counts()[interactions.items].mean(), rel=0.1)
    spread = shifted_split(interactions, 1.0).test.item_counts()
    assert spread.std() < shifted_split(interactions, 0.0).test.item_counts().std() * 0.7


@pytest.mark.parametrize("strength", [0.0, 1.0, 3.0])
def test_shifted_split_divides_everything_and_leaves_everybody_training_data(
    interactions, strength
):
    dataset = shifted_split(interactions, strength, train_fraction=0.7, seed=1)
    assert len(dataset.train) + len(dataset.test) == len(interactions)
    assert len(dataset.test) == pytest.approx(0.3 * len(interactions), abs=1)
    assert dataset.train.user_counts().min() >= 1
    assert (dataset.train.item_counts()[interactions.item_counts() > 0] >= 1).all()
    again = shifted_split(interactions, strength, train_fraction=0.7, seed=1)
    assert np.array_equal(again.test.pair_keys(), dataset.test.pair_keys())


def test_shifted_split_refuses_a_strength_that_means_nothing(interactions):
    with pytest.raises(ConfigError, match="from 0 to 3, got -1"):
        shifted_split(interactions, -1)


def test_every_loss_is_run_at_every_level_with_its_own_settings(runs, directory):
    found = set(runs.select("test", "level", "loss").rows())
    levels = {("shift", 0.0), ("shift", 1.0), ("noise", 0.0), ("noise", 0.1), ("noise", 0.5)}
    assert found == {(*level, loss) for level in levels for loss in ("sl", "psl-relu")}
    assert len(runs) == len(found)
    temperatures = {
        path.parent.name.split("-")[2]: RunConfig.from_toml(path).loss.options()["temperature"]
        for path in (directory / "trials").glob("*/config.toml")
    }
    assert temperatures == {"sl": 0.1, "psl": 0.2}


def test_false_negatives_hurt(runs):
    value = dict(
        runs.filter(pl.col("test") == "noise").group_by("level").agg(pl.mean("ndcg@20")).rows()
    )
    assert value[0.0] > value[0.1] > value[0.5]


def test_finished_runs_are_read_instead_of_made_again(config, plan, directory, runs):
    before = {path: path.stat().st_mtime_ns for path in directory.rglob("*") if path.is_file()}
    assert stress(config, plan, out=directory).equals(runs)
    assert {
        path: path.stat().st_mtime_ns for path in directory.rglob("*") if path.is_file()
    } == before


def test_summary_compares_with_the_base_at_the_same_level():
    rows = [
        ("noise", 0.1, "sl", 0.2, 0.5),
        ("noise", 0.1, "psl-relu", 0.2, 0.6),
        ("noise", 0.1, "psl-relu", 0.4, 0.4),
    ]
    runs = pl.DataFrame(
        rows, schema=["test", "level", "loss", "ndcg@20", "recall@20"], orient="row"
    )
    _, row = summarize(runs, "sl").rows(named=True)
    assert row["n_seeds"] == 2
    assert row["ndcg@20"] == pytest.approx((0.2 + 0.4) / 2)
    assert row["ndcg@20_improvement"] == pytest.approx(0.3 / 0.2 - 1)
    assert row["ndcg@20_deviation"] == pytest.approx(0.2 / 2**0.5)
    assert row["recall@20_improvement"] == pytest.approx(0.0)


def test_written_files_hold_runs_summary_and_curves(runs, tmp_path):
    written = write_stress(runs, tmp_path, base="sl", name="log")
    assert {"runs.csv", "summary.csv", "shift.svg", "noise.svg", "README.md"} <= {
        path.name for path in written
    }
    assert pl.read_csv(tmp_path / "runs.csv").height == len(runs)
    page = (tmp_path / "README.md").read_text()
    assert page.count("| 0.5 | psl-relu |") == 1
    assert "](noise.svg)" in page
    drawing = (tmp_path / "noise.svg").read_text()
    assert drawing.startswith("<svg")
    assert "psl-relu over sl" in drawing


def test_noise_curve_leaves_out_the_run_without_noise(runs):
    summary = summarize(runs, "sl")
    chart = stress_chart(summary, "noise", base="sl", name="log")
    assert [row[0].text for row in chart.data.rows] == ["0.1", "0.5"]


def test_a_png_is_written_where_it_can_be(runs, tmp_path):
    pytest.importorskip("vl_convert", reason="vl-convert-python comes with pslrec[plots]")
    write_stress(runs, tmp_path, base="sl")
    assert (tmp_path / "shift.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"losses": ()}, ConfigError, "at least one loss"),
        ({"losses": ("ssl",)}, UnknownNameError, "did you mean `sl`"),
        ({"noise": (0.0,)}, ConfigError, "above 0 and up to 1, got 0.0"),
        ({"options": {"bpr": {}}}, ConfigError, "`bpr`, which is not among"),
    ],
    ids=["none", "unknown", "noise", "options"],
)
def test_a_plan_that_makes_no_sense_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        StressPlan(**options)


def test_a_wrong_setting_shows_before_anything_is_trained(config, tmp_path):
    plan = StressPlan(("sl", "psl-relu"), shift=(), options={"psl-relu": {"loss.margin": 1}})
    with pytest.raises(ConfigError, match=r"no setting `loss\.margin`"):
        stress(config, plan, out=tmp_path)
    assert not (tmp_path / "runs").exists()


def test_numbers_in_the_metrics_file_are_those_of_the_row(runs, directory):
    row = runs.filter(
        pl.col("test") == "noise", pl.col("level") == 0.5, pl.col("loss") == "sl"
    ).rows(named=True)[0]
    (path,) = (directory / "trials").glob("noise-0.5-sl-*/metrics.json")
    assert json.loads(path.read_text())["test"]["ndcg@20"] == row["ndcg@20"]
