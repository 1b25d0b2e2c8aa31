import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("uvicorn", reason="the service comes with pslrec[serve]")

from pslrec.cli.main import app
from pslrec.config import RunConfig
from pslrec.errors import PslrecError
from pslrec.experiment import run as train
from pslrec.serving import Service, address_of, listen, serve

SETTINGS = {"sampling.negatives": 4, "training.epochs": 1, "backbone.dimension": 8}
PROGRAM = "from pslrec.cli import main; main()"


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
def test_serve_reloads_on_sighup_and_stops_on_sigterm_and_sigint(finished_run: Path, caplog: pytest.LogCaptureFixture):
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("only the main thread hears signals")
    caplog.set_level("INFO", logger="pslrec")
    handlers = [signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)]
    for number in (signal.SIGTERM, signal.SIGINT):
        with listen("127.0.0.1", 0) as listener:
            caller = threading.Thread(target=_signal_when_ready, args=(address_of(listener), number, caplog))
            caller.start()
            serve(Service(finished_run), listener)
            caller.join(timeout=10)
        assert "serving run, model" in caplog.text
        caplog.clear()
    assert [signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)] == handlers


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
    command = [sys.executable, "-c", PROGRAM, "serve", str(finished_run), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
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


def fails(arguments: list[str], **environment: str) -> str:
    result = CliRunner().invoke(app, ["serve", *arguments], env=environment)
    assert isinstance(result.exception, PslrecError), result.output
    return str(result.exception)


def test_serve_refuses_a_port_that_is_taken(finished_run: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"can not listen at 127.0.0.1 port {port}" in fails([str(finished_run), "--port", str(port)])


def test_serve_refuses_what_is_no_run(tmp_path: Path):
    assert "no directory of a run" in fails([str(tmp_path / "absent"), "--port", "0"])


def test_serve_refuses_a_host_that_is_not_here(finished_run: Path):
    assert "can not listen at" in fails([str(finished_run), "--host", "203.0.113.1", "--port", "0"])


def test_serve_refuses_tokens_that_can_not_be_used(finished_run: Path, tmp_path: Path):
    empty = tmp_path / "token"
    empty.write_text("\n")
    assert "is empty" in fails([str(finished_run), "--token-file", str(empty)])
    assert "can not be read" in fails([str(finished_run), "--token-file", str(tmp_path / "absent")])
    assert "`token`" in fails([str(finished_run)], PSLREC_TOKEN="two words")


def test_serve_refuses_titles_of_other_items(finished_run: Path, tmp_path: Path):
    titles = tmp_path / "titles.csv"
    titles.write_text("item,title\nnone-of-them,Nothing\n")
    assert "no id in column `item`" in fails([str(finished_run), "--port", "0", "--titles", str(titles)])
