"""The demo: what people see first, and the page that it offers."""

import json
import re
import signal
import urllib.request
from types import SimpleNamespace

import pytest
from command_line import Command, start

from pslrec.cli import demo
from pslrec.cli.demo import _meaning


def results(ours: float, theirs: float) -> dict[str, dict[str, float]]:
    return {
        "popularity": {"ndcg@20": 0.1, "recall@20": 0.2},
        "ease": {"ndcg@20": theirs, "recall@20": 0.5},
        "pslrec": {"ndcg@20": ours, "recall@20": 0.834},
    }


def test_the_table_is_put_into_words() -> None:
    ahead = _meaning(results(0.55, 0.5))
    assert "83 % of the hidden needs among its first 20" in ahead
    assert "pslrec leads the best of the others, ease, by 10.0 %" in ahead
    assert "ease leads pslrec by 10.0 %" in _meaning(results(0.45, 0.5))


def test_the_page_is_offered_or_served(pslrec: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    run = SimpleNamespace(dataset=None, test=results(0.5, 0.4)["pslrec"], scorer=None)
    served = []
    monkeypatch.setattr(demo, "_train", lambda _: run)
    monkeypatch.setattr(demo, "_evaluate_baseline", lambda *_: results(0.5, 0.4)["ease"])
    monkeypatch.setattr(demo, "_recommendations", lambda *_: "lists")
    monkeypatch.setattr(demo, "_serve", lambda *given: served.append(given))
    offered = pslrec("demo")
    assert offered.code == 0, offered.err
    assert "Every Debian package names others that it needs" in offered.out
    assert offered.out.rstrip().endswith("pslrec demo --serve")
    assert not served
    done = pslrec("demo", "--serve", "--port", "0")
    assert done.code == 0, done.err
    assert served == [(run, 0)]
    assert "--serve" not in done.out


@pytest.mark.slow
def test_the_demo_serves_its_model() -> None:
    process = start("demo", "--serve", "--port", "0")
    try:
        address = None
        while address is None:
            line = process.stderr.readline()
            assert line, process.stdout.read()
            address = re.search(r"http://127[^ ;]*", line)
        body = json.dumps({"users": ["vim"], "k": 3}).encode()
        with urllib.request.urlopen(f"{address[0].rstrip('/')}/recommend", body) as answer:
            assert len(json.load(answer)["recommendations"][0]["items"]) == 3
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 0
