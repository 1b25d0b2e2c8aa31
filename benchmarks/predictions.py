"""A model of a training step in several processes: fitted to `processes`, compared with it, asked about larger machines.

Nothing is measured here. A step of p processes on c cores takes

    o (a scores / p + u users + f rows + g bytes (p - 1) / p + h collectives),        o = max(1, p / c)

where `scores` are users times items of the step; `users` are those of the step where items are divided, as every process then
works on all of them, and 0 where items are replicated; `rows` are the rows of the item table that a process moves; bytes and
collectives are counted by the group. The five numbers a, u, f, g and h are chosen so that the largest relative deviation is
small. For larger machines the same formula takes the speeds that are stated beside the answers.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from benchmarks._publish import load_record, table

DESCRIPTION = "model of a step in several processes, and what it predicts"
DIMENSION = 64
# What the document promises.
LARGEST_DEVIATION = 0.2
# Starts of the search, as the deviation has several local minima.
STARTS = 20
FLOAT = 4
# A parameter and the two moments of Adam.
COPIES = 3
PAIRS_PER_USER = 30
# Multiplications and additions of a score: one product, and two for the gradients.
OPERATIONS_PER_SCORE = 3 * 2 * DIMENSION
# How often a score is read or written by the three products and the row operation.
TOUCHES_PER_SCORE = 6
# Some tens of small operations on 16 sums: as many bytes as 500 scores, at 2 TB/s.
USER_ON_GPU = 1e-8


@dataclass(frozen=True)
class Speeds:
    """What one process does in how many seconds.

    Args:
        score: a score with its part of both gradients, where items are replicated.
        user: what every process does for a user of the step where items are divided.
        row: a row of the item table moved by Adam.
        byte: a byte summed over two processes, and more over several.
        collective: what a collective costs whatever it carries.
    """

    score: float
    user: float
    row: float
    byte: float
    collective: float


@dataclass(frozen=True)
class Step:
    """What a step does.

    Args:
        processes: how many.
        cores: of all processes together.
        scores: users times items, of all processes together.
        rows: of the item table that one process moves.
        n_bytes: that one process puts into collectives.
        collectives: how many.
        shared_users: users of the step if items are divided, else 0.
    """

    processes: int
    cores: int
    scores: float
    rows: float
    n_bytes: float
    collectives: float
    shared_users: float


def seconds(step: Step, speeds: Speeds) -> float:
    """What the model says."""
    crowding = max(1.0, step.processes / step.cores)
    computed = speeds.score * step.scores / step.processes + speeds.row * step.rows
    computed += speeds.user * step.shared_users
    sent = step.n_bytes * (step.processes - 1) / step.processes
    talked = speeds.byte * sent + speeds.collective * step.collectives
    return crowding * (computed + talked)


def measured_steps(kept: dict[str, Any]) -> list[tuple[Step, float]]:
    """The steps of the benchmark `processes`, with their seconds."""
    n_items = kept["result"]["n_items"]
    found = []
    for row in kept["result"]["rows"]:
        rows = n_items
        shared_users = 0.0
        if row["items"] == "sharded":
            rows /= row["processes"]
            shared_users = row["scores"] / _columns(row["negatives"], n_items)
        collectives = row["collectives"]
        if row["processes"] == 1:
            collectives = 0.0
        step = Step(
            processes=row["processes"],
            cores=kept["machine"]["cores"],
            scores=row["scores"],
            rows=rows,
            n_bytes=1000 * row["kB per step"],
            collectives=collectives,
            shared_users=shared_users,
        )
        found.append((step, row["ms per step"] / 1000))
    return found


def _columns(negatives: str, n_items: int) -> int:
    """Items that each user of a step is scored against: all, or as many as are drawn."""
    drawn = negatives.partition(":")[2]
    return int(drawn) if drawn else n_items


def fitted(steps: list[tuple[Step, float]]) -> Speeds:
    """The speeds whose largest relative deviation is smallest, as far as a search finds them."""

    def deviation(logarithms: np.ndarray) -> float:
        speeds = Speeds(*np.exp(logarithms))
        ratios = [abs(math.log(seconds(step, speeds) / truth)) for step, truth in steps]
        # The largest decides; the others keep the search moving.
        return max(ratios) + 0.1 * float(np.mean(ratios))

    random = np.random.default_rng(0)
    usual = np.log([5e-9, 1e-5, 1e-7, 1e-9, 1e-4])
    best = None
    for _ in range(STARTS):
        start = usual + random.normal(scale=1.0, size=len(usual))
        found = minimize(deviation, start, method="Nelder-Mead", options={"maxiter": 6000})
        if best is None or found.fun < best.fun:
            best = found
    return Speeds(*np.exp(best.x).tolist())


@dataclass(frozen=True)
class Machines:
    """Machines that nobody measured here.

    Args:
        name: what they are.
        processes: of all of them together.
        speeds: of a process.
        memory: bytes of a process.
        why: where the speeds come from.
    """

    name: str
    processes: int
    speeds: Speeds
    memory: float
    why: str


def gpu_machine() -> Machines:
    """Eight GPUs, by stated speeds."""
    products = 40e12
    bandwidth = 2e12
    link = 100e9
    score = OPERATIONS_PER_SCORE / products + TOUCHES_PER_SCORE * FLOAT / bandwidth
    row = 6 * COPIES * DIMENSION * FLOAT / bandwidth
    gpu = Speeds(score=score, user=USER_ON_GPU, row=row, byte=2 / link, collective=3e-5)
    return Machines(
        "8 GPUs in one machine",
        8,
        gpu,
        80e9,
        "40 TFLOP/s in products, 2 TB/s of memory, 100 GB/s between GPUs, 30 µs a collective, 80 GB",
    )


def cluster(speeds: Speeds) -> Machines:
    """A hundred machines of sixteen such cores, by the fitted speeds and a stated network."""
    cores = 16
    network = 25e9 / 8
    machine = Speeds(
        score=speeds.score / cores,
        user=speeds.user / cores,
        row=speeds.row / cores,
        byte=2 / network,
        collective=2e-3,
    )
    return Machines(
        "100 machines of 16 cores",
        100,
        machine,
        64e9,
        "16 cores like the measured one, 25 Gbit/s, 2 ms a collective among 100, 64 GB",
    )


@dataclass(frozen=True)
class Data:
    """How large a data set is."""

    users: float
    items: float

    @property
    def pairs(self) -> float:
        """Interactions."""
        return PAIRS_PER_USER * self.users


def predicted(
    machines: Machines, data: Data, *, is_sharded: bool, n_shared: int = 8192
) -> dict[str, Any]:
    """Memory of a process, and seconds of a step and an epoch; `shared` negatives, MF."""
    n = machines.processes
    batch = 4096 * n
    users = batch / PAIRS_PER_USER
    columns = min(n_shared + batch, data.items)
    item_rows = data.items
    # Sums of the item gradients travel where items are replicated.
    n_bytes = data.items * DIMENSION * FLOAT
    collectives = 2.0
    if is_sharded:
        item_rows = data.items / n
        # Vectors of users and their gradients, scores of positives, a maximum and 16 sums per user.
        n_bytes = users * (2 * DIMENSION + PAIRS_PER_USER + 17) * FLOAT
        collectives = 5.0
    else:
        # Each process has the users and the columns of its own part.
        columns = min(n_shared + batch / n, data.items)
    scores = users * columns
    shared_users = users if is_sharded else 0.0
    step = Step(n, n, scores, item_rows, n_bytes, collectives, shared_users)
    took = seconds(step, machines.speeds)
    n_steps = data.pairs / batch
    row_bytes = DIMENSION * FLOAT * COPIES
    of_users = data.users / n * row_bytes
    of_items = item_rows * row_bytes
    # Mapped from a file, so they need not fit.
    interactions = data.pairs * FLOAT + 8 * data.users
    needed = of_users + of_items + scores / n * FLOAT
    return {
        "machines": machines.name,
        "items": "divided" if is_sharded else "replicated",
        "GB users": _gigabytes(of_users),
        "GB items": _gigabytes(of_items),
        "GB mapped": _gigabytes(interactions),
        "fits": "yes" if needed <= machines.memory else "no",
        "MB sent per step": f"{n_bytes / 1e6:,.1f}",
        "ms per step": f"{1000 * took:,.0f}",
        "minutes per epoch": f"{took * n_steps / 60:,.1f}",
    }


def _gigabytes(n_bytes: float) -> str:
    return f"{n_bytes / 1e9:,.1f}"


SIZES = (Data(1e7, 1e6), Data(1e9, 1e8))


def run(*, report: Callable[[str], None] | None = None) -> dict[str, Any]:  # noqa: ARG001
    """Fit the model to the kept record of `processes`, and ask it."""
    kept = load_record("processes")
    if kept is None:
        raise FileNotFoundError("run `python -m benchmarks processes` first")
    steps = measured_steps(kept)
    speeds = fitted(steps)
    rows = []
    largest = 0.0
    for row, (step, truth) in zip(kept["result"]["rows"], steps, strict=True):
        says = seconds(step, speeds)
        deviation = says / truth - 1
        largest = max(largest, abs(deviation))
        rows.append(
            {
                "negatives": row["negatives"],
                "items": row["items"],
                "processes": row["processes"],
                "measured ms": round(1000 * truth, 2),
                "model ms": round(1000 * says, 2),
                "deviation": f"{100 * deviation:+.0f} %",
            }
        )
    asked = {}
    for data in SIZES:
        answers = []
        for machines in (gpu_machine(), cluster(speeds)):
            for is_sharded in (False, True):
                answers.append(predicted(machines, data, is_sharded=is_sharded))
        asked[f"{data.users:.0e} users, {data.items:.0e} items"] = answers
    return {
        "rows": rows,
        "speeds": speeds.__dict__,
        "largest_deviation": largest,
        "is_met": largest <= LARGEST_DEVIATION,
        "predictions": asked,
        "assumptions": {m.name: m.why for m in (gpu_machine(), cluster(speeds))},
    }


def markdown(record: dict[str, Any]) -> str:
    """The fit, what was assumed, and the answers."""
    result = record["result"]
    speeds = result["speeds"]
    parts = [
        f"Fitted: {1e9 * speeds['score']:.2f} ns a score, {1e6 * speeds['user']:.1f} µs a user where items are divided, "
        f"{1e9 * speeds['row']:.0f} ns a moved row, {1e9 * speeds['byte']:.2f} ns a byte, {1e6 * speeds['collective']:.0f} µs a "
        f"collective. The largest deviation is {100 * result['largest_deviation']:.0f} %.",
        table(result["rows"]),
        "Assumed, not measured:",
    ]
    for name, why in result["assumptions"].items():
        parts.append(f"- {name}: {why}.")
    for size, answers in result["predictions"].items():
        parts.append(
            f"**{size}, {PAIRS_PER_USER} interactions per user**, `shared:8192`, 4,096 pairs per process and step:"
        )
        parts.append(table(answers))
    return "\n\n".join(parts).replace(".\n\n- ", ".\n- ")
