"""What every export is: a function that writes files into a directory and says what it wrote."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pslrec.data import write_ids
from pslrec.errors import ConfigError
from pslrec.files import explained, whole_directory, write_text
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


def export(
    model: TrainedModel, to: str, path: Path, options: ExportOptions | None = None
) -> dict[str, Any]:
    """Write a model for other systems; what was written and measured is returned, and in `export.json`.

    Args:
        model: whose inner products of user and item vectors are scores.
        to: one of `EXPORTS`: safetensors, npz, parquet, onnx or faiss.
        path: directory to write to; made if it is not there, and it must be empty.
        options: see `ExportOptions`.
    """
    exporter = EXPORTS[to]
    with explained(path, "written to", error=ConfigError):
        if path.exists() and any(path.iterdir()):
            raise ConfigError(f"{path} is not empty; choose another directory")
    with whole_directory(path, error=ConfigError) as directory:
        written = exporter(model, directory, options or ExportOptions())
        found = {"format": to, **model.information, **written}
        write_text(directory / "export.json", json.dumps(found, indent=2) + "\n", error=ConfigError)
    return found


def write_both_ids(model: TrainedModel, path: Path) -> None:
    """Write the external ids of users and items in row order."""
    for vocabulary in (model.users, model.items):
        write_ids(vocabulary, path, error=ConfigError)
