"""Under which names a service answers, as bytes on a real socket: a foreign page must not reach it through its own name."""

import json
import socket
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from service_support import TOKEN, served

from pslrec.serving import Service, ServiceOptions

LOCAL = (
    "localhost",
    "LocalHost:8000",
    "localhost.",
    "localhost:",
    "127.0.0.1",
    "127.0.0.1:65535",
    "127.9.8.7:1",
    "[::1]",
    "[::1]:8000",
)
FOREIGN = (
    "attacker.example",
    "attacker.example:8000",
    "localhost.attacker.example",
    "127.0.0.1.attacker.example",
    "127.0.0.1.nip.io:8000",
    "attacker.example:127.0.0.1",
    "localhost@attacker.example",
    "attacker.example#localhost",
    "notlocalhost",
    "128.0.0.1",
    "10.0.0.1",
    "0.0.0.0",
    "127.1",
    "2130706433",
    "0x7f.0.0.1",
    "[::2]",
    "[::]",
    "::1",
    "[::1",
    "localhost:80:80",
    "localhost:port",
    "localhost, attacker.example",
    "",
)
PATHS = ("/", "/docs", "/openapi.json", "/health", "/version", "/similar/10")


def answer(
    port: int, *hosts: str, path: str = "/health", token: str | None = None, at: str = "127.0.0.1"
) -> bytes:
    """What one request with these `Host` headers is answered with."""
    lines = [f"GET {path} HTTP/1.1", *(f"host: {host}" for host in hosts), "connection: close"]
    if token is not None:
        lines.append(f"authorization: Bearer {token}")
    with socket.create_connection((at, port), timeout=10) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode("latin-1"))
        received = b""
        while part := connection.recv(2**16):
            received += part
    return received


def status_of(received: bytes) -> int:
    return int(received.split()[1])


@pytest.fixture(scope="module")
def port(finished_run) -> Iterator[int]:
    with served(Service(finished_run)) as (port, _):
        yield port


@pytest.mark.parametrize("host", LOCAL)
def test_names_of_this_machine_are_answered(port: int, host: str) -> None:
    assert status_of(answer(port, host)) == 200


@pytest.mark.parametrize("host", FOREIGN)
def test_other_names_are_refused_with_a_sentence(port: int, host: str) -> None:
    received = answer(port, host)
    assert 400 <= status_of(received) < 500
    head, _, body = received.partition(b"\r\n\r\n")
    assert b"application/json" in head
    assert json.loads(body)["error"]


def test_a_name_that_is_not_http_is_refused_by_the_server(port: int) -> None:
    received = answer(port, "\x7f")
    assert status_of(received) == 400
    assert received.endswith(b"Invalid HTTP request received.")


def test_the_sentence_says_what_is_allowed_what_came_and_what_to_do(port: int) -> None:
    received = answer(port, "attacker.example:8000", path="/version")
    assert status_of(received) == 421
    error = json.loads(received.partition(b"\r\n\r\n")[2])["error"]
    for part in (
        "`Host` must be localhost, 127.0.0.1 or [::1]",
        "got `attacker.example:8000`",
        "with a token",
    ):
        assert part in error


@pytest.mark.parametrize("path", PATHS)
def test_no_address_is_open_to_other_names(port: int, path: str) -> None:
    assert status_of(answer(port, "attacker.example", path=path)) == 421
    assert status_of(answer(port, "localhost", path=path)) == 200


def test_a_request_without_a_name_or_with_two_is_not_taken_for_a_local_one(port: int) -> None:
    assert 400 <= status_of(answer(port)) < 500
    for hosts in (("localhost", "attacker.example"), ("attacker.example", "localhost")):
        assert 400 <= status_of(answer(port, *hosts)) < 500


NAMES = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9.:-]{0,30})", fullmatch=True)


@settings(deadline=None, max_examples=30)
@given(
    name=st.one_of(
        NAMES,
        NAMES.map("localhost.{}".format),
        NAMES.map("127.0.0.1.{}".format),
        NAMES.map("{}.localhost".format),
    )
)
def test_whatever_else_a_name_is_it_is_refused(port: int, name: str) -> None:
    bare = name.partition(":")[0].lower().rstrip(".")
    is_local = bare == "localhost" or bare.startswith("127.")
    if not is_local:
        assert 400 <= status_of(answer(port, name)) < 500
    if bare.startswith("127.") and not bare.replace(".", "").isdigit():
        assert 400 <= status_of(answer(port, name)) < 500


def test_with_a_token_any_name_is_answered(finished_run) -> None:
    with served(Service(finished_run, options=ServiceOptions(token=TOKEN))) as (port, _):
        assert (
            status_of(answer(port, "recommendations.example", path="/version", token=TOKEN)) == 200
        )
        assert status_of(answer(port, "recommendations.example", path="/version")) == 401


def test_a_service_for_other_machines_answers_under_any_name(finished_run) -> None:
    with served(Service(finished_run), host="0.0.0.0") as (port, _):
        assert status_of(answer(port, "recommendations.example")) == 200


def test_the_loopback_of_the_newer_protocol_is_guarded_as_well(finished_run) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no ::1")
    with served(Service(finished_run), host="::1") as (port, _):
        assert status_of(answer(port, "[::1]:80", at="::1")) == 200
        assert status_of(answer(port, "attacker.example", at="::1")) == 421
