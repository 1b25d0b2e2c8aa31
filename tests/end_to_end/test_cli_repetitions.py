"""A click log that repeats pairs gives the numbers of the same log with each pair once, whatever the command."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

SMALL = ("--set", "training.epochs=2", "--set", "backbone.dimension=8", "--threads", "1")


@pytest.fixture
def logs(tmp_path):
    """Two files: one in which every pair comes once to seven times, and one without repetitions."""
    chance = np.random.default_rng(0)
    pairs = [(user, item) for user in range(60) for item in chance.choice(40, 10, replace=False)]
    once = pl.DataFrame(pairs, schema=["user", "item"], orient="row")
    copies = chance.integers(1, 8, len(pairs))
    rows = chance.permutation(np.repeat(np.arange(len(pairs)), copies))
    files = {}
    for name, frame in {"repeated": once[rows], "once": once}.items():
        (tmp_path / name).mkdir()
        files[name] = tmp_path / name / "log.csv"
        frame.write_csv(files[name])
    return files


def both(pslrec, monkeypatch, logs, *arguments):
    for file in logs.values():
        monkeypatch.chdir(file.parent)
        command, *options = arguments
        code, _, err = pslrec(*command, "log.csv", *options)
        assert code == 0, err
        yield file.parent


def test_train_says_the_same(pslrec, monkeypatch, logs):
    found = []
    for directory in both(pslrec, monkeypatch, logs, ("train",), *SMALL, "--out", "run"):
        metrics = json.loads((directory / "run" / "metrics.json").read_text())
        found.append((metrics["test"], metrics["validation"], metrics["evaluated"]))
    assert found[0] == found[1]


def test_tune_says_the_same(pslrec, monkeypatch, logs):
    grid = (
        "--loss",
        "psl-relu",
        "--grid",
        "loss.temperature=0.1,0.2",
        "--set",
        "training.validate_every=1",
    )
    found = []
    for directory in both(pslrec, monkeypatch, logs, ("tune",), *grid, *SMALL):
        results = json.loads(next(directory.glob("tune-*/results.json")).read_text())
        found.append(results["metrics"]["test"])
    assert found[0] == found[1]


def test_stress_says_the_same(pslrec, monkeypatch, logs):
    levels = ("--losses", "sl", "--noise", "0.3", "--shift", "0,1")
    found = []
    for directory in both(pslrec, monkeypatch, logs, ("stress",), *levels, *SMALL):
        runs = pl.read_csv(next(directory.glob("stress-*/runs.csv")))
        found.append(runs.select(name for name in runs.columns if "@" in name))
    assert found[0].width > 0
    assert found[0].equals(found[1])


def test_split_writes_the_same(pslrec, monkeypatch, logs):
    found = []
    for directory in both(pslrec, monkeypatch, logs, ("data", "split"), "--out", "parts"):
        files = sorted(Path(directory / "parts").iterdir())
        found.append([(file.name, file.read_text()) for file in files])
    assert len(found[0]) >= 4
    assert found[0] == found[1]
