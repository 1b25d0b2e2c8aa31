"""The load benchmark at a small size: many connections at once, requests of every kind, reloads in between, and none fails."""

from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the service comes with pslrec[serve]")

pytestmark = pytest.mark.slow
REPOSITORY = Path(__file__).resolve().parents[3]


def test_rules_are_timed_beside_plain_requests(
    finished_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(REPOSITORY))
    from benchmarks import rules

    monkeypatch.setattr(rules, "N_CHOSEN", 20)
    result = rules.run(3, run_path=finished_run)
    assert result["rows"][0]["rules"] == rules.PLAIN
    assert result["rows"][0]["HTTP ratio"] == 1
    assert all(row["Python ratio"] > 0 for row in result["rows"])
    machine = {"cores": 2, "processor": "any", "load_before": [0.5]}
    record = {"result": result, "machine": machine, "measured": "today"}
    assert "3 rounds" in rules.markdown(record)


def test_service_bears_many_connections_and_reloads_without_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(REPOSITORY))
    from benchmarks import serving

    monkeypatch.setenv("PSLREC_DATA_DIR", str(tmp_path))  # so that data are made up
    monkeypatch.setattr(serving, "N_USERS", 300)
    monkeypatch.setattr(serving, "N_ITEMS", 120)
    told: list[str] = []
    result = serving.run(0.5, memory_minutes=0.001, report=told.append)
    assert result["data"] == "made up, of the same size"
    assert [row["connections"] for row in result["rows"]] == [1, 16, 64]
    assert all(
        row["requests/s"] > 0 and 0 < row["p50 ms"] <= row["p99 ms"] for row in result["rows"]
    )
    assert len(result["memory_mib"]) == 1
    assert "memory: " in told[-1]
    record = {"result": result, "machine": {"cores": 2, "processor": "any"}, "measured": "today"}
    assert "Over 0.001 minutes of load of all kinds" in serving.markdown(record)
