"""Training in 1, 2 and 4 processes: seconds of a step, and bytes that it puts on the wire.

One thread per process, exact PSL-relu on MF, made-up data. A sum of n bytes over p processes sends about 2 n (p - 1) / p
bytes from each; the column of bytes counts n, what a process puts into its collectives.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from benchmarks._data import REPOSITORY
from benchmarks._publish import about_load, table

DESCRIPTION = "training in 1, 2 and 4 processes: seconds and bytes of a step"
PROCESSES = (1, 2, 4)
MODES = ("catalog", "shared:2048")
ITEMS = ("replicated", "sharded")
SIZES = (20_000, 10_000)


def run(
    n_steps: int = 30,
    n_users: int = SIZES[0],
    n_items: int = SIZES[1],
    *,
    report: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Measure every number of processes, both modes of negatives, and items replicated or sharded.

    Args:
        n_steps: measured after a first one, which warms up.
        n_users: of the made-up data.
        n_items: of the made-up data.
        report: is told what is being done.
    """
    tell = report or (lambda _: None)
    rows = []
    for mode in MODES:
        for items in ITEMS:
            for processes in PROCESSES:
                if processes == 1 and items == "sharded":
                    # A single process has nothing to divide.
                    continue
                tell(f"{mode}, {items}, {processes} processes")
                given = (mode, items, "yes", n_users, n_items, n_steps)
                rows.append(_row(processes, given))
    tell("without overlap")
    waiting = _measured(2, ("catalog", "replicated", "no", n_users, n_items, n_steps))
    overlapping = _measured(2, ("catalog", "replicated", "yes", n_users, n_items, n_steps))
    overlap = {
        "seconds_with": overlapping["seconds"],
        "seconds_without": waiting["seconds"],
        "gain": 1 - overlapping["seconds"] / waiting["seconds"],
    }
    return {"rows": rows, "overlap": overlap, "n_users": n_users, "n_items": n_items}


def _row(processes: int, given: tuple[Any, ...]) -> dict[str, Any]:
    found = _measured(processes, given)
    return {
        "negatives": given[0],
        "items": given[1],
        "processes": processes,
        "ms per step": round(1000 * found["seconds"], 2),
        "kB per step": round(found["bytes"] / 1000, 1),
        "collectives": round(found["collectives"], 1),
        "scores": found["scores"],
    }


def _measured(processes: int, given: tuple[Any, ...]) -> dict[str, Any]:
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
        *("--nproc-per-node", str(processes), "-m", "benchmarks._process_step", *map(str, given)),
    ]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, env=environment, cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"`{' '.join(command[2:])}` failed:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def markdown(record: dict[str, Any]) -> str:
    """Sentences and a table for the documentation."""
    result, machine = record["result"], record["machine"]
    overlap = result["overlap"]
    return (
        f"Exact PSL-relu on MF, {result['n_users']:,} users, {result['n_items']:,} items, 64 dimensions, steps of 4,096 pairs, "
        f"one thread per process ({machine['processor']}, {machine['cores']} cores, {record['measured']}; medians). kB are "
        f"what a process puts into its collectives.{about_load(record)}\n\n{table(result['rows'])}\n\n"
        "With 2 processes and replicated items, letting the sum of the item gradients overlap with the step of the users "
        f"takes {1000 * overlap['seconds_with']:.2f} ms per step, waiting for it {1000 * overlap['seconds_without']:.2f} ms."
    )
