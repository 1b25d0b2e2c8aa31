"""The service under load: lists for single users over 1, 16 and 64 connections.

The model is trained on Amazon-Electronic. The client is a second process on the same machine, so
its costs are stated beside the server's.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import environ
from pathlib import Path
from typing import Any

from benchmarks._publish import load_record
from benchmarks.machine import load, usable_cores
from pslrec.config import RunConfig
from pslrec.data import planted_tastes, write_interactions
from pslrec.experiment import run as train
from pslrec.inference import TrainedModel

DESCRIPTION = (
    "requests per second and latency of `pslrec serve` on Amazon-Electronic, single users, k = 20"
)
CONNECTIONS = (1, 16, 64)
K = 20
TARGET_REQUESTS, TARGET_P99 = 1000, 50.0
N_USERS, N_ITEMS = 13_455, 8_360
SETTINGS = {"loss.name": "psl-relu", "sampling.negatives": "catalog", "training.epochs": 2}
REPOSITORY = Path(__file__).resolve().parent.parent
CLIENT = Path(__file__).with_name("_load_client.py")
MEBIBYTE = 2**20


def run(
    seconds: float = 10.0,
    *,
    memory_minutes: float = 0.0,
    report: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Train a model, serve it, and ask.

    Args:
        seconds: how long each number of connections is kept busy. With 0 the kept rows stay, since
            memory can be watched on a busy machine, and latency cannot be measured there.
        memory_minutes: how long to watch the memory of the server under load of all kinds
            afterwards; 0 leaves it out.
        report: is told what is being done.
    """
    tell = report or (lambda _: None)
    with tempfile.TemporaryDirectory() as directory:
        tell("training a model")
        path = Path(directory) / "run"
        origin = train_model(path)
        model = TrainedModel.load(path)
        bodies = [{"users": [user], "k": K} for user in model.users.series.to_list()]
        with server(path) as (port, process):
            tell("warming up")
            ask(port, "/recommend", bodies, CONNECTIONS[-1], 2.0)
            rows = [] if seconds else _kept_rows()
            for n_connections in CONNECTIONS if seconds else ():
                tell(f"{n_connections} connections")
                rows.append(_measure(port, process, bodies, n_connections, seconds))
            memory = {}
            if memory_minutes:
                kinds = _kinds(model, bodies)
                memory = _watch_memory(port, process, kinds, memory_minutes, tell)
    met = [row["requests/s"] >= TARGET_REQUESTS and row["p99 ms"] < TARGET_P99 for row in rows]
    return {
        "rows": rows,
        "data": origin,
        "cores": usable_cores(),
        "target": f"{TARGET_REQUESTS} requests/s with p99 under {TARGET_P99:g} ms",
        "target_met_at": [
            row["connections"] for row, is_met in zip(rows, met, strict=True) if is_met
        ],
        **memory,
        "loads": load(),
    }


def _kept_rows() -> list[dict[str, Any]]:
    record = load_record("serving")
    if record is None:
        raise ValueError("`seconds` must be above 0: no rows were kept before")
    rows: list[dict[str, Any]] = record["result"]["rows"]
    return rows


def train_model(path: Path) -> str:
    directory = Path(environ.get("PSLREC_DATA_DIR", REPOSITORY.parent / "shared" / "data"))
    published = directory / "iid" / "amazon2014-electronic.zip"
    if published.exists():
        train(RunConfig.from_settings({"data.source": str(published), **SETTINGS}), out=path)
        return "the published IID split"
    log = path.with_suffix(".csv")
    write_interactions(planted_tastes(N_USERS, N_ITEMS).interactions, log)
    train(RunConfig.from_settings({"data.source": str(log), **SETTINGS}), out=path)
    return "made up, of the same size"


@contextmanager
def server(path: Path, *options: str) -> Iterator[tuple[int, int]]:
    """The service in a process of its own; gives its port and the number of the process."""
    command = [
        sys.executable,
        "-c",
        "from pslrec.cli import main; main()",
        "serve",
        str(path),
        "--port",
        "0",
        *options,
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            line = process.stderr.readline()
            found = re.search(r":(\d+); Ctrl-C", line)
            if found is None:
                raise RuntimeError(f"the service did not start: {line}{process.stderr.read()}")
            yield int(found[1]), process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            if process.wait(timeout=60) != 0:
                raise RuntimeError(f"the service did not stop well: {process.stderr.read()}")


def ask(
    port: int, path: str, bodies: list[Any], n_connections: int, seconds: float
) -> dict[str, float]:
    settings = {
        "port": port,
        "path": path,
        "bodies": bodies,
        "connections": n_connections,
        "seconds": seconds,
    }
    done = subprocess.run(
        [sys.executable, str(CLIENT)],
        input=json.dumps(settings),
        capture_output=True,
        text=True,
        check=True,
    )
    measured: dict[str, float] = json.loads(done.stdout)
    if measured["failed"]:
        raise RuntimeError(
            f"{measured['failed']:.0f} of {measured['requests']:.0f} requests failed"
        )
    return measured


def _measure(
    port: int, process: int, bodies: list[Any], n_connections: int, seconds: float
) -> dict[str, Any]:
    before = _processor_seconds(process)
    measured = ask(port, "/recommend", bodies, n_connections, seconds)
    worked = _processor_seconds(process) - before
    n_requests = measured["requests"]
    return {
        "connections": n_connections,
        "requests/s": round(n_requests / measured["seconds"]),
        "p50 ms": round(measured["p50"] * 1e3, 2),
        "p99 ms": round(measured["p99"] * 1e3, 2),
        "server µs/request": round(worked / n_requests * 1e6),
        "client µs/request": round(measured["client_seconds"] / n_requests * 1e6),
        "server MiB": round(_memory(process) / MEBIBYTE),
    }


def _kinds(model: TrainedModel, bodies: list[Any]) -> list[tuple[str, list[Any]]]:
    """Requests of every kind: lists, lists with reasons, lists for new people."""
    items, seen = model.items.series.to_list(), model.seen
    histories = [[items[row] for row in seen.list_of(user)] for user in range(200)]
    return [
        ("/recommend", bodies),
        ("/recommend", [{**body, "explain": 3, "with_history": True} for body in bodies]),
        (
            "/recommend-for-history",
            [{"history": history, "k": K, "explain": 3} for history in histories if history],
        ),
    ]


def _watch_memory(
    port: int,
    process: int,
    kinds: list[tuple[str, list[Any]]],
    minutes: float,
    tell: Callable[[str], None],
) -> dict[str, Any]:
    """Memory of the server while it is asked for lists of all kinds, and now and then to reload."""
    end, sizes = time.monotonic() + 60 * minutes, []
    while time.monotonic() < end:
        for path, asked in kinds:
            ask(port, path, asked, 16, 5.0)
        os.kill(process, signal.SIGHUP)
        time.sleep(1.0)
        sizes.append(_memory(process) / MEBIBYTE)
        tell(f"memory: {sizes[-1]:.0f} MiB after {len(sizes)} rounds")
    # The first rounds fill the buffers of the C library.
    settled = sizes[len(sizes) // 4 :]
    half = max(len(settled) // 2, 1)
    return {
        "memory_minutes": minutes,
        "memory_mib": [round(size, 1) for size in sizes],
        "memory_growth_mib": round(sum(settled[-half:]) / half - sum(settled[:half]) / half, 1),
    }


def _processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory(process: int) -> int:
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def markdown(record: dict[str, Any]) -> str:
    """A sentence and a table for the documentation."""
    result, machine = record["result"], record["machine"]
    rows = result["rows"]
    lines = [
        list(rows[0]),
        ["---:"] * len(rows[0]),
        *([str(cell) for cell in row.values()] for row in rows),
    ]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    memory = ""
    if "memory_minutes" in result:
        memory = (
            f" Over {result['memory_minutes']:g} minutes of load of all kinds, with a reload every "
            f"16 seconds, the memory of the server changed by {result['memory_growth_mib']:g} MiB "
            "between the first and the second half."
        )
    return (
        f"Amazon-Electronic, one user per request, k = {K}; server and client are two processes on "
        f"the same {machine['cores']} cores ({machine['processor']}, {record['measured']})."
        f"{memory}\n\n{table}"
    )
