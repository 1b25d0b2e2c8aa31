"""HTTP servers under the service: requests per second, and what slow clients can do to them.

The same application under uvicorn and granian, with documented options only, and as `pslrec serve`
runs it.
"""

import gc
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.machine import load, usable_cores
from benchmarks.serving import K, ask, train_model

DESCRIPTION = "uvicorn and granian under the service: requests per second, slow clients"
CONNECTIONS = (1, 64, 1000)
CLIENT_SECONDS = 2
# Above the connections, so that no request is refused.
MOST_REQUESTS = 2000
# The answers of the last take a while to compute, so there are fewer of them.
N_SLOW = {"no bytes": 100, "a slow head": 100, "half a body": 100, "unread answers": 5}
LARGEST_HEAD = 2**16
MOST_HEAD_BYTES = 2**24
ESTABLISHED = "01"
RUN_VARIABLE = "PSLREC_BENCHMARK_RUN"
APP = "benchmarks.http_servers:app"
UVICORN = [
    *["uvicorn", "--factory", APP, "--no-access-log", "--log-level", "critical"],
    *["--timeout-keep-alive", "30"],
]
GRANIAN = [
    *["granian", "--factory", APP, "--interface", "asgi", "--http", "1", "--no-ws", "--no-log"],
    *["--http1-header-read-timeout", str(CLIENT_SECONDS * 1000)],
    *["--http1-buffer-size", str(LARGEST_HEAD)],
]
SERVERS = {
    "uvicorn, httptools": [*UVICORN, "--http", "httptools"],
    "uvicorn, h11": [
        *UVICORN,
        *["--http", "h11", "--h11-max-incomplete-event-size", str(LARGEST_HEAD)],
    ],
    "granian": GRANIAN,
    "pslrec serve": None,
}
HEAD = b"POST /recommend HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n"


def app() -> Any:
    """The application, for servers that import it; they know nothing of the service's own loop."""
    import torch

    from pslrec.serving import Service, ServiceOptions, create_app

    torch.set_num_threads(max(usable_cores() - 1, 1))
    options = ServiceOptions(client_seconds=CLIENT_SECONDS, concurrent_requests=MOST_REQUESTS)
    service = Service(Path(os.environ[RUN_VARIABLE]), options=options)
    # As `pslrec serve` has it.
    sys.setswitchinterval(0.001)
    gc.freeze()
    return create_app(service)


def run(seconds: float = 5.0, *, report: Callable[[str], None] | None = None) -> dict[str, Any]:
    """Train a model and serve it with each server in turn.

    Args:
        seconds: how long each number of connections is kept busy.
        report: is told what is being done.
    """
    tell = report or (lambda _: None)
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        tell("training a model")
        path = Path(directory) / "run"
        origin = train_model(path)
        users = _users(path)
        bodies = [{"users": [user], "k": K} for user in users]
        for name, arguments in SERVERS.items():
            tell(name)
            with _server(path, arguments) as port:
                ask(port, "/recommend", bodies, 64, 2.0)
                row: dict[str, Any] = {"server": name}
                for n_connections in CONNECTIONS:
                    measured = ask(port, "/recommend", bodies, n_connections, seconds)
                    rate = measured["requests"] / measured["seconds"]
                    row[f"requests/s, {n_connections} connections"] = round(rate)
                row.update(_slow_clients(port, bodies, users))
                rows.append(row)
    versions = {name: version(name) for name in ("starlette", "uvicorn", "httptools", "granian")}
    return {
        "rows": rows,
        "versions": versions,
        "data": origin,
        "cores": usable_cores(),
        "loads": load(),
    }


def _users(path: Path) -> list[Any]:
    from pslrec.inference import TrainedModel

    users: list[Any] = TrainedModel.load(path).users.series.to_list()
    return users


@contextmanager
def _server(path: Path, arguments: list[str] | None) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    if arguments is None:
        program = ["-c", "from pslrec.cli import main; main()", "serve", str(path)]
        limits = ["--client-seconds", CLIENT_SECONDS, "--concurrent-requests", MOST_REQUESTS]
        command = [*program, *map(str, limits)]
    else:
        command = ["-m", *arguments]
    environment = {**os.environ, RUN_VARIABLE: str(path)}
    with subprocess.Popen(
        [sys.executable, *command, "--port", str(port)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            _wait_for(port)
            yield port
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait_for(port: int) -> None:
    end = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
        else:
            return


def _slow_clients(port: int, bodies: list[Any], users: list[Any]) -> dict[str, Any]:
    """Requests per second beside slow clients of four kinds, and how many of them were let go."""
    large = json.dumps({"users": users[:20], "k": 1000, "exclude_seen": False}).encode()
    sent = {
        "no bytes": b"",
        "a slow head": HEAD,
        "half a body": HEAD + b"\r\n{",
        # Several in a row, so that they do not fit into the buffers of the system.
        "unread answers": 4 * (HEAD.replace(b"100", b"%d" % len(large)) + b"\r\n" + large),
    }
    clients = {
        kind: [_dial(port, data) for _ in range(N_SLOW[kind])] for kind, data in sent.items()
    }
    is_over = threading.Event()
    trickle = threading.Thread(target=_trickle, args=(clients["a slow head"], is_over))
    trickle.start()
    measured = ask(port, "/recommend", bodies, 64, CLIENT_SECONDS + 4.0)
    is_over.set()
    trickle.join()
    row: dict[str, Any] = {
        f"requests/s beside {sum(N_SLOW.values())} slow clients": round(
            measured["requests"] / measured["seconds"]
        )
    }
    for kind, connections in clients.items():
        row[f"of {N_SLOW[kind]} clients with {kind}, closed"] = _n_let_go(port, connections)
        for connection in connections:
            connection.close()
    row["KiB taken of a head that never ends"] = _endless_head(port) // 1024
    return row


def _dial(port: int, data: bytes) -> socket.socket:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", port))
    connection.sendall(data)
    return connection


def _trickle(connections: list[socket.socket], is_over: threading.Event) -> None:
    while not is_over.wait(0.3):
        for connection in connections:
            try:
                connection.send(b"x")
            except OSError:
                continue


def _n_let_go(port: int, connections: list[socket.socket]) -> int:
    """Connections that the server has closed.

    The system is asked, since a client that does not read does not see the end either.
    """
    held = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, state = line.split()[:4]
        if state == ESTABLISHED and int(local.partition(":")[2], 16) == port:
            held.add(int(remote.partition(":")[2], 16))
    return sum(connection.getsockname()[1] not in held for connection in connections)


def _endless_head(port: int) -> int:
    """Bytes of a head that were taken before the server ended it."""
    n_sent = 0
    with _dial(port, HEAD) as connection:
        connection.settimeout(2)
        try:
            while n_sent < MOST_HEAD_BYTES:
                n_sent += connection.send(b"x-filler: " + b"a" * 1000 + b"\r\n")
        except OSError:
            pass
    return n_sent


def markdown(record: dict[str, Any]) -> str:
    """A table with one column per server."""
    rows = record["result"]["rows"]
    names = [row["server"] for row in rows]
    lines = [["", *names], ["---", *["---:"] * len(rows)]]
    keys = list(rows[0])[1:]
    lines += [[key, *(f"{row[key]:,}" for row in rows)] for key in keys]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    machine = record["machine"]
    versions = record["result"]["versions"]
    named = ", ".join(f"{name} {number}" for name, number in versions.items())
    return (
        f"Measured on {machine['cores']} cores ({machine['processor']}, {record['measured']}) "
        f"with {named}.\n\n{table}"
    )
