"""A client that sends its next request when it has the last answer, over several connections.

It runs in one thread, writes prepared bytes and looks only for the end of an answer, so that nearly
all of the time is the server's. What it costs itself is measured as well.
"""

import asyncio
import json
import sys
import time
from itertools import cycle


class Connection(asyncio.Protocol):
    """Sends the next request when the answer to the last one is there, until the time is over."""

    def __init__(self, requests: "cycle[bytes]", end: float, latencies: list[float]) -> None:
        self._requests, self._end, self._latencies = requests, end, latencies
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.n_failed = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._ask()

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002
        if not self.finished.done():
            self.n_failed += 1
            self.finished.set_result(None)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head = self._received.find(b"\r\n\r\n")
        if head < 0:
            return
        start = self._received.index(b"content-length: ") + 16
        length = int(self._received[start : self._received.index(b"\r\n", start)])
        if len(self._received) < head + 4 + length:
            return
        now = time.perf_counter()
        self._latencies.append(now - self._asked)
        self.n_failed += not self._received.startswith(b"HTTP/1.1 200")
        if now < self._end:
            self._ask()
        else:
            self.finished.set_result(None)
            self._transport.close()

    def _ask(self) -> None:
        self._received = b""
        self._asked = time.perf_counter()
        self._transport.write(next(self._requests))


def request(path: str, body: object) -> bytes:
    """A request as it goes over the wire."""
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\n"
        "host: localhost\r\n"
        "content-type: application/json\r\n"
        f"content-length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


async def ask(
    port: int, requests: list[bytes], n_connections: int, seconds: float
) -> dict[str, float]:
    latencies: list[float] = []
    started, worked = time.perf_counter(), time.process_time()
    loop, upcoming = asyncio.get_running_loop(), cycle(requests)
    pairs = [
        await loop.create_connection(
            lambda: Connection(upcoming, started + seconds, latencies), "127.0.0.1", port
        )
        for _ in range(n_connections)
    ]
    await asyncio.gather(*(connection.finished for _, connection in pairs))
    elapsed, worked = time.perf_counter() - started, time.process_time() - worked
    latencies.sort()
    return {
        "requests": len(latencies),
        "failed": sum(connection.n_failed for _, connection in pairs),
        "seconds": elapsed,
        "client_seconds": worked,
        **{
            f"p{p}": latencies[min(len(latencies) * p // 100, len(latencies) - 1)] for p in (50, 99)
        },
    }


if __name__ == "__main__":
    settings = json.load(sys.stdin)
    prepared = [request(settings["path"], body) for body in settings["bodies"]]
    measured = asyncio.run(
        ask(settings["port"], prepared, settings["connections"], settings["seconds"])
    )
    json.dump(measured, sys.stdout)
