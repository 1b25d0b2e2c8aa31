"""Training in 1, 2 and 4 processes: seconds of a step, bytes that it puts on the wire, and resident memory.

One thread per process, exact PSL-relu on MF, made-up data. A sum of n bytes over p processes sends about 2 n (p - 1) / p
bytes from each; the column of bytes counts n, what a process puts into its collectives.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks._data import REPOSITORY
from benchmarks._large_log import write_large_log
from benchmarks._publish import about_load, table

DESCRIPTION = "training in 1, 2 and 4 processes: seconds and bytes of a step"
PROCESSES = (1, 2, 4)
MODES = ("catalog", "shared:2048")
ITEMS = ("replicated", "sharded")
SIZES = (20_000, 10_000)
# The log whose interactions are measured in memory.
LOG_USERS = 100_000
LOG_ITEMS = 5_000


def run(
    n_steps: int = 30,
    n_users: int = SIZES[0],
    n_items: int = SIZES[1],
    n_log_users: int = LOG_USERS,
    *,
    report: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Measure every number of processes, both modes of negatives, and items replicated or sharded.

    Args:
        n_steps: measured after a first one, which warms up.
        n_users: of the made-up data.
        n_items: of the made-up data.
        n_log_users: of the log whose interactions are measured in memory.
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
    memory = _memory(n_log_users, tell)
    tell("without overlap")
    waiting = _measured(2, ("catalog", "replicated", "no", n_users, n_items, n_steps))
    overlapping = _measured(2, ("catalog", "replicated", "yes", n_users, n_items, n_steps))
    overlap = {
        "seconds_with": overlapping["seconds"],
        "seconds_without": waiting["seconds"],
        "gain": 1 - overlapping["seconds"] / waiting["seconds"],
    }
    return {
        "rows": rows,
        "overlap": overlap,
        "memory": memory,
        "n_users": n_users,
        "n_items": n_items,
    }


def _memory(n_log_users: int, tell: Callable[[str], None]) -> dict[str, Any]:
    """Resident memory of every process after an epoch, on a log that all hold, and on one that they map."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="pslrec-processes-") as place:
        log = Path(place) / "log"
        n_rows = write_large_log(log, n_log_users, LOG_ITEMS)
        cache = {"PSLREC_CACHE_DIR": str(Path(place) / "cache")}
        for held, out_of_core in (("whole, by each process", "off"), ("mapped", "auto")):
            for processes in PROCESSES:
                if processes == 1 and out_of_core == "auto":
                    # A single process holds a log of this size.
                    continue
                tell(f"memory, {held}, {processes} processes")
                module = "benchmarks._process_memory"
                found = _by_torchrun(processes, module, (log, out_of_core), cache)
                rows.append(_memory_row(held, found))
    return {"rows": rows, "n_rows": n_rows, "n_users": n_log_users}


def _memory_row(held: str, found: list[list[float]]) -> dict[str, Any]:
    own = [each[0] for each in found]
    mapped = [each[1] for each in found]
    return {
        "interactions": held,
        "processes": len(found),
        "own MB, most": round(max(own), 1),
        "mapped MB, most": round(max(mapped), 1),
        "own MB, all": round(sum(own), 1),
    }


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
    found: dict[str, Any] = _by_torchrun(processes, "benchmarks._process_step", given)
    return found


def _by_torchrun(
    processes: int, module: str, given: tuple[Any, ...], variables: dict[str, str] | None = None
) -> Any:
    """What the first of several processes prints, read as JSON."""
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
        *("--nproc-per-node", str(processes), "-m", module, *map(str, given)),
    ]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"}
    environment |= variables or {}
    done = subprocess.run(
        command, env=environment, cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"`{' '.join(command[2:])}` failed:\n{done.stderr}")
    return json.loads(done.stdout)


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
        f"{_about_memory(result)}"
    )


def _about_memory(result: dict[str, Any]) -> str:
    memory = result.get("memory")
    if memory is None:
        # Recorded before it was measured.
        return ""
    return (
        f"\n\nBy how much loading a log of {memory['n_rows']:,} rows of {memory['n_users']:,} users and an epoch of MF with 4 "
        "dimensions made each process grow. Mapped memory is the system's, which holds it once for all processes and may "
        "take it back.\n\n"
        f"{table(memory['rows'])}"
    )
