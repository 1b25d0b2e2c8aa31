"""Reading the directory of a finished run: everything is checked before it is used, and nothing in it is ever executed."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pslrec.backbones import check_tables
from pslrec.data import Vocabulary, read_ids
from pslrec.files import FileError, local_path, read_json, read_tensors, read_text, read_toml

FORMAT = "1"


class ModelError(FileError):
    """A run directory cannot be read, or does not hold what a finished run should."""


@dataclass(frozen=True, eq=False)
class RunFiles:
    """What the directory of a finished run holds.

    Args:
        config: its settings, section by section.
        metrics: how it was judged.
        users: external ids by row.
        items: external ids by row.
        tables: representations of users and items, and the tables behind them where these differ.
        train: rows of the training pairs' users and items.
        validation: rows of the validation pairs' users and items; empty where there are none.
        epoch: the one that was chosen.
    """

    config: dict[str, Any]
    metrics: dict[str, Any]
    users: Vocabulary
    items: Vocabulary
    tables: dict[str, Tensor]
    train: tuple[Tensor, Tensor]
    validation: tuple[Tensor, Tensor]
    epoch: int


def read_run(path: Path) -> RunFiles:
    """Read and check the directory of a finished run."""
    _check_finished(path)
    config = read_toml(path / "config.toml", error=ModelError)
    metrics = read_json(path / "metrics.json", error=ModelError)
    tables, metadata = read_tensors(path / "model.safetensors", error=ModelError)
    check_tables(tables, path / "model.safetensors", error=ModelError)
    users = read_ids(path, "user", n_rows=len(tables["users"]), error=ModelError)
    items = read_ids(path, "item", n_rows=len(tables["items"]), error=ModelError)
    seen, _ = read_tensors(path / "seen.safetensors", error=ModelError)
    sizes = len(users), len(items)
    train = _pairs(seen, "users", "items", sizes, path)
    validation = _pairs(seen, "validation_users", "validation_items", sizes, path)
    epoch = _epoch(metadata.get("epoch", ""))
    return RunFiles(config, metrics, users, items, tables, train, validation, epoch)


def _check_finished(path: Path) -> None:
    local_path(path, error=ModelError)
    if not path.is_dir():
        raise ModelError(
            f"{path} is no directory of a run; train one with `pslrec train DATA --out {path}`"
        )
    if not (path / "format").exists():
        raise ModelError(f"{path} holds no run: there is no file `format` in it")
    found = read_text(path / "format", damaged="replace", error=ModelError).strip()
    if found != FORMAT:
        raise ModelError(
            f"{path} was written in format {found[:20]!r}, this version reads format {FORMAT}; train it again"
        )
    if not (path / "metrics.json").exists():
        raise ModelError(
            f"the run in {path} is not finished; go on with `pslrec train --out {path} --resume`"
        )


def _epoch(text: str) -> int:
    # The number is shown, nothing depends on it; so a damaged one is no reason to refuse the model.
    is_number = text.isascii() and text.isdigit() and len(text) < 20
    return int(text) if is_number else 0


def _pairs(
    tensors: Mapping[str, Tensor],
    user_name: str,
    item_name: str,
    sizes: tuple[int, int],
    path: Path,
) -> tuple[Tensor, Tensor]:
    found = []
    for name, n_rows in zip((user_name, item_name), sizes, strict=True):
        # Runs from before validation pairs were kept have none.
        empty = torch.empty(0, dtype=torch.int32) if name.startswith("validation_") else None
        rows = tensors.get(name, empty)
        if rows is None or rows.ndim != 1 or rows.dtype not in (torch.int32, torch.int64):
            raise ModelError(
                f"{path / 'seen.safetensors'} must hold a list of row numbers `{name}`"
            )
        if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < n_rows:
            raise ModelError(
                f"{path / 'seen.safetensors'}: `{name}` must be row numbers below {n_rows}"
            )
        found.append(rows)
    if len(found[0]) != len(found[1]):
        raise ModelError(
            f"{path / 'seen.safetensors'}: `{user_name}` and `{item_name}` must be of one length"
        )
    return found[0], found[1]
