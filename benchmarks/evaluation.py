"""Evaluating every user of Gowalla at four list lengths, beside the matrix product that it cannot do without.

Both run in turns in one process over the same blocks of users. A round's ratio is that of its two times, so other work
on the machine disturbs it little; the median over the rounds counts.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from benchmarks._data import published
from benchmarks._memory import MEBIBYTE, memory_growth
from benchmarks._publish import table
from benchmarks.machine import load
from pslrec.data import Dataset
from pslrec.evaluation import (
    DEFAULT_MEMORY_BUDGET,
    DEFAULT_METRICS,
    EmbeddingScorer,
    evaluate,
    ranking_task,
    users_at_once,
)
from pslrec.kernels import _top_k as top_k_kernel

DESCRIPTION = "full ranking of Gowalla (29,858 users x 40,988 items, K = 5, 20, 50, 100) beside its GEMM alone"
CUTOFFS = (5, 20, 50, 100)
DIMENSION = 64
TARGET = 2.5


def run(rounds: int = 5, *, report: Callable[[str], None] | None = None) -> dict[str, Any]:
    """Measure evaluation with the compiled and the plain top-K, and with less memory.

    Args:
        rounds: how often each pair of evaluation and product is timed.
        report: is told what is being done.
    """
    tell = report or (lambda _: None)
    tell("reading the data")
    dataset = published("gowalla")
    generator = torch.Generator().manual_seed(0)
    scorer = EmbeddingScorer(
        torch.randn(dataset.n_users, DIMENSION, generator=generator),
        torch.randn(dataset.n_items, DIMENSION, generator=generator),
    )
    compiled = top_k_kernel._compiled
    ways = [("plain torch", None, DEFAULT_MEMORY_BUDGET)]
    if compiled is not None:
        ways = [
            ("compiled", compiled, DEFAULT_MEMORY_BUDGET),
            ("compiled", compiled, 64 * MEBIBYTE),
            *ways,
        ]
    rows = []
    for name, kernel, budget in ways:
        top_k_kernel._compiled = kernel
        tell(f"{name}, {budget // MEBIBYTE} MiB")
        rows.append({"top-K": name, **_measure(scorer, dataset, budget, rounds)})
    top_k_kernel._compiled = compiled
    return {
        "rows": rows,
        "data": dataset.name,
        "rounds": rounds,
        "target_ratio": TARGET,
        "target_met": all(row["ratio"] <= TARGET for row in rows),
        "memory_within_budget": all(row["used MiB"] <= row["budget MiB"] for row in rows),
        "loads": load(),
    }


def _measure(scorer: EmbeddingScorer, dataset: Dataset, budget: int, rounds: int) -> dict[str, Any]:
    task = ranking_task(dataset, split="test", protocol="paper")
    users = users_at_once(task, CUTOFFS, DEFAULT_METRICS, memory_budget=budget)
    _multiply(scorer, users)
    used = memory_growth(lambda: _evaluate(scorer, dataset, budget))
    products, evaluations = [], []
    for _ in range(rounds):
        products.append(_seconds(lambda: _multiply(scorer, users)))
        evaluations.append(_seconds(lambda: _evaluate(scorer, dataset, budget)))
    ratios = [whole / product for whole, product in zip(evaluations, products, strict=True)]
    return {
        "budget MiB": budget // MEBIBYTE,
        "used MiB": round(used / MEBIBYTE),
        "users at once": users,
        "GEMM s": round(statistics.median(products), 2),
        "evaluation s": round(statistics.median(evaluations), 2),
        "ratio": round(statistics.median(ratios), 2),
        "highest ratio": round(max(ratios), 2),
    }


def _evaluate(scorer: EmbeddingScorer, dataset: Dataset, budget: int) -> None:
    evaluate(scorer, dataset, k=CUTOFFS, protocol="paper", memory_budget=budget)


def _multiply(scorer: EmbeddingScorer, users: int) -> None:
    product = torch.empty((users, scorer.n_items))
    for block in torch.split(scorer.user_vectors, users):
        torch.mm(block, scorer.item_vectors.T, out=product[: len(block)])


def _seconds(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def markdown(record: dict[str, Any]) -> str:
    """A sentence and a table for the documentation."""
    result, machine = record["result"], record["machine"]
    rows = result["rows"]
    cutoffs = ", ".join(map(str, CUTOFFS))
    return (
        f"All users of Gowalla, vectors of {DIMENSION} dimensions, K = {cutoffs}, all metrics except those over full rankings "
        f"({machine['processor']}, {machine['cores']} cores, {record['measured']}).\n\n{table(rows)}"
    )
