"""What every export is: a function that writes files into a directory and says what it wrote."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import polars as pl

from pslrec.errors import ConfigError
from pslrec.inference import TrainedModel
from pslrec.registry import Registry

Index = Literal["flat", "ivf", "hnsw"]


@dataclass(frozen=True)
class ExportOptions:
    """What a system that reads an export will ask for.

    Args:
        k: length of the lists that an ONNX graph returns, and at which the recall of an index is measured.
        index: kind of the index, for `faiss`: `flat` compares with every item, `ivf` and `hnsw` with some.
    """

    k: int = 20
    index: Index = "flat"

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ConfigError(f"`k` must be at least 1, got {self.k}")
        if self.index not in ("flat", "ivf", "hnsw"):
            raise ConfigError(f"`index` must be flat, ivf or hnsw, got {self.index!r}")


Exporter = Callable[[TrainedModel, Path, ExportOptions], dict[str, Any]]
EXPORTS: Registry[Exporter] = Registry("export")


def export(model: TrainedModel, to: str, path: Path, options: ExportOptions | None = None) -> dict[str, Any]:
    """Write a model for other systems; what was written and measured is returned, and in `export.json`.

    Args:
        model: whose inner products of user and item vectors are scores.
        to: one of `EXPORTS`: safetensors, npz, parquet, onnx or faiss.
        path: directory to write to; made if it is not there, and it must be empty.
        options: see `ExportOptions`.
    """
    exporter = EXPORTS[to]
    try:
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()):
            raise ConfigError(f"{path} is not empty; choose another directory")
        found = {"format": to, **model.information, **exporter(model, path, options or ExportOptions())}
        (path / "export.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path} can not be written to: {error.strerror or error}") from error
    return found


def write_ids(model: TrainedModel, path: Path) -> None:
    """Write the external ids of users and items in row order."""
    for vocabulary in (model.users, model.items):
        pl.DataFrame({"id": vocabulary.series}).write_parquet(path / f"{vocabulary.kind}s.parquet")
