"""The exact loss as it runs on a device, in torch, beside the loss as it is written; on the CPU as a stand-in.

Both compute value and gradients of the same block of Electronic, in turns in one process, and the median over the rounds of their
ratio counts. Memory is by how much a process of its own grows. The truth is the loss as it is written, in double precision.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

from torch import Tensor

from benchmarks._child import in_child
from benchmarks._data import path_of
from benchmarks._device_step import TEMPERATURE, first_block, value_and_gradients
from benchmarks._publish import table
from pslrec.config import RunConfig
from pslrec.experiment import run as run_of

DESCRIPTION = "the exact loss in torch, for devices, beside the loss as it is written, on the CPU"
LOSSES = ("psl-relu", "sl", "psl-tanh", "psl-atan")
# Of a device's size: a step of an epoch's fourth part.
BATCH_PAIRS = 32_768
# A block on which every pair in double precision is computed in seconds.
TRUTH_PAIRS = 1_024
QUALITY = ("health", "movielens-100k")
TARGETS = {"times faster": 3.0, "times less memory": 10.0, "gradient error": 1e-4}


def run(
    rounds: int = 5, epochs: int = 20, *, report: Callable[[str], None] | None = None
) -> dict[str, Any]:
    """Measure time, memory and error of both ways, and what products of bfloat16 cost.

    Args:
        rounds: of the times; the median counts.
        epochs: of the trainings with both types of products; 0 leaves them out.
        report: is told what is being done.
    """
    tell = report or (lambda _: None)
    rows = []
    for loss in LOSSES:
        tell(f"{loss}: time, memory, error")
        rows.append({"loss": loss, **_times(loss, rounds), **_memory(loss), **_errors(loss)})
    met = {}
    for name, target in TARGETS.items():
        found = [row[name] for row in rows]
        met[name] = max(found) <= target if name == "gradient error" else min(found) >= target
    trainings = []
    if epochs:
        for data in QUALITY:
            if not path_of(data).exists():
                continue
            tell(f"bfloat16 on {data}")
            trainings.append({"data": data, "epochs": epochs, **_qualities(data, epochs)})
    return {
        "rows": rows,
        "trainings": trainings,
        "batch_pairs": BATCH_PAIRS,
        "targets": TARGETS,
        "targets_met": met,
    }


def _times(loss: str, rounds: int) -> dict[str, Any]:
    parts = first_block(loss, BATCH_PAIRS)
    seconds: dict[str, list[float]] = {"torch": [], "plain": []}
    for _ in range(rounds + 1):
        for kernels, found in seconds.items():
            started = time.perf_counter()
            value_and_gradients(*parts, kernels, "float32")
            found.append(time.perf_counter() - started)
    # The first round warms up.
    ratios = [
        plain / ours for ours, plain in zip(seconds["torch"][1:], seconds["plain"][1:], strict=True)
    ]
    return {
        "torch s": round(statistics.median(seconds["torch"][1:]), 3),
        "plain s": round(statistics.median(seconds["plain"][1:]), 3),
        "times faster": round(statistics.median(ratios), 1),
    }


def _memory(loss: str) -> dict[str, Any]:
    megabytes = {}
    for kernels in ("torch", "plain"):
        found = in_child("_device_step", loss, kernels, BATCH_PAIRS, "float32")
        megabytes[kernels] = found["MB"]
    return {
        "torch MB": round(megabytes["torch"], 1),
        "plain MB": round(megabytes["plain"], 1),
        "times less memory": round(megabytes["plain"] / max(megabytes["torch"], 1.0), 1),
    }


def _errors(loss: str) -> dict[str, Any]:
    built, users, items, block = first_block(loss, TRUTH_PAIRS)
    truth = value_and_gradients(built, users.double(), items.double(), block, "plain", "float32")
    found = {}
    for name, products in (("gradient error", "float32"), ("in bfloat16", "bfloat16")):
        ours = value_and_gradients(built, users, items, block, "torch", products)
        errors = [_relative(*pair) for pair in zip(ours[1:], truth[1:], strict=True)]
        found[name] = float(f"{max(errors):.1e}")
    return found


def _relative(ours: Tensor, truth: Tensor) -> float:
    return float((ours.double() - truth).norm() / truth.norm())


def _qualities(data: str, epochs: int) -> dict[str, Any]:
    """NDCG@20 on the validation part after trainings that differ in their products alone."""
    found = {}
    for products in ("float32", "bfloat16"):
        settings = {
            "data.source": str(path_of(data)),
            "data.validation": "paper",
            "loss.name": "psl-relu",
            "loss.temperature": TEMPERATURE,
            "sampling.negatives": "catalog",
            "training.epochs": epochs,
            "training.kernels": "torch",
            "training.products": products,
        }
        metrics = run_of(RunConfig.from_settings(settings)).metrics
        found[f"NDCG@20, {products}"] = round(metrics["validation"]["ndcg@20"], 5)
    return found


def markdown(record: dict[str, Any]) -> str:
    """Tables for the documentation."""
    result, machine = record["result"], record["machine"]
    texts = [
        f"Value and gradients of a block of {result['batch_pairs']:,} positives of Electronic, d = 64, on the CPU "
        f"({machine['processor']}, {machine['cores']} cores, {record['measured']}; medians). Memory is what the step adds; "
        "errors of the gradients are relative to the formula in double precision.",
        table(result["rows"]),
    ]
    if result["trainings"]:
        texts += [
            "PSL-relu trained with both types of products, everything else alike; NDCG@20 on the validation part:",
            table(result["trainings"]),
        ]
    return "\n\n".join(texts)
