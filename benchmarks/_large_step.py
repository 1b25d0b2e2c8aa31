"""`python -m benchmarks._large_step STEP DIRECTORY SCALE`: one step of the benchmark `large`, in a process of its own."""

import json
import logging
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

N_USERS = 10_000_000
N_ITEMS = 1_000_000
K_CORE = 5
SAMPLED_USERS = 20_000
MEGABYTE = 1e6


def settings(directory: Path) -> RunConfig:
    """The run: one epoch of MF on shared negatives, on the log that was prepared out of core."""
    return RunConfig.from_settings(
        {
            "data.source": str(directory / "log"),
            "data.out_of_core": "on",
            "data.k_core": K_CORE,
            "backbone.name": "mf",
            "backbone.dimension": 64,
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
    n_rows = write_large_log(directory / "log", n_users, n_items)
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


def train(directory: Path, _scale: float) -> dict[str, Any]:
    result = run(settings(directory), out=directory / "run")
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
