"""The two contestants of `data_layer`, each run in a process of its own: a log as CSV in, a CSR matrix of its 10-core out.

`python -m benchmarks._log_to_matrix NAME FILE` prints one JSON object; `generate` writes the file.
"""

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.machine import peak_memory

MINIMUM_RATING = 3
CORE = 10
CORES = 2


class Stopwatch:
    """Seconds of each stage, in the order they came."""

    def __init__(self) -> None:
        self.stages: dict[str, float] = {}
        self.processor_seconds = 0.0
        self._last, self._last_processor = time.perf_counter(), time.process_time()

    def lap(self, stage: str) -> None:
        now, processor = time.perf_counter(), time.process_time()
        self.stages[stage] = round(now - self._last, 3)
        self.processor_seconds += processor - self._last_processor
        self._last, self._last_processor = now, processor


def with_pslrec(path: Path) -> dict[str, Any]:
    from pslrec.data import Preparation, prepare, read_interactions

    stopwatch = Stopwatch()
    log = read_interactions(path)
    stopwatch.lap("read")
    prepared = prepare(log, Preparation(minimum_rating=MINIMUM_RATING, k_core=CORE))
    stopwatch.lap("prepare")
    matrix = prepared.matrix()
    stopwatch.lap("matrix")
    memory = peak_memory()
    ids = (prepared.user_vocabulary.series.to_list(), prepared.item_vocabulary.series.to_list())
    return _result(stopwatch, memory, len(log), matrix, ids)


def with_pandas(path: Path) -> dict[str, Any]:
    import numpy as np
    import pandas as pd
    from scipy.sparse import csr_matrix

    stopwatch = Stopwatch()
    log = pd.read_csv(path)
    n_rows = len(log)
    stopwatch.lap("read")
    log = log[log["rating"] >= MINIMUM_RATING].drop_duplicates(["user_id", "item_id"])
    while True:
        users = log.groupby("user_id")["item_id"].transform("size")
        items = log.groupby("item_id")["user_id"].transform("size")
        kept = (users >= CORE) & (items >= CORE)
        if kept.all():
            break
        log = log[kept]
    stopwatch.lap("prepare")
    user_rows, user_ids = pd.factorize(log["user_id"], sort=True)
    item_rows, item_ids = pd.factorize(log["item_id"], sort=True)
    values = np.ones(len(log), dtype=np.float32)
    matrix = csr_matrix((values, (user_rows, item_rows)), shape=(len(user_ids), len(item_ids)))
    stopwatch.lap("matrix")
    return _result(stopwatch, peak_memory(), n_rows, matrix, (user_ids.tolist(), item_ids.tolist()))


def _result(
    stopwatch: Stopwatch, memory: int, n_rows: int, matrix: Any, ids: Iterable[list[str]]
) -> dict[str, Any]:
    digest = hashlib.sha256()
    for column in (matrix.indptr, matrix.indices):
        digest.update(column.astype("int64").tobytes())
    digest.update(matrix.data.astype("float32").tobytes())
    for names in ids:
        digest.update("\n".join(map(str, names)).encode() + b"\0")
    return {
        "seconds": round(sum(stopwatch.stages.values()), 3),
        "processor_seconds": round(stopwatch.processor_seconds, 3),
        "peak_gb": round(memory / 1e9, 3),
        "stages": stopwatch.stages,
        "rows": n_rows,
        "users": matrix.shape[0],
        "items": matrix.shape[1],
        "pairs": int(matrix.nnz),
        "digest": digest.hexdigest(),
    }


CONTESTANTS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "pslrec": with_pslrec,
    "pandas": with_pandas,
}


def main(name: str, path: str, *arguments: str) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    if name == "generate":
        from benchmarks._log_file import write_log

        write_log(Path(path), *map(int, arguments))
    else:
        print(json.dumps(CONTESTANTS[name](Path(path))))


if __name__ == "__main__":
    main(*sys.argv[1:])
