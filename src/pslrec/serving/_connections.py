"""Connections with patience that ends: clients that send or take too slowly, or send too much, are let go."""

import asyncio
import json
import socket
from http import HTTPStatus
from typing import Any

from pslrec.errors import MissingExtraError
from pslrec.serving._heads import LARGEST_HEAD, HeadCounter
from pslrec.serving._options import ServiceOptions

try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
except ImportError as error:
    raise MissingExtraError("uvicorn and httptools", "serve") from error


class PatientProtocol(HttpToolsProtocol):
    """An HTTP connection that must deliver each request, and take each answer, in a given time."""

    options = ServiceOptions()
    # One timer each, and none at all for a request that arrives in one piece and an answer that fits the system's buffer.
    _arrival: asyncio.TimerHandle | None = None
    _departure: asyncio.TimerHandle | None = None
    _is_in_request = False
    _heads: HeadCounter
    # What is to be said once everything that was asked before has its answer.
    _last_words: tuple[HTTPStatus, str] | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._heads = HeadCounter()
        connected = transport.get_extra_info("socket")
        if connected is not None and connected.family in (socket.AF_INET, socket.AF_INET6):
            # Head and body of an answer are written one after the other; without this the second waits for the client's receipt.
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if len(self.connections) > self.options.connections:
            self._refuse(
                HTTPStatus.SERVICE_UNAVAILABLE, "too many connections; try again in a second"
            )
            return
        self._arrival = self.loop.call_later(self.options.client_seconds, self._arrived_too_late)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._cancel_arrival()
        self._cancel_departure()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came, head by head, and wait for the rest of the request if there is one."""
        for piece in self._heads.pieces(data):
            if self._is_ending():
                return
            if self._heads.is_too_large:
                self._refuse(
                    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                    f"the head of a request may hold at most {LARGEST_HEAD:,} bytes",
                )
                return
            super().data_received(piece)
        if self._is_ending():
            return
        if not self._is_in_request:
            self._cancel_arrival()
        elif self._arrival is None:
            self._arrival = self.loop.call_later(
                self.options.client_seconds, self._arrived_too_late
            )

    def on_message_begin(self) -> None:
        """A request begins."""
        self._is_in_request = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Its head is there."""
        super().on_headers_complete()
        self._heads.head_ended(self.headers)

    def on_message_complete(self) -> None:
        """All of it is there."""
        self._is_in_request = False
        self._heads.message_ended()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """An answer is on its way; a refusal comes after the last one that is due."""
        super().on_response_complete()
        if self._last_words is not None and not self._is_answering():
            self._refuse(*self._last_words)

    def pause_writing(self) -> None:
        """The client does not take what it asked for."""
        self._cancel_departure()
        self._departure = self.loop.call_later(self.options.client_seconds, self.transport.abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        """It does again."""
        self._cancel_departure()
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """Let an idle connection go, with whatever its client did not take."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP."""
        self._refuse(HTTPStatus.BAD_REQUEST, f"this is not HTTP: {msg}")

    def _arrived_too_late(self) -> None:
        self._arrival = None
        # While the server itself does not read on, a client that pipelines is not the one who is
        # late.
        if self.flow.read_paused or (self._heads.is_in_head and self._is_answering()):
            self._arrival = self.loop.call_later(
                self.options.client_seconds, self._arrived_too_late
            )
            return
        self._refuse(
            HTTPStatus.REQUEST_TIMEOUT,
            f"the request did not arrive within {self.options.client_seconds:g} seconds",
        )

    def _is_ending(self) -> bool:
        return self._last_words is not None or self.transport.is_closing()

    def _is_answering(self) -> bool:
        """Whether a request whose head is there still waits for its answer."""
        return self.cycle is not None and not self.cycle.response_complete

    def _refuse(self, status: HTTPStatus, sentence: str) -> None:
        self._cancel_arrival()
        if self.transport.is_closing():
            return
        if self._heads.is_in_head and self._is_answering():
            # Answers come in the order of requests, so those before this one go first.
            self._last_words = status, sentence
            return
        # An answer that was begun cannot be taken back; the connection just ends.
        is_begun = self._is_answering() and self.cycle.response_started
        if not is_begun:
            body = json.dumps({"error": sentence}).encode()
            head = (
                f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: application/json\r\n"
                f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
        self.transport.close()
        # Closing waits until everything is sent, which a client can put off for ever.
        self._departure = self._departure or self.loop.call_later(
            self.options.client_seconds, self.transport.abort
        )

    def _cancel_arrival(self) -> None:
        if self._arrival is not None:
            self._arrival.cancel()
            self._arrival = None

    def _cancel_departure(self) -> None:
        if self._departure is not None:
            self._departure.cancel()
            self._departure = None


def protocol(options: ServiceOptions) -> type[PatientProtocol]:
    """The kind of connection for a service with these limits."""
    return type("Connection", (PatientProtocol,), {"options": options})
