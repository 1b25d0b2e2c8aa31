"""Limits on connections that an ASGI application cannot see: slow or endless heads, slow readers.

An event loop of our own puts `Connection` between each socket and the protocol of the HTTP server.
It uses nothing but the documented interfaces of asyncio, so it fits any server that runs on it.
"""

import asyncio
import json
from collections.abc import Callable
from contextvars import ContextVar
from http import HTTPStatus
from typing import Any

from pslrec.serving._options import ServiceOptions

LARGEST_HEAD = 2**16

# The connection of the request that is being handled; `None` under another event loop.
current_connection: "ContextVar[Connection | None]" = ContextVar("connection", default=None)


def too_large_head() -> str:
    """The sentence for a head beyond the limit."""
    return f"the head of a request may hold at most {LARGEST_HEAD:,} bytes"


class LimitedLoop(asyncio.SelectorEventLoop):
    """An event loop whose servers refuse slow clients.

    Args:
        options: how many connections, and how long clients may take.
    """

    def __init__(self, options: ServiceOptions) -> None:
        super().__init__()
        self.options = options
        self.connections: set[Connection] = set()

    async def create_server(  # type: ignore[override]
        self, protocol_factory: Callable[[], asyncio.Protocol], *args: Any, **kwargs: Any
    ) -> asyncio.Server:
        """A server as asyncio makes it, with each of its protocols behind a `Connection`."""

        def limited() -> Connection:
            return Connection(self, protocol_factory())

        return await super().create_server(limited, *args, **kwargs)

    def stop_requests(self) -> None:
        """Answer the requests in work with 503, and leave clients that do not read."""
        for connection in self.connections:
            connection.stop_request()


class Connection(asyncio.Protocol):
    """Passes everything on to the protocol of an HTTP server, as long as the client keeps pace.

    The parsing is left to the server. That a head is complete is known from the application being
    called, which then reports here through `current_connection`.

    Args:
        loop: knows the limits and the other connections.
        inner: speaks HTTP.
    """

    _transport: asyncio.Transport

    def __init__(self, loop: LimitedLoop, inner: asyncio.Protocol) -> None:
        self._loop = loop
        self._seconds = loop.options.client_seconds
        self._inner = inner
        self._request: asyncio.Task[Any] | None = None
        self._n_head_bytes = 0
        self._head_deadline: asyncio.TimerHandle | None = None
        self._read_deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Let a client in, or refuse it if there are too many."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        # Any byte that a client leaves unread is reported by `pause_writing`. Otherwise the last
        # few of an answer could keep a connection open for ever.
        transport.set_write_buffer_limits(high=0)
        if len(self._loop.connections) >= self._loop.options.connections:
            self._refuse(
                HTTPStatus.SERVICE_UNAVAILABLE, "too many connections; try again in a second"
            )
            return
        self._loop.connections.add(self)
        self._head_deadline = self._loop.call_later(self._seconds, self._head_is_late)
        self._inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a client."""
        self._cancel_deadlines()
        if self in self._loop.connections:
            self._loop.connections.remove(self)
            self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Pass bytes on; between two requests they belong to a head, which has limits."""
        if self not in self._loop.connections or self._transport.is_closing():
            return
        if self._request is None:
            self._n_head_bytes += len(data)
            if self._head_deadline is None:
                self._head_deadline = self._loop.call_later(self._seconds, self._head_is_late)
        # Tasks that the server creates from here inherit this.
        current_connection.set(self)
        self._inner.data_received(data)
        if self._n_head_bytes > LARGEST_HEAD:
            # If a head was complete, the task of its request runs before this.
            self._loop.call_soon(self._check_head)

    def eof_received(self) -> bool | None:
        """Pass on that the client sends no more."""
        if self not in self._loop.connections:
            return None
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        """Begin to wait for a client that does not read its answer."""
        if self._read_deadline is None:
            self._read_deadline = self._loop.call_later(self._seconds, self._transport.abort)
        if self in self._loop.connections:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Stop waiting, as everything has been sent."""
        if self._read_deadline is not None:
            self._read_deadline.cancel()
            self._read_deadline = None
        if self in self._loop.connections:
            self._inner.resume_writing()

    def request_began(self) -> None:
        """The application was called, so the head is complete."""
        self._request = asyncio.current_task()
        self._n_head_bytes = 0
        if self._head_deadline is not None:
            self._head_deadline.cancel()
            self._head_deadline = None

    def request_ended(self) -> None:
        """The application has answered."""
        # With requests in a row the server may have begun the next one already.
        if self._request is asyncio.current_task():
            self._request = None

    def stop_request(self) -> None:
        """Do not wait any longer, neither for the answer nor for the client."""
        if self._request is not None:
            self._request.cancel()
        elif self._read_deadline is not None:
            self._transport.abort()

    def _head_is_late(self) -> None:
        self._refuse(
            HTTPStatus.REQUEST_TIMEOUT,
            f"the request did not arrive within {self._seconds:g} seconds",
        )

    def _check_head(self) -> None:
        if self._n_head_bytes > LARGEST_HEAD:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, too_large_head())

    def _refuse(self, status: HTTPStatus, sentence: str) -> None:
        if self._transport.is_closing():
            return
        body = json.dumps({"error": sentence})
        self._transport.write(
            (
                f"HTTP/1.1 {status.value} {status.phrase}\r\n"
                "content-type: application/json\r\n"
                f"content-length: {len(body)}\r\n"
                "connection: close\r\n"
                "\r\n"
                f"{body}"
            ).encode()
        )
        self._transport.close()

    def _cancel_deadlines(self) -> None:
        for deadline in (self._head_deadline, self._read_deadline):
            if deadline is not None:
                deadline.cancel()
