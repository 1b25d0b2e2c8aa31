"""Whole epochs of exact training beside what torch takes for their matrix products, the usual PyTorch step, other libraries.

An epoch and its products run in turns in one process, so other work on the machine disturbs the ratio little; the median over
the rounds counts. Evaluation is left out, everything else is in.
"""

import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from benchmarks._data import published
from benchmarks._publish import load_record, table
from pslrec.config import RunConfig
from pslrec.data import Dataset, Interactions
from pslrec.experiment import MemoryStore, TrainingData, build_batches, build_model
from pslrec.kernels import _adam as adam
from pslrec.kernels import _catalog as catalog
from pslrec.sampling import UserBlocks
from pslrec.training import EpochFinished, Event, Trainer

DESCRIPTION = (
    "exact epochs of MF, d = 64, beside torch's three GEMMs, a naive PyTorch epoch, and peers"
)
DIMENSION = 64
PRODUCTS = ("times_transposed", "times", "transposed_times")
# At most so many times the products.
TARGETS = {"psl-relu": 1.8, "sl": 1.6, "psl-tanh": 2.5, "psl-atan": 2.5}
NAIVE_TARGET = 200
REST_TARGET = 0.25
NAIVE_STEPS = 5
NEGATIVES = 1000
PEER_ROUNDS = 5


def run(
    rounds: int = 7, gowalla_rounds: int = 2, *, report: Callable[[str], None] | None = None
) -> dict[str, Any]:
    """Measure epochs, their parts, and what they are compared with.

    Args:
        rounds: epochs of Electronic for each loss.
        gowalla_rounds: of Gowalla, whose epochs are ten times longer; with 0 its last kept rows stay.
        report: is told what is being done.
    """
    tell = report or (lambda _: None)
    before = (load_record("engine") or {}).get("result", {}) if gowalla_rounds == 0 else {}
    rows = []
    profiles = []
    for name, n_rounds in (("electronic", rounds), ("gowalla", gowalla_rounds)):
        if n_rounds == 0:
            rows += [row for row in before.get("rows", []) if row["data"] == name]
            profiles += [row for row in before.get("profiles", []) if row["data"] == name]
            continue
        dataset = published(name)
        for loss, target in TARGETS.items():
            tell(f"{loss} on {name}")
            rows.append(
                {"data": name, "loss": loss, **_epochs(dataset, loss, n_rounds), "target": target}
            )
        tell(f"profile on {name}")
        profiles.append({"data": name, **_profile(dataset, "psl-relu")})
    electronic = published("electronic")
    tell("the naive step")
    naive = _naive_epoch(electronic.train)
    fastest = next(row for row in rows if row["data"] == "electronic" and row["loss"] == "psl-relu")
    tell("peers")
    return {
        "rows": rows,
        "profiles": profiles,
        "naive_epoch_seconds": round(naive, 1),
        "times_faster_than_naive": round(naive / fastest["epoch s"]),
        "naive_target": NAIVE_TARGET,
        "rest_target": REST_TARGET,
        "peers": _peers(electronic.train),
    }


def _trainer(
    dataset: Dataset, loss: str, epochs: int, listener: Callable[[Event], None]
) -> Trainer:
    config = RunConfig.from_settings(
        {
            "loss.name": loss,
            "loss.temperature": 0.1,
            "sampling.negatives": "catalog",
            "training.epochs": epochs,
            "backbone.dimension": DIMENSION,
        }
    ).resolved()
    backbone, built = build_model(config, dataset.train)
    batches = build_batches(config, TrainingData(dataset, dataset.train, None))
    options = config.training.trainer_options(len(batches))
    return Trainer(
        backbone, built, batches, options=options, store=MemoryStore(), listeners=(listener,)
    )


def _epochs(dataset: Dataset, loss: str, rounds: int) -> dict[str, Any]:
    epochs: list[float] = []
    products: list[float] = []
    started = time.perf_counter()

    def listen(event: Event) -> None:
        nonlocal started
        if isinstance(event, EpochFinished):
            epochs.append(time.perf_counter() - started)
            products.append(_seconds(multiply))
            started = time.perf_counter()

    trainer = _trainer(dataset, loss, rounds + 1, listen)
    multiply = _products(trainer.batches)
    started = time.perf_counter()
    trainer.fit()
    # The first round warms up.
    ratios = [whole / product for whole, product in zip(epochs[1:], products[1:], strict=True)]
    return {
        "steps": len(trainer.batches),
        "torch's GEMMs s": round(statistics.median(products[1:]), 3),
        "epoch s": round(statistics.median(epochs[1:]), 3),
        "ratio": round(statistics.median(ratios), 2),
        "lowest": round(min(ratios), 2),
        "highest": round(max(ratios), 2),
    }


def _products(batches: Any) -> Callable[[], None]:
    """The three products of every block of an epoch by torch, and nothing else."""
    sizes = [len(block.users) for block in batches.epoch(0)]
    n_items = next(batches.epoch(0)).pool.n_items
    users, items = torch.randn(max(sizes), DIMENSION), torch.randn(n_items, DIMENSION)
    scores = torch.empty(max(sizes) * n_items)
    user_gradients, item_gradients = torch.empty_like(users), torch.empty_like(items)

    def multiply() -> None:
        for size in sizes:
            block = scores[: size * n_items].view(size, n_items)
            torch.mm(users[:size], items.T, out=block)
            torch.mm(block, items, out=user_gradients[:size])
            torch.mm(block.T, users[:size], out=item_gradients)

    return multiply


def _seconds(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


class _Timed:
    """The compiled module with a clock on every function."""

    def __init__(self, module: Any, seconds: Counter[str]) -> None:
        self._module, self._seconds = module, seconds

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = getattr(self._module, name)

        def timed(*arguments: Any) -> Any:
            started = time.perf_counter()
            result = function(*arguments)
            # Adam on all items is one thing, bringing the block's users up to date another.
            what = "adam items" if name == "adam_update" and len(arguments[4]) == 0 else name
            self._seconds[what] += time.perf_counter() - started
            return result

        return timed


@contextmanager
def _clocks() -> Iterator[Counter[str]]:
    seconds: Counter[str] = Counter()
    plain = catalog.native
    products = {name: getattr(catalog, name) for name in PRODUCTS}

    def timed(multiply: Callable[..., Any]) -> Callable[..., Any]:
        def timed_multiply(*arguments: Any, **options: Any) -> Any:
            started = time.perf_counter()
            result = multiply(*arguments, **options)
            seconds["GEMMs"] += time.perf_counter() - started
            return result

        return timed_multiply

    catalog.native = adam.native = _Timed(plain, seconds)
    for name, multiply in products.items():
        setattr(catalog, name, timed(multiply))
    try:
        yield seconds
    finally:
        catalog.native = adam.native = plain
        for name, multiply in products.items():
            setattr(catalog, name, multiply)


def _profile(dataset: Dataset, loss: str) -> dict[str, Any]:
    """Where an epoch's time goes, of the fastest of three; clocks cost a little themselves."""
    best: dict[str, float] = {}
    started = time.perf_counter()

    def listen(event: Event) -> None:
        nonlocal started, best
        if isinstance(event, EpochFinished):
            whole = time.perf_counter() - started
            if event.epoch > 1 and (not best or whole < best["epoch"]):
                best = {"epoch": whole, **seconds}
            seconds.clear()
            started = time.perf_counter()

    with _clocks() as seconds:
        trainer = _trainer(dataset, loss, 4, listen)
        started = time.perf_counter()
        trainer.fit()
    parts = {
        "GEMMs s": best["GEMMs"],
        "row operation s": best["catalog_rows"],
        "Adam, items s": best["adam items"],
        "Adam, users s": best["adam_fetch"] + best["adam_update"],
    }
    rest = best["epoch"] - sum(parts.values())
    beside = (best["epoch"] - best["GEMMs"] - best["catalog_rows"]) / best["epoch"]
    rounded = {name: round(value, 3) for name, value in parts.items()}
    return {
        "loss": loss,
        "epoch s": round(best["epoch"], 3),
        **rounded,
        "everything else s": round(rest, 3),
        "share beside GEMMs and row operation": round(beside, 3),
    }


def _naive_epoch(train: Interactions) -> float:
    """An epoch of what is usually written, from a few of its steps; no negative is checked for being a positive."""
    generator = torch.Generator().manual_seed(0)
    users = torch.randn(train.n_users, DIMENSION, generator=generator).requires_grad_()
    items = torch.randn(train.n_items, DIMENSION, generator=generator).requires_grad_()
    optimizer = torch.optim.Adam([users, items], lr=0.01)
    pairs = np.random.default_rng(0).permutation(len(train))[:1024]
    rows = torch.from_numpy(train.users[pairs]).long()
    positives = torch.from_numpy(train.items[pairs]).long()

    def step() -> None:
        negatives = torch.randint(train.n_items, (len(rows), NEGATIVES), generator=generator)
        optimizer.zero_grad()
        user = functional.normalize(users[rows], dim=-1)
        candidates = items[torch.cat([positives.unsqueeze(1), negatives], dim=1)]
        scores = (user.unsqueeze(1) * functional.normalize(candidates, dim=-1)).sum(dim=-1) / 2
        differences = scores[:, 1:] - scores[:, :1]
        torch.logsumexp(10 * (1 + differences).clamp(min=1e-7).log(), dim=1).mean().backward()
        optimizer.step()

    step()
    return (
        _seconds(lambda: [step() for _ in range(NAIVE_STEPS)])
        / NAIVE_STEPS
        * len(UserBlocks(train))
    )  # type: ignore[arg-type]


def _peers(train: Interactions) -> list[dict[str, Any]]:
    try:
        from implicit.als import AlternatingLeastSquares
        from implicit.bpr import BayesianPersonalizedRanking
    except ImportError:
        return [
            {"peer": "implicit", "epoch s": "not installed; pip install pslrec[bench]", "does": ""}
        ]
    matrix = train.matrix().astype(np.float32)
    rows = []
    for peer, does in (
        (BayesianPersonalizedRanking, "one sampled negative per positive, inner products, SGD"),
        (AlternatingLeastSquares, "whole catalogue, weighted squares, conjugate gradient"),
    ):
        seconds = [_peer_seconds(peer, matrix, iterations) for iterations in (1, 1 + PEER_ROUNDS)]
        epoch = (seconds[1] - seconds[0]) / PEER_ROUNDS
        rows.append({"peer": f"implicit {peer.__name__}", "epoch s": round(epoch, 3), "does": does})
    return rows


def _peer_seconds(peer: Any, matrix: Any, iterations: int) -> float:
    from threadpoolctl import threadpool_limits

    # Its authors ask for this: with threads of BLAS beside its own, `implicit` may be many times slower.
    with threadpool_limits(1, "blas"):
        model = peer(factors=DIMENSION, iterations=iterations, random_state=0)
        return min(_seconds(lambda: model.fit(matrix, show_progress=False)) for _ in range(2))


def markdown(record: dict[str, Any]) -> str:
    """Sentences and tables for the documentation."""
    result, machine = record["result"], record["machine"]
    naive = (
        f"A naive PyTorch epoch with {NEGATIVES} sampled negatives per pair on Electronic, extrapolated from {NAIVE_STEPS} "
        f"steps: {result['naive_epoch_seconds']:.0f} s, {result['times_faster_than_naive']} times the exact one of PSL-relu."
    )
    return "\n\n".join(
        [
            f"Wall clock of whole epochs without evaluation, 1,024 positives per step, dense Adam "
            f"({machine['processor']}, {machine['cores']} cores, {record['measured']}; medians).",
            table(result["rows"]),
            naive,
            "Where the time of an epoch goes:",
            table(result["profiles"]),
            "An epoch of other libraries on Electronic with 64 dimensions, each doing different work:",
            table(result["peers"]),
        ]
    )


def headline(record: dict[str, Any]) -> str:
    """The cost of an exact epoch in one sentence."""
    rows = record["result"]["rows"]
    ratios = [row["ratio"] for row in rows]
    n_losses = len({row["loss"] for row in rows})
    n_data = len({row["data"] for row in rows})
    return (
        f"A whole exact epoch takes {min(ratios)} to {max(ratios)} times as long as torch takes for "
        f"its matrix products alone (medians of {n_losses} losses on {n_data} data sets)."
    )
