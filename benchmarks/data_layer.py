"""From a CSV file with string ids to the CSR matrix of its 10-core, beside the straightforward way with pandas.

Every contestant runs in a process of its own on two cores, in turns; the fastest round of each counts, which is the one
that other work on the machine disturbed least. Both must give the same matrix over the same ids.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks._log_to_matrix import CORES
from benchmarks.machine import load

DESCRIPTION = "CSV with string ids -> ratings >= 3, each pair once, 10-core -> CSR, beside pandas"
CONTESTANTS = ("pandas", "pslrec")
TARGETS = {"seconds": 20.0, "peak_gb": 3.0, "times_faster": 3.0}
REPOSITORY = Path(__file__).resolve().parent.parent


def run(
    n_rows: int = 10_000_000,
    *,
    rounds: int = 3,
    seed: int = 0,
    report: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Measure both contestants on a made-up log.

    Args:
        n_rows: of the log.
        rounds: how often each contestant runs.
        seed: of the log.
        report: is told what is being done.
    """
    tell = report or (lambda _: None)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "log.csv"
        tell(f"writing {n_rows:,} rows")
        _in_process("generate", str(path), str(n_rows), str(seed))
        measured: dict[str, list[dict[str, Any]]] = {name: [] for name in CONTESTANTS}
        for turn in range(rounds):
            for name in CONTESTANTS:
                tell(f"{name}, round {turn + 1} of {rounds}")
                measured[name].append({**json.loads(_in_process(name, str(path))), "load": load()})
        return _summary(measured, file_mb=round(path.stat().st_size / 1e6, 1))


def _in_process(*arguments: str) -> str:
    environment = {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY),
        "POLARS_MAX_THREADS": str(CORES),
        "OMP_NUM_THREADS": str(CORES),
    }
    command = [sys.executable, "-m", "benchmarks._log_to_matrix", *arguments]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if finished.returncode:
        raise RuntimeError(f"`{' '.join(arguments[:1])}` failed:\n{finished.stderr}")
    return finished.stdout


def _summary(measured: dict[str, list[dict[str, Any]]], file_mb: float) -> dict[str, Any]:
    digests = {name: {result["digest"] for result in results} for name, results in measured.items()}
    if len(set.union(*digests.values())) != 1:
        raise RuntimeError(f"the contestants do not agree: {measured}")
    best = {
        name: min(results, key=lambda result: result["seconds"])
        for name, results in measured.items()
    }
    ours, theirs = best["pslrec"], best["pandas"]
    times_faster = round(theirs["seconds"] / ours["seconds"], 2)
    return {
        "rows": [_row(name, result) for name, result in best.items()],
        "log": {"rows": ours["rows"], "file_mb": file_mb},
        "result": {name: ours[name] for name in ("users", "items", "pairs")},
        "same_result": True,
        "times_faster": times_faster,
        "times_less_processor_time": round(
            theirs["processor_seconds"] / ours["processor_seconds"], 2
        ),
        "targets": TARGETS,
        "targets_met": {
            "seconds": ours["seconds"] < TARGETS["seconds"],
            "peak_gb": ours["peak_gb"] < TARGETS["peak_gb"],
            "times_faster": times_faster >= TARGETS["times_faster"],
        },
        "rounds": {
            name: [_round(result) for result in results] for name, results in measured.items()
        },
    }


def _row(name: str, result: dict[str, Any]) -> dict[str, Any]:
    stages = {f"{stage} s": round(seconds, 1) for stage, seconds in result["stages"].items()}
    return {
        "with": name,
        **stages,
        "total s": round(result["seconds"], 1),
        "processor s": round(result["processor_seconds"], 1),
        "peak GB": round(result["peak_gb"], 2),
    }


def _round(result: dict[str, Any]) -> dict[str, Any]:
    return {
        name: result[name] for name in ("seconds", "processor_seconds", "peak_gb", "stages", "load")
    }


def markdown(record: dict[str, Any]) -> str:
    """A sentence and a table for the documentation."""
    result, machine = record["result"], record["machine"]
    kept = result["result"]
    return (
        f"{result['log']['rows']:,} rows ({result['log']['file_mb']:,.0f} MB of CSV) become a matrix of {kept['users']:,} users, "
        f"{kept['items']:,} items and {kept['pairs']:,} pairs, the same in both cases. pslrec is "
        f"{result['times_faster']:.1f} times faster and uses {result['times_less_processor_time']:.1f} times less processor time "
        f"({machine['processor']}, {CORES} cores, {record['measured']}).{_about_load(result)}\n\n"
        + _markdown_table(result["rows"])
    )


def _about_load(result: dict[str, Any]) -> str:
    load_then = max(
        measured["load"][0]
        for rounds in result["rounds"].values()
        for measured in rounds
        if measured["load"]
    )
    busy = (
        f" The machine was busy with other work (load up to {load_then:.1f} on {CORES} cores), which lengthens all times, "
        "not necessarily equally for both."
    )
    missed = [
        f"`{name}` ({result['targets'][name]:g})"
        for name, met in result["targets_met"].items()
        if not met
    ]
    verdict = f" Targets not met in this run: {', '.join(missed)}." if missed else ""
    return (busy if load_then > CORES else "") + verdict


def _markdown_table(rows: list[dict[str, Any]]) -> str:
    lines = [
        list(rows[0]),
        ["---", *["---:"] * (len(rows[0]) - 1)],
        *([str(cell) for cell in row.values()] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
