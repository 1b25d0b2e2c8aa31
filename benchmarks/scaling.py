"""How exact training grows: with the length of a history not at all, with users x items in proportion, in stated memory.

Histories: the compiled row operation on made-up scores, all items negatives, so that there is the same work at any length. The
plain way over every (positive, negative) pair stands beside it. Epochs: made-up interactions of three sizes.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from benchmarks._child import in_child
from benchmarks._data import made_up
from benchmarks._epochs import epoch_seconds
from benchmarks._memory import MEBIBYTE
from benchmarks._plots import WIDE, series_by
from benchmarks._publish import about_load, table
from pslrec.forms import FusedForm
from pslrec.kernels import (
    IS_COMPILED,
    CatalogLists,
    row_gradients,
)
from pslrec.losses import SURROGATES
from pslrec.reporting import Axis, line_chart, standalone_svg
from pslrec.rows import Rows

DESCRIPTION = "exact training by length of history, by users x items, and its memory"
LOSSES = {
    "sl": "exp",
    "psl-relu": "relu",
    "psl-tanh": "tanh",
    "psl-atan": "atan",
    "psl-softplus": "softplus",
}
HISTORIES = (10, 100, 1_000, 10_000)
CATALOGUE = 20_000
EXPONENT = 10.0
USERS_AT_ONCE = 32
ROW_ROUNDS = 25
# Users and items; twelve pairs or so per user.
SIZES = ((2_000, 4_000), (4_000, 8_000), (8_000, 16_000))
PAIRS_PER_USER = 17
ALL_PAIRS = "all pairs (torch, tanh)"
LONGEST_OF_ALL_PAIRS = 1_000
# What a longest history may cost beside the shortest, and an epoch beside the fitted line.
TARGETS = {"history_ratio": 1.5, "fit_deviation": 0.25}


def run(rounds: int = 3, *, report: Callable[[str], None] | None = None) -> dict[str, Any]:
    """Measure all three.

    Args:
        rounds: of epochs.
        report: is told what is being done.
    """
    if not IS_COMPILED:
        raise RuntimeError("the compiled kernels are not built; install with a C++ compiler")
    tell = report or (lambda _: None)
    histories = _histories(tell)
    epochs = _epochs(rounds, tell)
    fits = [_fit(loss, [point for point in epochs if point["loss"] == loss]) for loss in LOSSES]
    memory = _memory(tell)
    found = {
        "history_ratio": max(row["longest / shortest"] for row in _history_rows(histories)),
        "fit_deviation": max(fit["largest deviation"] for fit in fits),
    }
    return {
        "rows": _history_rows(histories),
        "fits": fits,
        "memory": memory,
        "histories": histories,
        "epochs": epochs,
        **found,
        "targets": TARGETS,
        "targets_met": {
            **{name: found[name] <= target for name, target in TARGETS.items()},
            "memory": all(row["measured MiB"] <= row["stated MiB"] for row in memory),
        },
    }


def _histories(tell: Callable[[str], None]) -> list[dict[str, Any]]:
    points = []
    for length in HISTORIES:
        tell(f"histories of {length:,}")
        for loss, surrogate in LOSSES.items():
            seconds = _row_seconds(length, FusedForm("log-sum", surrogate, EXPONENT), ROW_ROUNDS)
            points.append(
                {"loss": loss, "positives": length, "microseconds": round(1e6 * seconds, 1)}
            )
        if length <= LONGEST_OF_ALL_PAIRS:
            points.append(
                {
                    "loss": ALL_PAIRS,
                    "positives": length,
                    "microseconds": round(1e6 * _all_pairs(length), 1),
                }
            )
    return points


def _row_seconds(length: int, form: FusedForm, rounds: int) -> float:
    """Of one user, in the fastest round: a row is so short that others' work is seen at once."""
    random = np.random.default_rng(length)
    scores = torch.from_numpy(
        random.normal(0, 0.12, (USERS_AT_ONCE, CATALOGUE)).clip(-0.5, 0.5).astype(np.float32)
    )
    positives = np.sort(
        np.stack([random.choice(CATALOGUE, length, replace=False) for _ in range(USERS_AT_ONCE)])
    )
    lists = CatalogLists(
        np.arange(USERS_AT_ONCE),
        Rows.from_lists(list(positives)),
        Rows.empty(USERS_AT_ONCE),
        CATALOGUE,
    )
    seconds = []
    for _ in range(1 + rounds):
        slopes = scores.clone()
        started = time.perf_counter()
        row_gradients(slopes, lists, form)
        seconds.append((time.perf_counter() - started) / USERS_AT_ONCE)
    return min(seconds[1:])


def _all_pairs(length: int) -> float:
    """Loss and gradient of one user as they are written, the faster of two."""
    scores = (
        torch.randn(CATALOGUE, generator=torch.Generator().manual_seed(length)) * 0.12
    ).requires_grad_()
    sigma, seconds = SURROGATES["tanh"](), []
    for _ in range(2):
        started = time.perf_counter()
        differences = scores - scores[:length].unsqueeze(1)
        torch.logsumexp(EXPONENT * sigma.log_value(differences), dim=1).sum().backward()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def _history_rows(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = []
    for loss in LOSSES:
        by_length = {
            point["positives"]: point["microseconds"] for point in points if point["loss"] == loss
        }
        ratio = round(by_length[HISTORIES[-1]] / by_length[HISTORIES[0]], 2)
        columns = {f"{length:,} positives": by_length[length] for length in HISTORIES}
        rows.append({"loss": loss, **columns, "longest / shortest": ratio})
    return rows


def _epochs(rounds: int, tell: Callable[[str], None]) -> list[dict[str, Any]]:
    points = []
    for n_users, n_items in SIZES:
        train = made_up(n_users, n_items, PAIRS_PER_USER * n_users).train
        for loss in LOSSES:
            tell(f"epochs of {loss}, {n_users:,} x {n_items:,}")
            seconds = statistics.median(
                epoch_seconds(train, {"loss.name": loss, "loss.temperature": 0.1}, rounds=rounds)
            )
            points.append(
                {"loss": loss, "millions": n_users * n_items / 1e6, "seconds": round(seconds, 4)}
            )
    return points


def _fit(loss: str, points: list[dict[str, Any]]) -> dict[str, Any]:
    """The line through the origin that is nearest in relative terms."""
    rates = [point["seconds"] / point["millions"] for point in points]
    rate = sum(rates) / len(rates)
    by_size = {
        f"{point['millions']:,.0f} million, s": round(point["seconds"], 3) for point in points
    }
    deviation = max(abs(each / rate - 1) for each in rates)
    return {
        "loss": loss,
        **by_size,
        "ns per user x item": round(1000 * rate, 2),
        "largest deviation": round(deviation, 2),
    }


def _memory(tell: Callable[[str], None]) -> list[dict[str, Any]]:
    rows = []
    for n_users, n_items in SIZES:
        for loss in ("sl", "psl-relu", "psl-tanh"):
            tell(f"memory of {loss}, {n_users:,} x {n_items:,}")
            result = in_child("_epoch_memory", n_users, n_items, PAIRS_PER_USER * n_users, loss)
            rows.append(
                {
                    "users x items": f"{n_users:,} x {n_items:,}",
                    "loss": loss,
                    "stated MiB": round(result["stated"] / MEBIBYTE, 1),
                    "measured MiB": round(result["grown"] / MEBIBYTE, 1),
                }
            )
    return rows


def plots(record: dict[str, Any]) -> dict[str, str]:
    """Time per user by length of its history, and time per epoch by users x items."""
    result = record["result"]
    histories = line_chart(
        f"Row operation, {CATALOGUE:,} items",
        "Microseconds per user by the number of its positives, one line for each loss.",
        series_by("loss", result["histories"], x="positives", y="microseconds"),
        x=Axis("positives of the user", is_log=True),
        y=Axis("microseconds per user", is_log=True),
        size=WIDE,
    )
    epochs = line_chart(
        "Whole epochs of exact training, MF, d = 64",
        "Seconds per epoch by users times items, one line for each loss.",
        series_by("loss", result["epochs"], x="millions", y="seconds"),
        x=Axis("users x items, millions", from_zero=True),
        y=Axis("seconds per epoch", from_zero=True),
        size=WIDE,
    )
    return {
        "history-length": standalone_svg(histories),
        "epoch-scaling": standalone_svg(epochs),
    }


def markdown(record: dict[str, Any]) -> str:
    """Sentences and tables for the documentation."""
    result, machine = record["result"], record["machine"]
    return "\n\n".join(
        [
            f"Microseconds per row operation (loss and gradient of one user over {CATALOGUE:,} items, temperature "
            f"{1 / EXPONENT:g}) by the number of positives, fastest of several rounds "
            f"({machine['processor']}, {machine['cores']} cores, {record['measured']}).{about_load(record)}",
            table(result["rows"]),
            "Seconds per epoch on synthetic interactions, and the line through the origin that fits them:",
            table(result["fits"]),
            "Memory of the model, the optimiser and all steps of an epoch: what `pslrec train` predicts before it starts, and "
            "how much the process grew:",
            table(result["memory"]),
        ]
    )
