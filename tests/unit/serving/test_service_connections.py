"""Clients that are slow, rude or greedy, on real sockets."""

import asyncio
import json
import socket
import threading
import time

import pytest
from service_support import served

from pslrec.serving import Service, ServiceOptions
from pslrec.serving._connections import LimitedLoop
from pslrec.serving._served import ServedModel

BODY = json.dumps({"users": ["user/3"], "k": 2}).encode()
HEAD = b"POST /recommend HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % len(BODY)
PROMPT = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"


def answer_of(connection) -> bytes:
    """Everything until the other side closes."""
    received = b""
    while True:
        try:
            part = connection.recv(65536)
        except ConnectionResetError:
            return received
        if not part:
            return received
        received += part


def status_and_error(answer: bytes) -> tuple[int, str]:
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["error"]


def test_client_that_says_nothing_is_let_go(dial):
    started = time.monotonic()
    status, error = status_and_error(answer_of(dial()))
    assert (status, "0.3 seconds" in error) == (408, True)
    assert time.monotonic() - started < 5


def test_head_that_trickles_in_is_not_waited_for(dial):
    connection = dial()
    started = time.monotonic()
    for byte in HEAD[:6]:
        connection.sendall(bytes([byte]))
        time.sleep(0.03)
    status, _ = status_and_error(answer_of(connection))
    assert status == 408
    assert time.monotonic() - started < 5


def test_body_that_does_not_come_is_not_waited_for(dial):
    connection = dial()
    connection.sendall(HEAD + BODY[:5])
    status, _ = status_and_error(answer_of(connection))
    assert status == 408


def test_second_request_is_waited_for_no_longer_than_the_first(dial):
    connection = dial()
    connection.sendall(PROMPT)
    assert connection.recv(65536).startswith(b"HTTP/1.1 200")
    connection.sendall(HEAD[:20])
    status, _ = status_and_error(answer_of(connection).removeprefix(b'{"status":"ok"}'))
    assert status == 408


def test_requests_in_pieces_and_in_a_row_are_answered(dial):
    connection = dial()
    for piece in (HEAD[:10], HEAD[10:], BODY[:7], BODY[7:]):
        connection.sendall(piece)
        time.sleep(0.02)
    received = b""
    while b'"model"' not in received:
        received += connection.recv(65536)
    assert received.startswith(b"HTTP/1.1 200")
    connection.sendall(PROMPT + PROMPT)
    received = b""
    while received.count(b'{"status":"ok"}') < 2:
        received += connection.recv(65536)


def test_answers_that_are_not_read_are_not_kept():
    """On a loop of its own, since a client that does not read does not see the end either."""

    class Generous(asyncio.Protocol):
        def connection_made(self, transport):
            transport.write(b"a" * 2**26)

        def connection_lost(self, exc):
            asyncio.get_running_loop().call_soon(lost.set)

    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(Generous, "127.0.0.1", 0)
        address = server.sockets[0].getsockname()
        with socket.create_connection(address, timeout=10):
            await asyncio.wait_for(lost.wait(), 10)
        server.close()

    lost = asyncio.Event()
    options = ServiceOptions(client_seconds=0.3)
    started = time.monotonic()
    with asyncio.Runner(loop_factory=lambda: LimitedLoop(options)) as runner:
        runner.run(main())
    assert time.monotonic() - started >= 0.3


def test_what_is_not_http_gets_a_sentence(dial):
    """The HTTP server says it, in plain text: nothing that could be routed has arrived."""
    connection = dial()
    connection.sendall(b"\x16\x03\x01 hello\r\n\r\n")
    head, _, body = answer_of(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"content-type: text/plain" in head
    assert body == b"Invalid HTTP request received."


def test_head_that_never_ends_is_refused(dial):
    connection = dial()
    connection.sendall(b"GET / HTTP/1.1\r\n")
    received = b""
    try:
        for number in range(200):
            connection.sendall(b"x-header-%d: %s\r\n" % (number, b"a" * 1000))
        received = answer_of(connection)
    except (BrokenPipeError, ConnectionResetError):
        received = answer_of(connection)
    # The answer may be lost where the client goes on sending; what counts is that it is not listened to.
    assert not received or received.startswith(b"HTTP/1.1 431")


def test_megabytes_are_refused_before_they_are_read(dial):
    connection = dial()
    connection.sendall(
        b"POST /recommend HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000000\r\n\r\n"
    )
    received = connection.recv(65536)
    assert received.startswith(b"HTTP/1.1 413")
    # It does not send them after all, so the connection ends soon.
    answer_of(connection)


def test_connections_beyond_the_limit_are_refused(dial):
    first = [dial() for _ in range(20)]
    time.sleep(0.1)
    status, error = status_and_error(answer_of(dial()))
    assert (status, "too many connections" in error) == (503, True)
    first[0].sendall(PROMPT)
    assert first[0].recv(65536).startswith(b"HTTP/1.1 200")


def test_upgrade_to_something_else_is_not_taken(dial):
    connection = dial()
    connection.sendall(
        b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
        b"sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    assert connection.recv(65536).startswith(b"HTTP/1.1 200")


def test_request_in_work_is_answered_when_the_service_stops(finished_run, monkeypatch):
    go_on, is_begun, original = threading.Event(), threading.Event(), ServedModel.lists_for_users
    service = Service(finished_run)

    def slow(*arguments, **options):
        is_begun.set()
        go_on.wait(10)
        return original(*arguments, **options)

    with served(service) as (port, server):
        monkeypatch.setattr(ServedModel, "lists_for_users", slow)
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(HEAD + BODY)
            assert is_begun.wait(5)
            server.should_exit = True
            time.sleep(0.2)
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port), timeout=5)
            go_on.set()
            received = answer_of(connection)
    assert received.startswith(b"HTTP/1.1 200")
    assert b'"recommendations"' in received


def test_service_is_well_after_all_of_this(dial):
    connection = dial()
    connection.sendall(HEAD + BODY)
    assert connection.recv(65536).startswith(b"HTTP/1.1 200")
