"""Vectors and ids in files that most systems read; the inner product of two vectors is the score."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pslrec.errors import ConfigError
from pslrec.files import whole_file, write_tensors
from pslrec.inference import TrainedModel
from pslrec.recommender.exports._base import EXPORTS, ExportOptions, write_both_ids


@EXPORTS.register("safetensors")
def export_safetensors(model: TrainedModel, path: Path, _options: ExportOptions) -> dict[str, Any]:
    """`vectors.safetensors` with the tables `users` and `items`, and their ids in Parquet files."""
    tensors = {"users": model.user_vectors.contiguous(), "items": model.item_vectors.contiguous()}
    write_tensors(path / "vectors.safetensors", tensors, {}, error=ConfigError)
    write_both_ids(model, path)
    return {"files": ["vectors.safetensors", "users.parquet", "items.parquet"]}


@EXPORTS.register("npz")
def export_npz(model: TrainedModel, path: Path, _options: ExportOptions) -> dict[str, Any]:
    """`model.npz` with `user_ids`, `item_ids`, `user_vectors` and `item_vectors`; no array in it is pickled."""
    with whole_file(path / "model.npz", error=ConfigError) as file:
        np.savez(
            file,
            allow_pickle=False,
            user_ids=_plain(model.users.series),
            item_ids=_plain(model.items.series),
            user_vectors=model.user_vectors.numpy(),
            item_vectors=model.item_vectors.numpy(),
        )
    return {"files": ["model.npz"]}


def _plain(ids: pl.Series) -> np.ndarray:
    return (
        ids.to_numpy()
        if ids.dtype.is_integer()
        else np.array([str(each) for each in ids.to_list()])
    )


@EXPORTS.register("parquet")
def export_parquet(model: TrainedModel, path: Path, _options: ExportOptions) -> dict[str, Any]:
    """`users.parquet` and `items.parquet` with the columns `id` and `vector`."""
    for vocabulary, vectors in (
        (model.users, model.user_vectors),
        (model.items, model.item_vectors),
    ):
        column = pl.Series("vector", vectors.numpy(), dtype=pl.Array(pl.Float32, model.dimension))
        # A list is read everywhere, an array of fixed size not yet.
        frame = pl.DataFrame({"id": vocabulary.series, "vector": column.arr.to_list()})
        with whole_file(path / f"{vocabulary.kind}s.parquet", error=ConfigError) as file:
            frame.write_parquet(file)
    return {"files": ["users.parquet", "items.parquet"]}
