"""How long the head of a request may be, as bytes on a real socket: each head by itself, however its bytes arrive."""

import json
import random
import re
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from service_support import served

from pslrec.serving import Service, ServiceOptions

LARGEST_HEAD = 2**16
SMALL = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"
# An empty line within a body is no end of a head.
BODY = json.dumps({"users": ["user/3"], "k": 1}).encode() + b"\r\n\r\n"
STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")


@pytest.fixture(scope="module")
def port(finished_run) -> Iterator[int]:
    with served(Service(finished_run)) as (port, _):
        yield port


def head_of(length: int) -> bytes:
    """A request whose head has exactly so many bytes."""
    start, end = SMALL[:-2] + b"x-filler: ", b"\r\n\r\n"
    return start + b"a" * (length - len(start) - len(end)) + end


def declared(body: bytes = BODY) -> bytes:
    return b"POST /recommend HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n%s" % (
        len(body),
        body,
    )


def chunked(body: bytes = BODY) -> bytes:
    parts = body[:5], body[5:]
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    return (
        b"POST /recommend HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
        + chunks
        + b"0\r\n\r\n"
    )


def statuses(port: int, pieces: list[bytes], n_wanted: int, *, pause: float = 0.0) -> list[int]:
    """What the requests were answered with, in order; the last pieces are sent while the first answers arrive."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def send() -> None:
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(pause)

        sender = threading.Thread(target=send)
        sender.start()
        received = bytearray()
        while len(STATUS.findall(received)) < n_wanted:
            part = connection.recv(2**18)
            if not part:
                break
            received += part
        sender.join(timeout=30)
    return [int(status) for status in STATUS.findall(received)]


def cut(data: bytes, rng: random.Random) -> list[bytes]:
    """The same bytes in a random number of pieces."""
    n_cuts = rng.choice([0, 1, 2, 7, 40])
    places = sorted(rng.randrange(1, len(data)) for _ in range(n_cuts))
    return [
        data[start:end]
        for start, end in zip([0, *places], [*places, len(data)], strict=True)
        if start < end
    ]


def test_two_thousand_requests_in_a_row_are_all_answered(port: int) -> None:
    """Their bytes were counted together, and the service took them for one large head."""
    data = SMALL * 2000
    assert len(data) > LARGEST_HEAD
    assert statuses(port, [data], 2000) == [200] * 2000
    # With a part of the last head outstanding, all of what came before was counted as that head.
    assert statuses(port, [data[:-10], data[-10:]], 2000, pause=0.2) == [200] * 2000


def test_large_heads_in_a_row_are_each_counted_by_themselves(port: int) -> None:
    assert statuses(port, [head_of(LARGEST_HEAD - 10) * 20], 20) == [200] * 20


def test_bodies_do_not_count_as_heads(port: int) -> None:
    large = json.dumps({"users": ["user/3"], "k": 1, "explain": 0}).encode() + b" " * 200_000
    requests = [declared(large), chunked(large), SMALL] * 4
    assert statuses(port, [b"".join(requests)], 12) == [200] * 12


@pytest.mark.parametrize("surplus", [-1, 0, 1, 2, 1000, 60_000])
@pytest.mark.parametrize("n_pieces", [1, 2, 30])
def test_the_limit_holds_to_the_byte(port: int, surplus: int, n_pieces: int) -> None:
    """A head that came in one piece was taken at any length."""
    data = head_of(LARGEST_HEAD + surplus)
    size = -(-len(data) // n_pieces)
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    if surplus > 0 and n_pieces > 1:
        # Sent no further than the limit, as the rest may get the connection reset before its answer is read.
        pieces = [data[: LARGEST_HEAD // 2], data[LARGEST_HEAD // 2 : LARGEST_HEAD + 1]]
    assert statuses(port, pieces, 1) == [431 if surplus > 0 else 200]


def test_what_was_asked_before_a_large_head_is_answered_first(port: int) -> None:
    requests = [declared(), SMALL, chunked(), SMALL]
    data = b"".join(requests) + head_of(LARGEST_HEAD + 1)
    assert statuses(port, [data], 5) == [200, 200, 200, 200, 431]


def test_a_head_without_an_end_is_refused_at_the_limit(port: int) -> None:
    endless = head_of(2 * LARGEST_HEAD)[: LARGEST_HEAD + 1]
    assert statuses(port, [endless], 1) == [431]


def check_random_conversations(port: int, seeds: range) -> None:
    for seed in seeds:
        rng = random.Random(seed)
        sizes = (60, 1000, LARGEST_HEAD - 1, LARGEST_HEAD)
        kinds = [lambda: SMALL, declared, chunked, lambda: head_of(rng.choice(sizes))]  # noqa: B023 - used at once
        requests = [rng.choice(kinds)() for _ in range(rng.randrange(1, 30))]
        expected = [200] * len(requests)
        if rng.random() < 0.5:
            requests.append(head_of(LARGEST_HEAD + rng.choice([1, 2, 100])))
            expected.append(431)
        found = statuses(port, cut(b"".join(requests), rng), len(expected))
        assert found == expected, f"seed {seed}"


def test_every_head_is_counted_by_itself_however_its_bytes_arrive(port: int) -> None:
    check_random_conversations(port, range(25))


@pytest.mark.slow
def test_every_head_is_counted_by_itself_in_many_conversations(port: int) -> None:
    check_random_conversations(port, range(1000, 1600))


def test_a_client_that_pipelines_is_not_late_while_the_service_is_busy(finished_run) -> None:
    """The time for a request to arrive ran while the service itself did not read on."""
    request = declared().replace(b"host:", b"x-filler: %s\r\nhost:" % (b"a" * 1000))
    with served(Service(finished_run, options=ServiceOptions(client_seconds=0.1))) as (port, _):
        assert statuses(port, [request * 800], 800) == [200] * 800
