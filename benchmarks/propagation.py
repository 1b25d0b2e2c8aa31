"""LightGCN and XSimGCL: propagation, forward and backward, beside plain sparse products of the same size; whole epochs.

The contestants run in turns in one process, each round's ratio is that of its times, and the median over the rounds counts. The
plain products are those that propagation can not do without: users from items and items from users, for every layer, there and
back. XSimGCL's noise is in its time and in none of the products.
"""

import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from benchmarks._data import published
from benchmarks._epochs import epoch_seconds
from benchmarks._publish import about_load, table
from pslrec.backbones import BACKBONES, Backbone
from pslrec.data import Interactions

DESCRIPTION = "LightGCN and XSimGCL on Electronic: propagation beside plain sparse products, and whole exact epochs"
DIMENSION = 64
NAMES = ("lightgcn", "xsimgcl")
TARGETS = {"ratio": 1.5, "lightgcn_epoch_seconds": 10.0}


def run(
    rounds: int = 21, *, epochs: int = 3, report: Callable[[str], None] | None = None
) -> dict[str, Any]:
    """Measure propagation and epochs.

    Args:
        rounds: of propagation and products.
        epochs: of training with PSL-relu over the whole catalogue.
        report: is told what is being done.
    """
    tell = report or (lambda _: None)
    dataset = published("electronic")
    rows = []
    for name in NAMES:
        tell(f"propagation of {name}")
        row = {"backbone": name, **_propagation(dataset.train, name, rounds)}
        tell(f"epochs of {name}")
        settings = {
            "backbone.name": name,
            "backbone.dimension": DIMENSION,
            "loss.name": "psl-relu",
            "loss.temperature": 0.1,
        }
        seconds = epoch_seconds(dataset.train, settings, rounds=epochs)
        rows.append({**row, "epoch s": round(statistics.median(seconds), 2)})
    return {
        "rows": rows,
        "data": dataset.name,
        "rounds": rounds,
        "targets": TARGETS,
        "targets_met": {
            "ratio": all(row["times torch"] <= TARGETS["ratio"] for row in rows),
            "lightgcn_epoch_seconds": rows[0]["epoch s"] < TARGETS["lightgcn_epoch_seconds"],
        },
    }


def _propagation(train: Interactions, name: str, rounds: int) -> dict[str, Any]:
    backbone = BACKBONES[name](train, dimension=DIMENSION).train()
    n_layers = int(backbone.options()["layers"])  # type: ignore[call-overload]
    contestants = {
        "propagation": _there_and_back(backbone),
        "torch": _torch_products(train, backbone, n_layers),
        "scipy": _scipy_products(train, backbone, n_layers),
    }
    seconds: dict[str, list[float]] = {contestant: [] for contestant in contestants}
    for _ in range(1 + rounds):
        for contestant, work in contestants.items():
            started = time.perf_counter()
            work()
            seconds[contestant].append(time.perf_counter() - started)
    times = {
        plain: [
            ours / theirs
            for ours, theirs in zip(seconds["propagation"][1:], seconds[plain][1:], strict=True)
        ]
        for plain in ("torch", "scipy")
    }
    return {
        "layers": n_layers,
        **{
            f"{contestant} ms": round(1000 * statistics.median(found[1:]), 1)
            for contestant, found in seconds.items()
        },
        **{
            f"times {plain}": round(statistics.median(ratios), 2) for plain, ratios in times.items()
        },
    }


def _there_and_back(backbone: Backbone) -> Callable[[], object]:
    noise = torch.Generator().manual_seed(0)
    gradients = [torch.randn_like(side) for side in backbone(noise)[:2]]

    def work() -> None:
        backbone.zero_grad()
        torch.autograd.backward(list(backbone(noise)[:2]), gradients)

    return work


def _torch_products(train: Interactions, backbone: Backbone, n_layers: int) -> Callable[[], object]:
    users, items = (side.detach().clone() for side in (backbone.user_table, backbone.item_table))
    to_users, to_items = (_sparse(matrix) for matrix in _matrices(train))

    def work() -> None:
        for _ in range(2 * n_layers):
            torch.sparse.mm(to_users, items)
            torch.sparse.mm(to_items, users)

    return work


def _scipy_products(train: Interactions, backbone: Backbone, n_layers: int) -> Callable[[], object]:
    users, items = (
        side.detach().clone().numpy() for side in (backbone.user_table, backbone.item_table)
    )
    to_users, to_items = _matrices(train)

    def work() -> None:
        for _ in range(2 * n_layers):
            to_users @ items
            to_items @ users

    return work


def _matrices(train: Interactions) -> tuple[Any, Any]:
    matrix = train.matrix().astype("float32").tocsr()
    return matrix, matrix.T.tocsr()


def _sparse(matrix: Any) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support", category=UserWarning)
        parts = (torch.from_numpy(part) for part in (matrix.indptr, matrix.indices, matrix.data))
        return torch.sparse_csr_tensor(*parts, size=matrix.shape, check_invariants=False)


def markdown(record: dict[str, Any]) -> str:
    """Sentences and a table for the documentation."""
    result, machine = record["result"], record["machine"]
    return (
        f"Propagation forward and backward, {DIMENSION} dimensions, Electronic, compared with the sparse products that it "
        "consists of: `torch.sparse.mm` on both cores and scipy, which uses one. The last column is a whole epoch of exact "
        "PSL-relu "
        f"({machine['processor']}, {machine['cores']} cores, {record['measured']}; medians)."
        f"{about_load(record)}\n\n{table(result['rows'])}"
    )
