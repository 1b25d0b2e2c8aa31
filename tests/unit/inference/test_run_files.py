"""A directory that holds something else than a run gives an error, and nothing in it is executed."""

import io
import pickle
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
import torch

from pslrec.files._tensors import write_tensors
from pslrec.inference import ModelError, read_run

Spoil = Callable[[Path], object]


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


USERS, ITEMS = torch.ones(6, 4), torch.ones(8, 4)
SPOILT: dict[str, tuple[Spoil, str]] = {
    "no format": (lambda path: (path / "format").unlink(), "there is no file `format`"),
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
        "must be of one length",
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
    with pytest.raises(ModelError, match=message):
        read_run(run_path)


def test_a_path_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is no directory of a run; train one with"):
        read_run(tmp_path / "nothing")


def test_a_run_from_before_validation_pairs_were_kept_is_read(run_path: Path) -> None:
    files = read_run(run_path)
    write_tensors(
        run_path / "seen.safetensors", {"users": files.train[0], "items": files.train[1]}, {}
    )
    assert len(read_run(run_path).validation[0]) == 0
