"""A faiss index of the item vectors, and how much of the exact lists it finds."""

import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pslrec.errors import ConfigError, MissingExtraError
from pslrec.files import whole_file
from pslrec.inference import TrainedModel, top_items
from pslrec.recommender.exports._base import EXPORTS, ExportOptions, Index, write_both_ids

JUDGED_USERS = 1000
LINKS = 32  # of an item in the graph of `hnsw`
EFFORT = 128  # items that a search in `hnsw` keeps in view
SHARE_SEARCHED = 8  # one in so many cells of `ivf`


@EXPORTS.register("faiss")
def export_faiss(model: TrainedModel, path: Path, options: ExportOptions) -> dict[str, Any]:
    """`items.faiss`, to be searched by inner product with user vectors, and the vectors and ids of the users beside it."""
    try:
        import faiss
    except ImportError:
        raise MissingExtraError("faiss", "ann") from None
    vectors = np.ascontiguousarray(model.item_vectors.numpy())
    index = _built(faiss, vectors, options.index)
    _write(faiss, index, path / "items.faiss")
    with whole_file(path / "users.npy", error=ConfigError) as file:
        np.save(file, model.user_vectors.numpy(), allow_pickle=False)
    write_both_ids(model, path)
    files = ["items.faiss", "users.npy", "users.parquet", "items.parquet"]
    return {
        "files": files,
        "index": options.index,
        **_judged(model, index, min(options.k, model.n_items)),
    }


def _write(faiss: Any, index: Any, path: Path) -> None:
    with whole_file(path, error=ConfigError) as file:
        faiss.write_index(index, faiss.PyCallbackIOWriter(file.write))


def _built(faiss: Any, vectors: np.ndarray, kind: Index) -> Any:
    dimension = vectors.shape[1]
    if kind == "hnsw":
        index = faiss.IndexHNSWFlat(dimension, LINKS, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = index.hnsw.efSearch = EFFORT
    elif kind == "ivf":
        cells = max(int(math.sqrt(len(vectors))), 1)
        quantizer = faiss.IndexFlatIP(dimension)
        index = faiss.IndexIVFFlat(quantizer, dimension, cells, faiss.METRIC_INNER_PRODUCT)
        index.cp.min_points_per_centroid = 1  # small catalogues are no reason to warn
        index.nprobe = max(cells // SHARE_SEARCHED, 1)
        index.train(vectors)
    else:
        index = faiss.IndexFlatIP(dimension)
    index.add(vectors)
    return index


def _judged(model: TrainedModel, index: Any, k: int) -> dict[str, Any]:
    users = torch.linspace(0, model.n_users - 1, min(JUDGED_USERS, model.n_users)).long()
    queries = model.user_vectors[users]
    exact = top_items(queries, model.item_vectors, k).items.numpy()
    started = time.perf_counter()
    found = index.search(queries.numpy(), k)[1]
    seconds = time.perf_counter() - started
    hits = sum(len(np.intersect1d(row, other)) for row, other in zip(exact, found, strict=True))
    return {
        "k": k,
        "recall": hits / exact.size,
        "judged_users": len(users),
        "microseconds": seconds / len(users) * 1e6,
    }
