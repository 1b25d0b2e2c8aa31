"""Vectors and ids in files that most systems read; inner products of vectors are scores."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from torch import Tensor

from pslrec.data import Vocabulary
from pslrec.errors import ConfigError
from pslrec.files import whole_file, write_tensors
from pslrec.inference import TrainedModel
from pslrec.recommender.exports._base import EXPORTS, ExportOptions, write_both_ids


@EXPORTS.register("safetensors")
def export_safetensors(model: TrainedModel, path: Path, _options: ExportOptions) -> dict[str, Any]:
    """Write `vectors.safetensors` with the tables `users` and `items`, and ids as Parquet.

    Args:
        model: the trained model.
        path: directory to write to.
    """
    tensors = {"users": model.user_vectors.contiguous(), "items": model.item_vectors.contiguous()}
    write_tensors(path / "vectors.safetensors", tensors, {}, error=ConfigError)
    write_both_ids(model, path)
    return {"files": ["vectors.safetensors", "users.parquet", "items.parquet"]}


@EXPORTS.register("npz")
def export_npz(model: TrainedModel, path: Path, _options: ExportOptions) -> dict[str, Any]:
    """Write `model.npz` with `user_ids`, `item_ids`, `user_vectors` and `item_vectors`.

    Args:
        model: the trained model.
        path: directory to write to.
    """
    with whole_file(path / "model.npz", error=ConfigError) as file:
        np.savez(
            file,
            allow_pickle=False,
            user_ids=_plain_ids(model.users),
            item_ids=_plain_ids(model.items),
            user_vectors=model.user_vectors.numpy(),
            item_vectors=model.item_vectors.numpy(),
        )
    return {"files": ["model.npz"]}


def _plain_ids(vocabulary: Vocabulary) -> np.ndarray:
    ids = vocabulary.series
    if ids.dtype.is_integer():
        return ids.to_numpy()
    # An array of Python objects could only be pickled.
    return np.array([str(identifier) for identifier in ids.to_list()])


@EXPORTS.register("parquet")
def export_parquet(model: TrainedModel, path: Path, _options: ExportOptions) -> dict[str, Any]:
    """Write `users.parquet` and `items.parquet` with the columns `id` and `vector`.

    Args:
        model: the trained model.
        path: directory to write to.
    """
    _write_parquet(path / "users.parquet", model.users, model.user_vectors)
    _write_parquet(path / "items.parquet", model.items, model.item_vectors)
    return {"files": ["users.parquet", "items.parquet"]}


def _write_parquet(path: Path, vocabulary: Vocabulary, vectors: Tensor) -> None:
    dimension = vectors.shape[1]
    column = pl.Series("vector", vectors.numpy(), dtype=pl.Array(pl.Float32, dimension))
    # Every reader knows lists; arrays of fixed size are not known everywhere yet.
    frame = pl.DataFrame({"id": vocabulary.series, "vector": column.arr.to_list()})
    with whole_file(path, error=ConfigError) as file:
        frame.write_parquet(file)
