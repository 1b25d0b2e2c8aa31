import json
import os
import re
import signal
import socket
import threading
import time
import urllib.request
from pathlib import Path

import pytest
from command_line import Command, Outcome, start

pytest.importorskip("starlette", reason="the service comes with pslrec[serve]")

from pslrec.config import RunConfig
from pslrec.experiment import run as train
from pslrec.serving import Service, address_of, listen, serve

SETTINGS = {"sampling.negatives": 4, "training.epochs": 1, "backbone.dimension": 8}


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("serve") / "run"
    log = directory.with_suffix(".csv")
    board = [(user, item) for user in range(40) for item in range(30) if (user + item) % 2]
    log.write_text("user,item\n" + "".join(f"{user},{item}\n" for user, item in board))
    train(RunConfig.from_settings({"data.source": str(log), **SETTINGS}), out=directory)
    return directory


def get(address: str) -> dict:
    with urllib.request.urlopen(address, timeout=10) as answer:
        return json.load(answer)


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="needs signals")
def test_serve_reloads_on_sighup_and_stops_on_sigterm_and_sigint(
    finished_run: Path, caplog: pytest.LogCaptureFixture
):
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("only the main thread hears signals")
    caplog.set_level("INFO", logger="pslrec")
    handlers = [
        signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)
    ]
    for number in (signal.SIGTERM, signal.SIGINT):
        with listen("127.0.0.1", 0) as listener:
            caller = threading.Thread(
                target=_signal_when_ready, args=(address_of(listener), number, caplog)
            )
            caller.start()
            serve(Service(finished_run), listener)
            caller.join(timeout=10)
        assert "serving run, model" in caplog.text
        caplog.clear()
    assert [
        signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)
    ] == handlers


def _signal_when_ready(address: str, number: int, caplog: pytest.LogCaptureFixture) -> None:
    # An answer means that the handlers are there, without which a signal would end the tests.
    assert get(f"{address}/health") == {"status": "ok"}
    os.kill(os.getpid(), signal.SIGHUP)
    end = time.monotonic() + 10
    while "serving run, model" not in caplog.text and time.monotonic() < end:
        time.sleep(0.02)
    os.kill(os.getpid(), number)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="needs signals")
def test_serve_answers_reloads_on_sighup_and_stops_on_sigterm(finished_run: Path):
    process = start("serve", finished_run, "--port", 0, stdout=None)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        address = re.search(r"at (http://127\.0\.0\.1:\d+); Ctrl-C stops", line)
        assert address, line + process.stderr.read()
        facts = get(f"{address[1]}/version")
        assert facts["users"] == 40
        process.send_signal(signal.SIGHUP)
        assert process.stderr.readline() == f"serving run, model {facts['model']}\n"
        assert get(f"{address[1]}/health") == {"status": "ok"}
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
        assert process.stderr.read() == "stopped\n"
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


HALF_A_REQUEST = b"POST /recommend HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("is_asked", [False, True])
def test_a_second_signal_stops_at_once_without_a_traceback(
    finished_run: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    number: signal.Signals,
    is_asked: bool,
):
    """Requests and the application itself were cancelled, and the log said so with tracebacks."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("only the main thread hears signals")
    received: list[bytes] = []

    def stop_twice(address: str, port: int) -> None:
        assert get(f"{address}/health") == {"status": "ok"}
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(HALF_A_REQUEST if is_asked else b"")
            time.sleep(0.2)
            os.kill(os.getpid(), number)
            # Two signals of a kind that arrive before the first is heard are one.
            time.sleep(0.5 if is_asked else 0.01)
            os.kill(os.getpid(), number)
            received.append(connection.recv(65536))

    # A signal that comes after the end of the server must not end the tests.
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with listen("127.0.0.1", 0) as listener:
            caller = threading.Thread(
                target=stop_twice, args=(address_of(listener), listener.getsockname()[1])
            )
            caller.start()
            started = time.monotonic()
            serve(Service(finished_run), listener)
            assert time.monotonic() - started < 8
            caller.join(timeout=10)
    finally:
        signal.signal(number, before)
    assert not any(record.exc_info for record in caplog.records)
    printed = capfd.readouterr()
    assert "Traceback" not in caplog.text + printed.out + printed.err
    if is_asked:
        assert received[0].startswith(b"HTTP/1.1 503")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("pause", [0.0, 0.02])
@pytest.mark.parametrize("is_asked", [False, True])
def test_signals_in_a_row_end_the_program_without_a_traceback(
    finished_run: Path, number: signal.Signals, pause: float, is_asked: bool
):
    process = start("serve", finished_run, "--port", 0)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        address = re.search(r"at (http://127\.0\.0\.1:(\d+)); Ctrl-C stops", line)
        assert address, line
        assert get(f"{address[1]}/health") == {"status": "ok"}
        with socket.create_connection(("127.0.0.1", int(address[2])), timeout=10) as connection:
            connection.sendall(HALF_A_REQUEST if is_asked else b"")
            time.sleep(0.2)
            for _ in range(4):
                process.send_signal(number)
                time.sleep(pause)
            _, errors = process.communicate(timeout=20)
        assert errors == "stopped\n"
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait()


def assert_refused(outcome: Outcome, message: str) -> None:
    assert outcome.code == 2
    assert message in outcome.err
    assert "Traceback" not in outcome.err


def test_serve_refuses_a_port_that_is_taken(pslrec: Command, finished_run: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = pslrec("serve", finished_run, "--port", port)
    assert_refused(refused, f"cannot listen at 127.0.0.1 port {port}")


def test_serve_refuses_what_is_no_run(pslrec: Command, tmp_path: Path):
    assert_refused(pslrec("serve", tmp_path / "absent", "--port", 0), "is not a run directory")


def test_serve_refuses_a_host_that_is_not_here(pslrec: Command, finished_run: Path):
    assert_refused(
        pslrec("serve", finished_run, "--host", "203.0.113.1", "--port", 0), "cannot listen at"
    )


def test_serve_refuses_tokens_that_can_not_be_used(
    pslrec: Command, finished_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    empty = tmp_path / "token"
    empty.write_text("\n")
    assert_refused(pslrec("serve", finished_run, "--token-file", empty), "is empty")
    assert_refused(
        pslrec("serve", finished_run, "--token-file", tmp_path / "absent"), "cannot be read"
    )
    monkeypatch.setenv("PSLREC_TOKEN", "two words")
    assert_refused(pslrec("serve", finished_run), "`token`")


def test_serve_refuses_titles_of_other_items(pslrec: Command, finished_run: Path, tmp_path: Path):
    titles = tmp_path / "titles.csv"
    titles.write_text("item,title\nnone-of-them,Nothing\n")
    refused = pslrec("serve", finished_run, "--port", 0, "--titles", titles)
    assert_refused(refused, "no id in column `item`")


def test_serve_refuses_a_table_of_ratings_for_titles(
    pslrec: Command, finished_run: Path, tmp_path: Path
):
    ratings = tmp_path / "ratings.csv"
    ratings.write_text("item,rating\n1,5\n2,3\n")
    refused = pslrec("serve", finished_run, "--port", 0, "--titles", ratings)
    assert_refused(
        refused,
        "must hold a column of titles beside the ids in `item`, got columns `item`, `rating`",
    )
