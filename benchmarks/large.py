"""Data larger than usual: preparation out of core, an epoch, evaluation of a sample, export and serving of one model.

`scale` 1 is 10 million users, 1 million items and about 300 million interactions. Every step runs in a process of its own, so
that its peak of memory is its own. What a finished step found is kept beside the data in `build/`, so that a benchmark that was
stopped is resumed by the same command, and an epoch that was stopped by its last checkpoint; all of it is removed at the end.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks._child import in_child
from benchmarks._large_step import bytes_needed
from benchmarks._publish import REPOSITORY, about_load, table
from benchmarks.machine import memory_bytes
from benchmarks.serving import ask, server
from pslrec.files import make_directory, write_text

DESCRIPTION = "planted tastes at scale: preparation, an epoch, evaluation, export, serving"
SERVED_SECONDS = 10.0
CONNECTIONS = 8
STEPS = ("generate", "prepare", "train", "rank", "export")
WORK = REPOSITORY / "build"
GIGABYTE = 1e9


def run(scale: float = 0.1, *, report: Callable[[str], None] | None = None) -> dict[str, Any]:
    """Measure all steps.

    Args:
        scale: share of 10 million users, 1 million items and 300 million interactions.
        report: is told what is being done.
    """
    tell = report or (lambda _: None)
    directory = WORK / f"large-{scale:g}"
    make_directory(directory)
    _check_room(directory, scale, tell)
    found: dict[str, Any] = {}
    with _cache_in(directory / "cache"):
        for step in STEPS:
            found[step] = _once(
                directory, step, lambda step=step: _step(directory, step, scale, tell)
            )
        tell("serve")
        found["serve"] = _once(directory, "serve", lambda: _serve(directory, scale))
    shutil.rmtree(directory)
    return {"scale": scale, "steps": found, "rows": _rows(found)}


def _check_room(directory: Path, scale: float, tell: Callable[[str], None]) -> None:
    """Raise before hours of work if memory or disk would not do."""
    memory, disk = bytes_needed(scale)
    tell(f"takes up to {memory / GIGABYTE:.1f} GB of memory and {disk / GIGABYTE:.1f} GB of disk")
    free = shutil.disk_usage(directory).free
    if free < disk:
        raise RuntimeError(f"{directory} has {free / GIGABYTE:.1f} GB left; give a smaller --scale")
    if memory_bytes() < memory:
        raise RuntimeError(
            f"this machine has {memory_bytes() / GIGABYTE:.1f} GB of memory; give a smaller --scale"
        )


@contextmanager
def _cache_in(directory: Path) -> Iterator[None]:
    before = os.environ.get("PSLREC_CACHE_DIR")
    os.environ["PSLREC_CACHE_DIR"] = str(directory)
    try:
        yield
    finally:
        del os.environ["PSLREC_CACHE_DIR"]
        if before is not None:
            os.environ["PSLREC_CACHE_DIR"] = before


def _once(directory: Path, name: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What a step found, now or before the benchmark was stopped."""
    path = directory / f"{name}.json"
    if not path.exists():
        write_text(path, json.dumps(work()))
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def _step(directory: Path, step: str, scale: float, tell: Callable[[str], None]) -> dict[str, Any]:
    tell(step)

    def report(line: str) -> None:
        tell(f"{step}: {line}")

    found: dict[str, Any] = in_child("_large_step", step, directory, scale, report=report)
    return found


def _serve(directory: Path, scale: float) -> dict[str, Any]:
    users = in_child("_large_step", "users", directory, scale)["users"]
    bodies = [{"users": [user], "k": 20} for user in users]
    started = time.perf_counter()
    with server(directory / "run") as (port, process):
        ready = time.perf_counter() - started
        measured = ask(port, "/recommend", bodies, CONNECTIONS, SERVED_SECONDS)
        status = Path(f"/proc/{process}/status").read_text().splitlines()
    lines = dict(line.split(":", 1) for line in status)
    return {
        "ready_seconds": ready,
        "requests": measured["requests"],
        "requests_per_second": measured["requests"] / measured["seconds"],
        "p50_ms": 1e3 * measured["p50"],
        "p99_ms": 1e3 * measured["p99"],
        "peak_megabytes": int(lines["VmHWM"].split()[0]) * 1024 / 1e6,
    }


def _rows(found: dict[str, Any]) -> list[dict[str, Any]]:
    made = found["generate"]
    prepared = found["prepare"]
    n_pairs = prepared["pairs"]["train"]
    trained = found["train"]
    served = found["serve"]
    speed = {
        "generate": f"{made['rows'] / made['step_seconds']:,.0f} rows/s",
        "prepare": f"{made['rows'] / prepared['seconds']:,.0f} rows/s",
        "train": f"{n_pairs / trained['epoch_seconds']:,.0f} pairs/s",
        "rank": f"{found['rank']['users'] / found['rank']['seconds']:,.0f} users/s",
        "export": f"{found['export']['megabytes'] / found['export']['seconds']:,.0f} MB/s",
    }
    what = {
        "generate": "write the log",
        "prepare": f"prepare, {prepared['grown_megabytes']:,.0f} MB more than before",
        "train": f"one epoch, {trained['epoch_seconds']:,.0f} s, with evaluation and saving",
        "rank": f"rank all items for {found['rank']['users']:,} users",
        "export": f"export {found['export']['megabytes']:,.0f} MB of vectors",
    }
    rows = []
    for step, words in what.items():
        measured = found[step]
        rows.append(_row(words, measured["step_seconds"], measured["peak_megabytes"], speed[step]))
    rate = f"{served['requests_per_second']:,.0f} requests/s"
    latency = f"serve, p50 {served['p50_ms']:.0f} ms, p99 {served['p99_ms']:.0f} ms; ready after"
    rows.append(_row(latency, served["ready_seconds"], served["peak_megabytes"], rate))
    return rows


def _row(step: str, seconds: float, megabytes: float, speed: str) -> dict[str, Any]:
    return {
        "step": step,
        "seconds": round(seconds, 1),
        "peak MB": round(megabytes),
        "speed": speed,
    }


def markdown(record: dict[str, Any]) -> str:
    """The table, and what it was measured on."""
    result = record["result"]
    made = result["steps"]["generate"]
    prepared = result["steps"]["prepare"]
    machine = record["machine"]
    return (
        f"{made['rows']:,} rows of {made['users']:,} users and {made['items']:,} items in "
        f"{made['megabytes']:,.0f} MB of Parquet files, of which the 5-core keeps "
        f"{sum(prepared['pairs'].values()):,} pairs. Preparation had stated "
        f"{prepared['stated_megabytes']:,.0f} MB, the ids alone would take "
        f"{prepared['ids_megabytes']:,.0f} MB, and it took {prepared['grown_megabytes']:,.0f} MB; "
        f"opening what was prepared takes {prepared['again_seconds']:.1f} s. Measured on "
        f"{machine['cores']} cores ({machine['processor']}).{about_load(record)}\n\n"
        f"{table(result['rows'])}"
    )
