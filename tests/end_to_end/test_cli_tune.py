"""`pslrec tune` as a person types it."""

import json
import re
from pathlib import Path

import pytest

QUICK = (
    "--set",
    "training.epochs=2",
    "--set",
    "training.validate_every=1",
    "--set",
    "sampling.negatives=5",
)
SMALL = ("--set", "backbone.dimension=8", "--threads", "1")


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_tune_prints_the_ranking_and_what_train_takes(pslrec, log):
    grid = ("--grid", "loss.temperature=0.1,0.2", "--grid", "training.learning_rate=0.1,0.001")
    parts = ("--backbone", "mf", "--loss", "psl-relu")
    code, out, err = pslrec("tune", log, *parts, *grid, *QUICK, *SMALL)
    assert code == 0, err
    lines = [line for line in err.splitlines() if line.startswith("trial ")]
    for place, line in enumerate(lines, 1):
        found = r"temperature 0\.\d, learning_rate 0\.\d+: validation 0\.\d{4} after 2 epochs, best 0\.\d{4}"
        left = "" if place == 4 else r", \d+:\d\d left"
        assert re.fullmatch(rf"trial {place}/4: {found}{left}", line), line
    assert len(lines) == 4
    assert "chosen on validation" in out
    assert "test part, protocol strict" in out
    best = Path("tune-log-mf-psl-relu/best.toml")
    assert f"pslrec train --config {best}" in out
    metrics = json.loads(Path("tune-log-mf-psl-relu/results.json").read_text())["metrics"]
    code, out, _ = pslrec("train", "--config", best, "--json", "--threads", 1)
    assert code == 0
    assert json.loads(out)["test"] == metrics["test"]


def test_tune_takes_the_search_space_of_the_loss_without_what_is_set(pslrec, log):
    fixed = ("--set", "training.weight_decay=0.0", "--set", "training.learning_rate=0.1")
    code, out, err = pslrec(
        "tune",
        log,
        "--loss",
        "sl",
        "--preset",
        "fixed",
        *fixed,
        *QUICK,
        *SMALL,
        "--json",
        "--out",
        "found",
    )
    assert code == 0, err
    assert list(json.loads(out)["space"]) == ["loss.temperature"]
    assert len(json.loads(out)["trials"]) == 5
    assert 'initialization = "spectral"' in Path("found/best.toml").read_text()


def test_tune_with_a_budget_says_that_nothing_is_chosen_yet(pslrec, log):
    code, out, _ = pslrec(
        "tune", log, "--grid", "loss.temperature=0.1,0.2", *QUICK, *SMALL, "--budget", "0s"
    )
    assert code == 0
    assert "the budget is used up with 0 of 2 trials finished" in out
    assert not Path("tune-log-mf-psl-relu/best.toml").exists()


def test_tune_searches_wide_ranges_and_files_with_a_sampler(pslrec, log):
    fixed = ("--set", "training.weight_decay=0.0", "--trials", "3", "--json")
    code, out, err = pslrec(
        "tune", log, "--loss", "sl", "--space", "wide", *fixed, *QUICK, *SMALL, "--out", "wide"
    )
    assert code == 0, err
    found = json.loads(out)
    assert set(found["space"]) == {"loss.temperature", "training.learning_rate"}
    assert len(found["trials"]) == 3
    Path("space.toml").write_text("[loss]\ntemperature = { low = 0.05, high = 0.5, log = true }\n")
    code, out, err = pslrec(
        "tune",
        log,
        "--loss",
        "sl",
        "--space",
        "space.toml",
        *fixed,
        *QUICK,
        *SMALL,
        "--out",
        "file",
    )
    assert code == 0, err
    assert set(json.loads(out)["space"]) == {"loss.temperature"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--grid", "loss.temperature"),
            "`--grid` must be SECTION.KEY=VALUE,VALUE, such as loss.temperature=0.1,0.2",
        ),
        (("--grid", "loss.temperatur=1,2"), "did you mean `loss.temperature`"),
        (("--grid", "loss.temperature=1", "--set", "loss.temperature=2"), "is given twice"),
        (("--grid", "data.split_seed=1,2"), "evaluated on different data"),
        (("--budget", "soon"), "must be a time"),
        (("--metric", "luck@3"), "`metric` must be one of"),
        (("--loss", "psl-rellu"), "did you mean `psl-relu`"),
        (("--space", "narrow"), "`--space` must be paper, wide or a TOML file"),
        (("--sampler", "magic"), "`sampler` must be one of grid, random, tpe"),
        (("--pruner", "shears"), "`pruner` must be one of none, median, hyperband, halving"),
        (("--sampler", "grid", "--trials", "3"), "a grid tries all combinations"),
        (("--storage", "nowhere"), "`storage` must be a database that can be reached"),
    ],
    ids=[
        "no values",
        "unknown",
        "twice",
        "data",
        "budget",
        "metric",
        "loss",
        "space",
        "sampler",
        "pruner",
        "grid",
        "storage",
    ],
)
def test_tune_explains_what_is_wrong_in_one_sentence(pslrec, log, arguments, message):
    code, _, err = pslrec("tune", log, *arguments, *QUICK, *SMALL)
    assert code == 2
    assert message in err
    assert "Traceback" not in err
