"""What every export is: a function that writes files into a directory and describes them."""

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pslrec.data import write_ids
from pslrec.errors import ConfigError
from pslrec.files import explained, whole_directory, write_text
from pslrec.inference import TrainedModel
from pslrec.registry import Registry

logger = logging.getLogger(__name__)

Index = Literal["flat", "ivf", "hnsw"]


@dataclass(frozen=True)
class ExportOptions:
    """Options of the exports that need any.

    Args:
        k: length of the lists that an ONNX graph returns, and at which the recall of an index is
            measured.
        index: kind of the `faiss` index: `flat` compares with every item, `ivf` and `hnsw` with
            some.
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
    """Write a model for another system.

    Args:
        model: the trained model; its vectors are written, and no walks.
        to: one of `EXPORTS`: safetensors, npz, parquet, onnx or faiss.
        path: directory to write to; is made if it does not exist, and must be empty.
        options: see `ExportOptions`.

    Returns:
        The content of `export.json`: which model it is, what was written and what was measured.
    """
    exporter = EXPORTS[to]
    if model.walks is not None:
        logger.warning(
            "the export has the vectors of the model and not its walks or its regression, so lists "
            "made from it differ and are less accurate; train with `walks.weight` = 0 and "
            "`walks.regression` = 0 for a model of vectors alone"
        )
    with explained(path, "written to", error=ConfigError):
        if path.exists() and any(path.iterdir()):
            raise ConfigError(f"{path} is not empty; choose another directory")
    # The files appear together, or not at all if one of them fails.
    with whole_directory(path, error=ConfigError) as directory:
        written = exporter(model, directory, options or ExportOptions())
        description = {"format": to, **model.information, **written}
        if model.walks is not None:
            description["left_out"] = ["walks"]
        text = json.dumps(description, indent=2)
        write_text(directory / "export.json", f"{text}\n", error=ConfigError)
    return description


def write_both_ids(model: TrainedModel, path: Path) -> None:
    """Write the external ids of users and items, in the order of the vectors.

    Args:
        model: knows the ids.
        path: directory for `users.parquet` and `items.parquet`.
    """
    write_ids(model.users, path, error=ConfigError)
    write_ids(model.items, path, error=ConfigError)
