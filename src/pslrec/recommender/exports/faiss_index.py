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

# More would make the export slower and the recall hardly more precise.
EVALUATED_USERS = 1000
# Links of an item in the graph of `hnsw`.
LINKS = 32
# Candidates that building and searching the graph of `hnsw` keep in view.
EFFORT = 128
# A search in `ivf` looks into one in so many cells.
SHARE_SEARCHED = 8


@EXPORTS.register("faiss")
def export_faiss(model: TrainedModel, path: Path, options: ExportOptions) -> dict[str, Any]:
    """Write `items.faiss`, to be searched by inner product, and vectors and ids of the users.

    Args:
        model: the trained model.
        path: directory to write to.
        options: the kind of the index, and `k` at which its recall is measured.
    """
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
    return {
        "files": ["items.faiss", "users.npy", "users.parquet", "items.parquet"],
        "index": options.index,
        **_evaluated(model, index, min(options.k, model.n_items)),
    }


def _write(faiss: Any, index: Any, path: Path) -> None:
    # Not to the path itself, so that the file is complete or absent whatever happens.
    with whole_file(path, error=ConfigError) as file:
        faiss.write_index(index, faiss.PyCallbackIOWriter(file.write))


def _built(faiss: Any, vectors: np.ndarray, kind: Index) -> Any:
    dimension = vectors.shape[1]
    if kind == "hnsw":
        index = faiss.IndexHNSWFlat(dimension, LINKS, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = EFFORT
        index.hnsw.efSearch = EFFORT
    elif kind == "ivf":
        # About as many cells as items in each.
        n_cells = max(int(math.sqrt(len(vectors))), 1)
        quantizer = faiss.IndexFlatIP(dimension)
        index = faiss.IndexIVFFlat(quantizer, dimension, n_cells, faiss.METRIC_INNER_PRODUCT)
        # Otherwise faiss prints a warning for every small catalogue.
        index.cp.min_points_per_centroid = 1
        index.nprobe = max(n_cells // SHARE_SEARCHED, 1)
        index.train(vectors)
    else:
        index = faiss.IndexFlatIP(dimension)
    index.add(vectors)
    return index


def _evaluated(model: TrainedModel, index: Any, k: int) -> dict[str, Any]:
    """Recall and time of a search, over users spread evenly."""
    n_users = min(EVALUATED_USERS, model.n_users)
    users = torch.linspace(0, model.n_users - 1, n_users).long()
    queries = model.user_vectors[users]
    exact = top_items(queries, model.item_vectors, k).items.numpy()
    started = time.perf_counter()
    _, found = index.search(queries.numpy(), k)
    seconds = time.perf_counter() - started
    n_hits = 0
    for exact_items, found_items in zip(exact, found, strict=True):
        n_hits += len(np.intersect1d(exact_items, found_items))
    return {
        "k": k,
        "recall": n_hits / exact.size,
        "judged_users": len(users),
        "microseconds": seconds / len(users) * 1e6,
    }
