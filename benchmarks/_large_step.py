"""`python -m benchmarks._large_step STEP DIRECTORY SCALE`: one step of the benchmark `large`, in a process of its own."""

import json
import logging
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks._large_log import write_large_log
from benchmarks._memory import memory_growth
from benchmarks.machine import peak_memory
from pslrec.artifacts import Model, RunDirectory
from pslrec.config import RunConfig
from pslrec.evaluation import evaluate
from pslrec.experiment import load_training_data, run
from pslrec.inference import TrainedModel
from pslrec.losses import LOSSES
from pslrec.recommender.exports import ExportOptions, export
from pslrec.training import BatchFinished, EpochFinished, TrainingStarted

N_USERS = 10_000_000
N_ITEMS = 1_000_000
K_CORE = 5
DIMENSION = 64
CHOICES_PER_USER = 30
SAMPLED_USERS = 20_000
MEGABYTE = 1e6
# Bytes of a process that has imported everything, and of the scores of an evaluation.
LIBRARIES = 800_000_000
# Of a step's batches; more lines would be read by nobody.
TOLD_SHARE = 0.02


def bytes_needed(scale: float) -> tuple[int, int]:
    """About how much memory the largest step takes, and how much disk all of them.

    Args:
        scale: share of the stated sizes.
    """
    n_users = int(N_USERS * scale)
    n_items = int(N_ITEMS * scale)
    n_rows = CHOICES_PER_USER * n_users
    table = 4 * DIMENSION * (n_users + n_items)
    pairs = 8 * n_rows
    # The table, its two moments, and the copies of it that a checkpoint and the best epoch make.
    memory = LIBRARIES + 5 * table + 3 * pairs
    # The log, its parts and what sorts them; a checkpoint, the run and the exported vectors.
    disk = 6 * pairs + 8 * table
    return memory, disk


def settings(directory: Path) -> RunConfig:
    """The run: one epoch of MF on shared negatives, on the log that was prepared out of core."""
    return RunConfig.from_settings(
        {
            "data.source": str(directory / "log"),
            "data.out_of_core": "on",
            "data.k_core": K_CORE,
            "backbone.name": "mf",
            "backbone.dimension": DIMENSION,
            "loss.name": "psl-relu",
            "sampling.negatives": "shared:8192",
            "sampling.batch_pairs": 8192,
            "training.epochs": 1,
            "training.validate_every": 1,
            "evaluation.validation_users": SAMPLED_USERS,
            "evaluation.test_users": SAMPLED_USERS,
            "evaluation.exchangeability": "off",
        }
    ).resolved()


def generate(directory: Path, scale: float) -> dict[str, Any]:
    n_users = int(N_USERS * scale)
    n_items = int(N_ITEMS * scale)
    # Half a log, of a benchmark that was stopped, would be measured as fast as a whole one.
    shutil.rmtree(directory / "log", ignore_errors=True)
    n_rows = write_large_log(directory / "log", n_users, n_items, report=tell)
    n_bytes = sum(file.stat().st_size for file in (directory / "log").iterdir())
    return {"rows": n_rows, "users": n_users, "items": n_items, "megabytes": n_bytes / MEGABYTE}


def prepare(directory: Path, _scale: float) -> dict[str, Any]:
    # Libraries and their threads come in with the first log of any size.
    small = directory / "small" / "log"
    if not small.exists():
        write_large_log(small, 2_000, 500)
    load_training_data(settings(small.parent))
    notes = _Notes()
    logging.getLogger("pslrec").addHandler(notes)
    logging.getLogger("pslrec").setLevel(logging.INFO)
    found = []
    started = time.perf_counter()
    grown = memory_growth(lambda: found.append(load_training_data(settings(directory)).dataset))
    seconds = time.perf_counter() - started
    dataset = found[0]
    again = time.perf_counter()
    load_training_data(settings(directory))
    return {
        "seconds": seconds,
        "grown_megabytes": grown / MEGABYTE,
        "stated_megabytes": notes.megabytes[0],
        "ids_megabytes": notes.megabytes[1],
        "again_seconds": time.perf_counter() - again,
        "users": dataset.n_users,
        "items": dataset.n_items,
        "pairs": {name: len(part) for name, part in dataset.parts().items()},
    }


class _Notes(logging.Handler):
    """Keeps the memory that preparation states: at most, and for the ids alone."""

    def __init__(self) -> None:
        super().__init__()
        self.megabytes: list[float] = []

    def emit(self, record: logging.LogRecord) -> None:
        if "at most %s MB" in record.msg and isinstance(record.args, tuple):
            stated = [str(number).replace(",", "") for number in record.args[-2:]]
            self.megabytes = [float(number) for number in stated]


def tell(text: str) -> None:
    """A line for whoever watches."""
    print(text, file=sys.stderr, flush=True)


class _Batches:
    """Tells how far an epoch is, now and then."""

    def __init__(self) -> None:
        self._n_batches = 0
        self._told = 0

    def __call__(self, event: object) -> None:
        if isinstance(event, TrainingStarted):
            self._n_batches = event.n_batches
        if isinstance(event, BatchFinished):
            done = event.batch
            if done - self._told >= TOLD_SHARE * self._n_batches:
                self._told = done
                tell(f"batch {done:,} of {self._n_batches:,}, loss {event.loss:.4f}")
        if isinstance(event, EpochFinished):
            tell(f"epoch of {event.seconds:,.0f} s done, evaluating and saving")


def train(directory: Path, _scale: float) -> dict[str, Any]:
    result = run(settings(directory), out=directory / "run", resume=True, listeners=[_Batches()])
    return {
        "epoch_seconds": result.metrics["seconds_per_epoch"],
        "ndcg@20": result.metrics["test"]["ndcg@20"],
    }


def rank(directory: Path, _scale: float) -> dict[str, Any]:
    config = settings(directory)
    dataset = load_training_data(config).dataset
    tables = RunDirectory(directory / "run").read_tables()
    scorer = Model(tables, LOSSES[config.loss.name]().similarity).scorer()
    started = time.perf_counter()
    result = evaluate(scorer, dataset, split="validation", n_users=SAMPLED_USERS)
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "users": len(result.users)}


def write_vectors(directory: Path, _scale: float) -> dict[str, Any]:
    model = TrainedModel.load(directory / "run")
    started = time.perf_counter()
    export(model, "safetensors", directory / "vectors", ExportOptions())
    seconds = time.perf_counter() - started
    n_bytes = sum(file.stat().st_size for file in (directory / "vectors").iterdir())
    return {"seconds": seconds, "megabytes": n_bytes / MEGABYTE}


def name_users(directory: Path, _scale: float) -> dict[str, Any]:
    """Some users to ask the service about."""
    ids = pl.read_parquet(directory / "run" / "users.parquet")["id"]
    step = max(1, len(ids) // 500)
    return {"users": ids.gather_every(step).to_list()[:500]}


STEPS: dict[str, Callable[[Path, float], dict[str, Any]]] = {
    "generate": generate,
    "prepare": prepare,
    "train": train,
    "rank": rank,
    "export": write_vectors,
    "users": name_users,
}


if __name__ == "__main__":
    started = time.perf_counter()
    measured = STEPS[sys.argv[1]](Path(sys.argv[2]), float(sys.argv[3]))
    measured["step_seconds"] = time.perf_counter() - started
    measured["peak_megabytes"] = peak_memory() / MEGABYTE
    print(json.dumps(measured))
