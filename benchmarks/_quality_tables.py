"""What the documentation shows of quality by seconds: values, who leads, and settings."""

from dataclasses import dataclass
from typing import Any

from benchmarks._publish import about_load, table
from benchmarks._rivals import LONG_PATIENCE, PATIENCE

Curves = dict[str, Any]
Points = list[dict[str, float]]
# Settings that say where a value comes from or what everybody has, not what was chosen.
UNTOLD = (
    "preset",
    "factors",
    "n_components",
    "backbone.name",
    "backbone.dimension",
    "training.validate_every",
)


@dataclass(frozen=True)
class Shown:
    """What is shown of a data set.

    Args:
        data: its name, as on the page of accuracy.
        marks: seconds at which values are shown.
        headline_marks: some of them, for a table that fits a screen.
        goal: a value of which tables say when it is reached.
        lowest: where the axis of the picture begins.
    """

    data: str
    marks: tuple[int, ...]
    headline_marks: tuple[int, ...]
    goal: float
    lowest: float


def rows_of(curves: Curves, shown: Shown) -> list[dict[str, Any]]:
    """The test value of the model that was best on validation so far, at some times, by contestant."""
    return [
        {
            "contestant": name,
            "d": str(curve["dimension"] or ""),
            **_by_seconds(curve["points"], shown),
            "fitting s": f"{_chosen(curve['points'])['seconds'] - curve['fitting_from']:.1f}",
            "end": f"{_chosen(curve['points'])['test']:.4f}",
        }
        for name, curve in curves.items()
    ]


def quality_text(record: dict[str, Any], shown: Shown) -> str:
    """Sentences and tables made from a record."""
    result, machine = record["result"], record["machine"]
    measured = f"({machine['processor']}, {machine['cores']} cores, {record['measured']})"
    opening = (
        f"Test NDCG@20 on {shown.data} (paper protocol) of the model that was best on validation "
        f"so far, by seconds from a cold process {measured}."
    )
    curves = result["curves"]
    parts = [
        f"{opening} `fitting s` counts from the end of imports and reading to the epoch that was best "
        f"on validation.{about_load(record)}",
        table(result["rows"]),
        by_seconds(curves, shown),
        by_dimension(curves),
        SEARCHED,
        table([_setting_row(name, curve) for name, curve in curves.items()]),
    ]
    if "left_out" in result:
        parts.append(f"Left out: {result['left_out']}.")
    return "\n\n".join(parts)


def quality_headline(record: dict[str, Any], shown: Shown) -> str:
    """The same values in a table that fits a screen."""
    machine = record["machine"]
    measured = f"{machine['processor']}, {machine['cores']} cores, {record['measured']}"
    columns = ["contestant", *(f"{mark} s" for mark in shown.headline_marks), "end"]
    rows = [{column: row[column] for column in columns} for row in record["result"]["rows"]]
    return (
        f"{table(rows)}\n\n"
        f"Test NDCG@20 on {shown.data} by seconds from a cold process ({measured}); all settings "
        "chosen on validation data, one seed each."
    )


SEARCHED = (
    "All settings were chosen on validation NDCG@20. Those of the rivals come from a grid that was "
    "extended while its best cell lay at an edge and then refined around that cell. In the search, "
    f"training stopped after {PATIENCE} epochs without an improvement on validation; here, after "
    f"{LONG_PATIENCE}. The presets are as shipped. Time spent searching is not counted. One seed each."
)


def by_seconds(curves: Curves, shown: Shown) -> str:
    """Who has the highest test value after some times."""
    leaders = []
    for mark in shown.marks:
        values = {name: _value_at(curve["points"], mark) for name, curve in curves.items()}
        reached = {name: value for name, value in values.items() if value is not None}
        if reached:
            name = max(reached, key=lambda contestant: reached[contestant])
            leaders.append(f"after {mark} s {name} ({reached[name]:.4f})")
    return f"Highest {', '.join(leaders)}."


def by_dimension(curves: Curves) -> str:
    """The values at the end of those that have the same dimension, highest first."""
    sentences = []
    for dimension in sorted({curve["dimension"] for curve in curves.values()} - {0}):
        ends = {}
        for name, curve in curves.items():
            if curve["dimension"] == dimension:
                ends[name.removesuffix(f", d = {dimension}")] = _chosen(curve["points"])["test"]
        ranked = sorted(ends, key=lambda name: ends[name], reverse=True)
        values = ", ".join(f"{name} {ends[name]:.4f}" for name in ranked)
        sentences.append(f"d = {dimension}: {values}")
    return f"At the end, by dimension: {'; '.join(sentences)}."


def _by_seconds(points: Points, shown: Shown) -> dict[str, str]:
    row = {}
    for mark in shown.marks:
        value = _value_at(points, mark)
        row[f"{mark} s"] = "" if value is None else f"{value:.4f}"
    row[f"{shown.goal} after"] = "not reached"
    for count, point in enumerate(points, start=1):
        if _chosen(points[:count])["test"] >= shown.goal:
            row[f"{shown.goal} after"] = f"{point['seconds']:.1f} s"
            break
    return row


def _value_at(points: Points, mark: float) -> float | None:
    so_far = [point for point in points if point["seconds"] <= mark]
    return _chosen(so_far)["test"] if so_far else None


def _chosen(points: Points) -> dict[str, float]:
    """What validation chooses; the test value has no say."""
    return max(points, key=lambda point: point["validation"])


def _setting_row(name: str, curve: dict[str, Any]) -> dict[str, str]:
    settings = {key: value for key, value in curve["settings"].items() if key not in UNTOLD}
    told = ", ".join(f"{_word(key)} {_short(value)}" for key, value in settings.items())
    edges = curve.get("edges")
    if edges:
        told += f" (at the edge of its grid: {', '.join(edges)})"
    points = curve["points"]
    epochs = points.index(_chosen(points))
    if curve["kind"] != "pslrec":
        # Exact training shows its start as well; the first point of a rival is its first epoch.
        epochs += 1
    return {
        "contestant": name,
        "chosen setting": told,
        "cells": str(curve.get("n_tried", "preset")),
        "epochs": str(epochs),
        "validation": f"{_chosen(points)['validation']:.4f}",
    }


def _word(key: str) -> str:
    """`loss.name` is the loss, `loss.temperature` is the temperature."""
    return key.removesuffix(".name").rpartition(".")[2]


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
