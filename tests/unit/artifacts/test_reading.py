"""A directory that holds something else than a run gives an error, and nothing in it is executed."""

import io
import math
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from pslrec.artifacts import (
    ArtifactError,
    Epoch,
    RunDirectory,
    read_origins,
    read_record,
    read_run,
)
from pslrec.data import Dataset, Interactions, Vocabulary
from pslrec.files._tensors import write_tensors

Spoil = Callable[[Path], object]
N_USERS, N_ITEMS, DIMENSION = 6, 8, 4


def _interactions(users: list[int], items: list[int]) -> Interactions:
    return Interactions(
        np.array(users),
        np.array(items),
        Vocabulary([f"user {row}" for row in range(N_USERS)], kind="user"),
        Vocabulary(list(range(100, 100 + N_ITEMS)), kind="item"),
    )


@pytest.fixture
def run_path(tmp_path: Path) -> Path:
    """A finished run, written by hand."""
    dataset = Dataset(
        _interactions([0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]),
        _interactions([0], [6]),
        validation=_interactions([1], [7]),
    )
    config = '[loss]\nname = "sl"\ntemperature = 0.2\n\n[sampling.noise]\nseed = 1\n'
    tables = {"users": torch.ones(N_USERS, DIMENSION), "items": torch.ones(N_ITEMS, DIMENSION)}
    with RunDirectory(tmp_path / "run") as directory:
        directory.begin(config, dataset, "half-cosine")
        directory.write_tables(tables, 3)
        directory.write_metrics({"test": {"ndcg@20": 0.5}, "best_epoch": 3})
    return tmp_path / "run"


class Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return exec, ("raise SystemExit('executed')",)


def _tensors(name: str, **tensors: torch.Tensor) -> Spoil:
    return lambda path: write_tensors(path / name, tensors, {})


def _parquet(kind: str, **columns: list[object]) -> Spoil:
    return lambda path: pl.DataFrame(columns).write_parquet(path / f"{kind}s.parquet")


def _torch_file(path: Path) -> None:
    content = io.BytesIO()
    torch.save({"users": torch.ones(6, 4)}, content)
    (path / "model.safetensors").write_bytes(content.getvalue())


def _stopped_in_a_race(path: Path) -> None:
    (path / "format").unlink()
    (path / "request.toml").write_text("")


USERS, ITEMS = torch.ones(6, 4), torch.ones(8, 4)
SPOILT: dict[str, tuple[Spoil, str]] = {
    "stopped before it had settings": (_stopped_in_a_race, "was stopped before it had settings"),
    "no format": (lambda path: (path / "format").unlink(), "it has no file `format`"),
    "other format": (lambda path: (path / "format").write_text("99"), "written in format '99'"),
    "not finished": (lambda path: (path / "metrics.json").unlink(), "is not finished"),
    "metrics are a list": (
        lambda path: (path / "metrics.json").write_text("[]"),
        "must hold a JSON object",
    ),
    "metrics too deep": (
        lambda path: (path / "metrics.json").write_text("[" * 10**5),
        "is not JSON",
    ),
    "config is not TOML": (lambda path: (path / "config.toml").write_text("= ="), "is not TOML"),
    "config is not text": (
        lambda path: (path / "config.toml").write_bytes(b"\xff\xfe\x00"),
        "cannot be read",
    ),
    "config too large": (
        lambda path: (path / "config.toml").write_bytes(b"#" * (2**24 + 1)),
        "is too large",
    ),
    "no model": (
        lambda path: (path / "model.safetensors").unlink(),
        "model.safetensors cannot be read: no such file",
    ),
    "pickled model": (
        lambda path: (path / "model.safetensors").write_bytes(pickle.dumps(Bomb())),
        "not a file of te",
    ),
    "torch model": (_torch_file, "not a file of tensors"),
    "huge header": (
        lambda path: (path / "model.safetensors").write_bytes(b"\xff" * 64),
        "not a file of tensors",
    ),
    "strange table": (
        _tensors("model.safetensors", users=USERS, items=ITEMS, shell=ITEMS),
        "must hold tables named",
    ),
    "missing table": (_tensors("model.safetensors", users=USERS), "must hold tables named"),
    "not a number": (
        _tensors("model.safetensors", users=USERS * torch.nan, items=ITEMS),
        "no finite numbers",
    ),
    "double precision": (
        _tensors("model.safetensors", users=USERS.double(), items=ITEMS),
        "must be a float32 table",
    ),
    "other width": (
        _tensors("model.safetensors", users=USERS, items=torch.ones(8, 5)),
        "as wide as the others",
    ),
    "too few users": (_tensors("model.safetensors", users=USERS[:5], items=ITEMS), "with 5 ids"),
    "table of other size": (
        _tensors("model.safetensors", users=USERS, items=ITEMS, item_table=USERS),
        "`item_table` has 6 rows",
    ),
    "repeated ids": (_parquet("user", id=["ann"] * 6), "must be unique"),
    "other column": (_parquet("user", name=list("abcdef")), "must hold one column `id`"),
    "garbage ids": (
        lambda path: (path / "users.parquet").write_bytes(b"PAR1 nonsense PAR1"),
        "cannot be read",
    ),
    "seen beyond the items": (
        _tensors("seen.safetensors", users=torch.tensor([0]), items=torch.tensor([8])),
        "must be row numbers below 8",
    ),
    "seen of two lengths": (
        _tensors("seen.safetensors", users=torch.tensor([0, 1]), items=torch.tensor([1])),
        "must have the same length",
    ),
    "seen are no rows": (
        _tensors("seen.safetensors", users=torch.tensor([0.5]), items=torch.tensor([1])),
        "list of row numbers `users`",
    ),
}


@pytest.mark.parametrize("name", SPOILT)
def test_a_spoilt_run_is_refused(run_path: Path, name: str) -> None:
    spoil, message = SPOILT[name]
    assert read_run(run_path).epoch == 3
    spoil(run_path)
    with pytest.raises(ArtifactError, match=message):
        read_run(run_path)


def test_a_path_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="is not a run directory; train a run with"):
        read_run(tmp_path / "nothing")


def test_a_run_from_before_validation_pairs_were_kept_is_read(run_path: Path) -> None:
    users, items = read_run(run_path).train
    assert len(read_run(run_path).validation[0]) == 1
    write_tensors(run_path / "seen.safetensors", {"users": users, "items": items}, {})
    assert len(read_run(run_path).validation[0]) == 0


def test_a_record_is_read_without_tables_ids_and_pairs(run_path: Path) -> None:
    for name in ("model.safetensors", "seen.safetensors", "users.parquet", "items.parquet"):
        (run_path / name).unlink()
    record = read_record(run_path)
    assert record.settings == {
        "loss.name": "sl",
        "loss.temperature": 0.2,
        "sampling.noise.seed": 1,
    }
    assert record.environment["threads"] == torch.get_num_threads()
    assert record.is_finished
    assert (record.metric("ndcg@20"), record.metric("recall@20")) == (0.5, None)
    assert record.epochs == []


def test_what_an_unfinished_run_does_not_have_is_empty_in_its_record(run_path: Path) -> None:
    (run_path / "metrics.json").unlink()
    (run_path / "environment.json").unlink()
    record = read_record(run_path)
    assert not record.is_finished
    assert (record.metrics, record.environment, record.metric("ndcg@20")) == ({}, {}, None)


def test_epochs_are_read_in_order_without_damaged_lines(run_path: Path) -> None:
    lines = [
        '{"epoch": 2, "loss": 0.25, "seconds": 1.5, "validation": 0.125, "is_best": true}',
        '{"epoch": 1, "loss": 0.5, "seconds": 2, "validation": null, "is_best": false}',
        '{"epoch": 3, "loss": "much"}',
        '[4, "loss"]',
        '{"epoch": 4, "lo',
    ]
    (run_path / "log.jsonl").write_text("\n".join(lines))
    assert read_record(run_path).epochs == [Epoch(1, 0.5, 2.0, None), Epoch(2, 0.25, 1.5, 0.125)]
    (run_path / "log.jsonl").write_text('{"epoch": 1}')
    (epoch,) = read_record(run_path).epochs
    assert math.isnan(epoch.loss)


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        '{"loss": 3}',
        '{"loss": {"module": "x"}}',
        '{"loss": {"module": "x", "name": [], "distribution": null}}',
        '{"loss": {"module": "x", "name": "y", "distribution": 1}}',
    ],
)
def test_damaged_origins_are_refused(run_path: Path, content: str) -> None:
    (run_path / "origins.json").write_text(content)
    with pytest.raises(ArtifactError, match=r"origins\.json"):
        read_origins(run_path)
