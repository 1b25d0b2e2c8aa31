"""NDCG@20 against wall-clock seconds from a cold process on Amazon-Electronic: exact training, `implicit` ALS, EASE.

Every contestant is a process of its own. The clock starts before the first import and stands still while a model is judged, so
judging often costs nobody anything. The presets and the settings of ALS were chosen on validation data, EASE has its default;
a test value is only shown, of the model that was best on validation so far.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks._publish import table

DESCRIPTION = "NDCG@20 on Amazon-Electronic by seconds from a cold process: exact PSL-relu, implicit ALS, EASE"
REPOSITORY = Path(__file__).resolve().parent.parent
# By name, what a child runs: contestant and its settings.
CONTESTANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "pslrec, preset fast (d = 64)": ("pslrec", {"preset": "fast"}),
    "pslrec, preset best": ("pslrec", {"preset": "best"}),
    "implicit ALS, d = 64": ("als", {"factors": 64}),
    "implicit ALS, d = 128": ("als", {"factors": 128}),
    "implicit ALS, d = 256": ("als", {"factors": 256}),
    "EASE": ("ease", {"regularization": 200.0}),
}
# Tried for each number of factors; the best on validation is drawn.
ALS_GRID = [
    {"alpha": alpha, "regularization": regularization}
    for alpha in (5.0, 20.0)
    for regularization in (0.01, 30.0, 100.0, 300.0)
]
ALS_ITERATIONS = 8
MARKS = (1, 2, 5, 10, 20, 30, 60)


def run(*, report: Callable[[str], None] | None = None) -> dict[str, Any]:
    """Run every contestant, one after the other."""
    tell = report or (lambda _: None)
    curves = {}
    for name, (kind, settings) in CONTESTANTS.items():
        tell(name)
        chosen = _chosen_for_als(settings, tell) if kind == "als" else settings
        curves[name] = {"settings": chosen, "points": _child(kind, chosen)}
    rows = [{"contestant": name, **_marks(curve["points"])} for name, curve in curves.items()]
    return {"rows": rows, "curves": curves}


def _chosen_for_als(settings: dict[str, Any], tell: Callable[[str], None]) -> dict[str, Any]:
    tried = []
    for number, cell in enumerate(ALS_GRID):
        tell(f"ALS, {settings['factors']} factors, setting {number + 1} of {len(ALS_GRID)}")
        points = _child("als", {**settings, **cell})
        tried.append((max(point["validation"] for point in points), {**settings, **cell}))
    return max(tried, key=lambda pair: pair[0])[1]


def _child(kind: str, settings: dict[str, Any]) -> list[dict[str, float]]:
    command = [sys.executable, "-m", "benchmarks._contestant", kind, json.dumps(settings)]
    output = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if output.returncode != 0:
        raise RuntimeError(f"{kind} {settings} failed: {output.stderr.strip().splitlines()[-1:]}")
    return [json.loads(line) for line in output.stdout.splitlines() if line.startswith("{")]


def _marks(points: list[dict[str, float]]) -> dict[str, Any]:
    """The test value of the model with the best validation value so far, at some times; and when 0.0525 was reached."""
    row: dict[str, Any] = {}
    chosen = [max(points[: n + 1], key=lambda point: point["validation"]) for n in range(len(points))]
    for mark in MARKS:
        so_far = [best for point, best in zip(points, chosen, strict=True) if point["seconds"] <= mark]
        row[f"{mark} s"] = f"{so_far[-1]['test']:.4f}" if so_far else ""
    reached = [point["seconds"] for point, best in zip(points, chosen, strict=True) if best["test"] >= 0.0525]
    row["0.0525 after"] = f"{min(reached):.1f} s" if reached else "not reached"
    row["end"] = f"{max(points, key=lambda point: point['validation'])['test']:.4f}"
    return row


def plots(record: dict[str, Any]) -> dict[str, Any]:
    """The curves as a picture."""
    from benchmarks._plots import Axis, lines

    points = [
        {"contestant": name, "seconds": point["seconds"], "ndcg": point["test"]}
        for name, curve in record["result"]["curves"].items()
        for point in curve["points"]
    ]
    x, y = Axis("seconds", "seconds from a cold process", "log"), Axis("ndcg", "test NDCG@20", "linear")
    return {"time-to-quality": lines(points, x=x, y=y, series="contestant")}


def markdown(record: dict[str, Any]) -> str:
    """A sentence and a table for the documentation."""
    machine = record["machine"]
    return (
        f"Test NDCG@20 on Amazon-Electronic (paper protocol) of the model that was best on validation so far, by seconds from "
        f"a cold process ({machine['processor']}, {machine['cores']} cores, {record['measured']}). ALS: the best of "
        f"{len(ALS_GRID)} settings on validation for each number of factors.\n\n{table(record['result']['rows'])}"
    )
