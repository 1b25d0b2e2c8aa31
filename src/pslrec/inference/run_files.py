"""Reading the directory of a finished run: everything is checked before it is used, and nothing in it is ever executed."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from pslrec.data.vocabulary import Vocabulary
from pslrec.errors import PslrecError

FORMAT = "1"
LARGEST_TEXT = 2**24
TABLES = ("users", "items", "user_table", "item_table")


class ModelError(PslrecError):
    """The directory of a run can not be read, or does not hold what a finished run should."""


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
    config = _toml(path / "config.toml")
    metrics = _json(path / "metrics.json")
    tables, metadata = _tensors(path / "model.safetensors")
    _check_tables(tables, path / "model.safetensors")
    users = _vocabulary(path / "users.parquet", "user", len(tables["users"]))
    items = _vocabulary(path / "items.parquet", "item", len(tables["items"]))
    seen, _ = _tensors(path / "seen.safetensors")
    sizes = len(users), len(items)
    train = _pairs(seen, "users", "items", sizes, path)
    validation = _pairs(seen, "validation_users", "validation_items", sizes, path)
    epoch = metadata.get("epoch", "0")
    return RunFiles(config, metrics, users, items, tables, train, validation, int(epoch) if epoch.isdigit() else 0)


def _check_finished(path: Path) -> None:
    if not path.is_dir():
        raise ModelError(f"{path} is no directory of a run; train one with `pslrec train DATA --out {path}`")
    if not (path / "format").is_file():
        raise ModelError(f"{path} holds no run: there is no file `format` in it")
    found = _text(path / "format").strip()
    if found != FORMAT:
        raise ModelError(
            f"{path} was written in format {found[:20]!r}, this version reads format {FORMAT}; train it again"
        )
    if not (path / "metrics.json").is_file():
        raise ModelError(f"the run in {path} is not finished; go on with `pslrec train --out {path} --resume`")


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > LARGEST_TEXT:
            raise ModelError(f"{path} is too large: {path.stat().st_size} bytes")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"{path} can not be read: {getattr(error, 'strerror', None) or error}") from error


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(_text(path))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ModelError(f"{path} is not TOML: {error}") from error


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(_text(path))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise ModelError(f"{path} must hold a JSON object, got {type(found).__name__}")
    return found


def _tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, RuntimeError) as error:
        raise ModelError(f"{path} is not a file of tensors that can be read: {error}") from error


def _check_tables(tables: Mapping[str, Tensor], path: Path) -> None:
    unknown = sorted(set(tables) - set(TABLES))
    if unknown or not {"users", "items"} <= set(tables):
        raise ModelError(f"{path} must hold tables named {', '.join(TABLES)}, got {', '.join(sorted(tables))}")
    for name, table in tables.items():
        if table.ndim != 2 or table.dtype != torch.float32 or table.shape[1] != tables["items"].shape[1]:
            raise ModelError(
                f"{path}: `{name}` must be a float32 table as wide as the others, got {table.dtype} of shape "
                f"{tuple(table.shape)}"
            )
        if not table.numel() or not bool(torch.isfinite(table).all()):
            raise ModelError(f"{path}: `{name}` is empty or holds values that are no finite numbers")
    for name, side in (("user_table", "users"), ("item_table", "items")):
        if name in tables and len(tables[name]) != len(tables[side]):
            raise ModelError(f"{path}: `{name}` has {len(tables[name])} rows, `{side}` has {len(tables[side])}")


def _vocabulary(path: Path, kind: str, n_rows: int) -> Vocabulary:
    try:
        # The number of rows is in the file's footer; a wrong one is refused before anything is unpacked.
        columns = pl.read_parquet_schema(path)
        found = int(pl.scan_parquet(path).select(pl.len()).collect().item())
        if list(columns) != ["id"] or found != n_rows:
            raise ModelError(f"{path} must hold one column `id` with {n_rows} ids, got {list(columns)} with {found}")
        return Vocabulary(pl.read_parquet(path)["id"], kind=kind)
    except (OSError, ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise ModelError(f"{path} can not be read: {str(error).splitlines()[0][:200]}") from error


def _pairs(
    tensors: Mapping[str, Tensor], user_name: str, item_name: str, sizes: tuple[int, int], path: Path
) -> tuple[Tensor, Tensor]:
    found = []
    for name, n_rows in zip((user_name, item_name), sizes, strict=True):
        # Runs from before validation pairs were kept have none.
        empty = torch.empty(0, dtype=torch.int32) if name.startswith("validation_") else None
        rows = tensors.get(name, empty)
        if rows is None or rows.ndim != 1 or rows.dtype not in (torch.int32, torch.int64):
            raise ModelError(f"{path / 'seen.safetensors'} must hold a list of row numbers `{name}`")
        if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < n_rows:
            raise ModelError(f"{path / 'seen.safetensors'}: `{name}` must be row numbers below {n_rows}")
        found.append(rows)
    if len(found[0]) != len(found[1]):
        raise ModelError(f"{path / 'seen.safetensors'}: `{user_name}` and `{item_name}` must be of one length")
    return found[0], found[1]
