"""The model of a step in several processes: it finds the speeds that made the numbers, and answers as they say."""

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import predictions
from benchmarks.predictions import Data, Speeds, cluster, fitted, measured_steps, seconds

TRUTH = Speeds(score=6e-9, user=1e-5, row=2e-7, byte=8e-10, collective=2e-4)
N_ITEMS = 10_000


def made_record() -> dict[str, Any]:
    rows = []
    for negatives, scores in (("catalog", 2_400_000), ("shared:2048", 1_200_000)):
        for items, processes in (
            ("replicated", 1),
            ("replicated", 2),
            ("replicated", 4),
            ("sharded", 2),
            ("sharded", 4),
        ):
            row = {
                "negatives": negatives,
                "items": items,
                "processes": processes,
                "ms per step": 1.0,
                "kB per step": 2560.0 if items == "replicated" else 260.0,
                "collectives": 2.0 if items == "replicated" else 6.0,
                "scores": scores,
            }
            rows.append(row)
    record = {"machine": {"cores": 2}, "result": {"n_items": N_ITEMS, "rows": rows}}
    for row, (step, _) in zip(rows, measured_steps(record), strict=True):
        row["ms per step"] = 1000 * seconds(step, TRUTH)
    return record


def test_the_fit_explains_what_the_model_made():
    steps = measured_steps(made_record())
    found = fitted(steps)
    for step, truth in steps:
        assert seconds(step, found) == pytest.approx(truth, rel=0.05)


def test_a_run_says_how_far_the_model_is_off_and_answers(monkeypatch: pytest.MonkeyPatch):
    record = made_record()
    # One row that no speeds can explain.
    record["result"]["rows"][0]["ms per step"] *= 3
    monkeypatch.setattr(predictions, "load_record", lambda _: record)
    result = predictions.run()
    assert not result["is_met"]
    assert len(result["rows"]) == 10
    text = predictions.markdown({"result": result})
    assert "100 machines of 16 cores" in text
    assert f"largest deviation is {100 * result['largest_deviation']:.0f} %" in text


def test_divided_items_fit_where_replicated_ones_do_not():
    machines = cluster(TRUTH)
    huge = Data(users=1e9, items=1e8)
    assert predictions.predicted(machines, huge, is_sharded=False)["fits"] == "no"
    assert predictions.predicted(machines, huge, is_sharded=True)["fits"] == "yes"


def test_more_processes_than_cores_take_turns():
    step = measured_steps(made_record())[2][0]
    assert step.processes == 4
    alone = predictions.Step(
        4, 4, step.scores, step.rows, step.n_bytes, step.collectives, shared_users=0.0
    )
    assert seconds(step, TRUTH) == pytest.approx(2 * seconds(alone, TRUTH))
