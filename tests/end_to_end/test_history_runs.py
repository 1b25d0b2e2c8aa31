"""Runs of the backbone `history` as a person types them: from training to lists, reports and stress."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from command_line import Command

from pslrec.artifacts import read_tensors
from pslrec.config import RunConfig
from pslrec.data import Interactions
from pslrec.data._synthetic import TasteModel, planted_tastes
from pslrec.data.splits import carve_validation, split_by_name
from pslrec.errors import ConfigError, DataError
from pslrec.experiment import build_model, run
from pslrec.training import EpochFinished, Event

SMALL = (
    *("--preset", "paper", "--backbone", "history", "--set", "backbone.dimension=8"),
    *("--set", "training.epochs=2", "--threads", "1"),
)
SETTINGS = {
    "backbone.name": "history",
    "backbone.dimension": 16,
    "sampling.negatives": "catalog",
    "training.epochs": 3,
}


@pytest.fixture
def planted() -> Interactions:
    return planted_tastes(400, 120, model=TasteModel(n_topics=4), seed=5).interactions


def test_from_training_to_lists_and_a_report(pslrec: Command, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = pslrec("train", log, *SMALL, "--set", "backbone.visible=0.4", "--refit", "--out", out)
    assert done.code == 0, done.err
    assert "visible = 0.4" in (out / "config.toml").read_text()
    again = json.loads(pslrec("evaluate", out, "--json").out)
    assert again["test"]["ndcg@20"] > 0
    frame = pl.read_csv(log)
    known = frame["user"][0]
    items = frame["item"].unique().sort().to_list()
    assert pslrec("recommend", out, "--user", known, "-k", 3).code == 0
    new = pslrec("recommend", out, "--history", items[0], "--history", items[3], "-k", 3)
    assert new.code == 0, new.err
    assert pslrec("similar", out, "--item", items[0], "-k", 3).code == 0
    report = pslrec("report", out, "--out", tmp_path / "report.html")
    assert report.code == 0, report.err
    assert "history" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("to", ["npz", "onnx", "faiss", "parquet", "safetensors"])
def test_exports_are_written(pslrec: Command, log: Path, tmp_path: Path, to: str) -> None:
    assert pslrec("train", log, *SMALL, "--out", tmp_path / "run").code == 0
    done = pslrec("export", tmp_path / "run", "--to", to, "--out", tmp_path / "export")
    assert done.code == 0, done.err
    assert json.loads((tmp_path / "export" / "export.json").read_text())["backbone"] == "history"


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("negatives", ["catalog", "shared:10", 5])
def test_noise_plants_false_negatives(
    planted: Interactions, negatives: str | int, keep: bool
) -> None:
    settings = {
        **SETTINGS,
        "sampling.negatives": negatives,
        "sampling.noise.probability": 0.2,
        "sampling.noise.keep_positives": keep,
    }
    few = planted.select(planted.users < 100)
    metrics = run(RunConfig.from_settings(settings), data=few).metrics
    assert 0 < metrics["validation"]["ndcg@20"] < 1


@pytest.mark.parametrize("mode", ["catalog", "sampled"])
def test_stress_compares_losses(
    pslrec: Command, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ("--losses", "sl,psl-relu", "--mode", mode, "--noise", "0.2", "--shift", "0")
    done = pslrec("stress", log, *arguments, *SMALL)
    assert done.code == 0, done.err
    runs = pl.read_csv(tmp_path / "stress-log" / "runs.csv")
    assert runs["backbone"].unique().to_list() == ["history"]


@pytest.mark.parametrize(
    ("predicts", "visible"), [("all", 0.5), ("all", 1.0), ("hidden", 0.5), ("hidden", 0.9)]
)
def test_a_run_learns_whatever_it_hides_and_predicts(
    planted: Interactions, predicts: str, visible: float
) -> None:
    settings = {
        **SETTINGS,
        "backbone.predicts": predicts,
        "backbone.visible": visible,
        "backbone.initialization": "normal",
        "training.epochs": 20,
        "training.validate_every": 1,
    }
    events: list[Event] = []
    run(RunConfig.from_settings(settings), data=planted, listeners=[events.append])
    finished = [event for event in events if isinstance(event, EpochFinished)]
    validations = [event.validation for event in finished]
    assert max(validations) > 1.5 * validations[0]


def test_a_log_without_two_items_of_anybody_is_refused(tmp_path: Path) -> None:
    log = Interactions.from_ids([f"u{row}" for row in range(30)], [row % 7 for row in range(30)])
    settings = {**SETTINGS, "data.validation": "none", "backbone.predicts": "hidden"}
    with pytest.raises(DataError, match="no user has two items"):
        run(RunConfig.from_settings(settings), data=log, out=tmp_path / "run")


def started(train: Interactions, old: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """Both tables as a warm start has them before any step."""
    settings = {**SETTINGS, "training.warm_start": str(old)}
    backbone, _ = build_model(RunConfig.from_settings(settings), train)
    return backbone.user_table.detach(), backbone.item_table.detach()


def old_tables(old: Path) -> tuple[torch.Tensor, torch.Tensor]:
    tensors = read_tensors(old / "model.safetensors")[0]
    return tensors["user_table"], tensors["items"]


def test_a_warm_start_keeps_known_items_whatever_users_there_are(
    planted: Interactions, tmp_path: Path
) -> None:
    run(RunConfig.from_settings(SETTINGS), data=planted, out=tmp_path / "old")
    frame = planted.to_frame().with_columns(user=pl.lit("new ") + pl.col("user"))
    strangers = Interactions.from_ids(frame["user"], frame["item"])
    old_rows = planted.item_vocabulary.rows(strangers.item_vocabulary.series.to_list())
    for found, learnt in zip(
        started(strangers, tmp_path / "old"), old_tables(tmp_path / "old"), strict=True
    ):
        assert torch.equal(found, learnt[torch.from_numpy(old_rows.astype(np.int64))])


def test_new_items_of_a_warm_start_lie_where_their_users_are(
    planted: Interactions, tmp_path: Path
) -> None:
    is_old = planted.items >= 20
    frame = planted.select(is_old).to_frame()
    yesterday = Interactions.from_ids(frame["user"], frame["item"])
    settings = {**SETTINGS, "data.validation": "none"}
    run(RunConfig.from_settings(settings), data=yesterday, out=tmp_path / "old")
    # Nobody of today was there yesterday, and the new items are learnt from them all the same.
    frame = planted.to_frame().with_columns(user=pl.lit("new ") + pl.col("user"))
    today = Interactions.from_ids(frame["user"], frame["item"])
    backbone, _ = build_model(
        RunConfig.from_settings({**settings, "training.warm_start": str(tmp_path / "old")}), today
    )
    with torch.no_grad():
        users, items, *_ = backbone()
    scores = torch.nn.functional.normalize(items, dim=1) @ users.T
    names = planted.item_vocabulary.series.to_list()[:20]
    ranks = []
    for row in today.item_vocabulary.rows(names).tolist():
        own = torch.from_numpy(today.users[today.items == row].astype(np.int64))
        is_own = torch.zeros(today.n_users, dtype=torch.bool)
        is_own[own] = True
        if is_own.any():
            # The share of other users who score lower than the item's own: half of them by chance.
            is_lower = scores[row, is_own][:, None] > scores[row, ~is_own][None]
            ranks.append(float(is_lower.float().mean()))
    assert len(ranks) > 10
    assert np.mean(ranks) > 0.75


def test_a_warm_start_is_ahead_of_a_cold_one(planted: Interactions, tmp_path: Path) -> None:
    today = carve_validation(split_by_name(planted, "iid"), "fraction")
    frame = today.train.select(today.train.users >= 80).to_frame()
    earlier = Interactions.from_ids(frame["user"], frame["item"])
    settings = {**SETTINGS, "training.epochs": 20, "training.learning_rate": 0.01}
    settings["backbone.initialization"] = "normal"
    run(RunConfig.from_settings(settings), data=earlier, out=tmp_path / "old")
    values = []
    for begun in ({"training.warm_start": str(tmp_path / "old")}, {}):
        config = RunConfig.from_settings({**settings, "training.epochs": 1, **begun})
        values.append(run(config, data=today).metrics["validation"]["ndcg@20"])
    assert values[0] > 1.5 * values[1]


def test_a_warm_start_without_a_known_item_is_refused(
    planted: Interactions, tmp_path: Path
) -> None:
    run(RunConfig.from_settings(SETTINGS), data=planted, out=tmp_path / "old")
    frame = planted.to_frame().with_columns(item=pl.lit("new ") + pl.col("item"))
    others = Interactions.from_ids(frame["user"], frame["item"])
    with pytest.raises(ConfigError, match="no item of the training data is in the run"):
        started(others, tmp_path / "old")
