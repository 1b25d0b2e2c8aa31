"""Reports of studies: a search for settings, a comparison, or any other table of trials."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from pslrec.artifacts import ArtifactError
from pslrec.files import read_json
from pslrec.reporting._comparison_study import comparison_document, settings_in_words
from pslrec.reporting._document import (
    Block,
    Charts,
    Document,
    Mark,
    Section,
    Table,
    Text,
    Tile,
    Tiles,
    number,
    words,
)
from pslrec.reporting._runs import write_report
from pslrec.reporting._stress_study import stress_document
from pslrec.reporting._study_charts import curve_chart, importance_chart, slice_chart

COMPARISON_FILE = "comparison.json"
RESULTS_FILE = "results.json"
SUMMARY_FILE = "summary.csv"


def is_study(path: Path) -> bool:
    """Whether a directory holds a study that `study_report` can read."""
    return (path / COMPARISON_FILE).exists() or (path / RESULTS_FILE).exists()


def study_report(directory: Path, out: Path) -> Path:
    """Write the report of a study.

    Args:
        directory: of a search, a comparison, or another study.
        out: the HTML file to write; an older one is replaced.
    """
    if (directory / COMPARISON_FILE).exists():
        found = read_json(directory / COMPARISON_FILE, error=ArtifactError)
        return write_report(comparison_document(found), out)
    found = read_json(directory / RESULTS_FILE, error=ArtifactError)
    if found.get("kind") == "tuning":
        return write_report(tuning_document(found, directory.name), out)
    # A stress test that was stopped has no summary yet, only trials.
    if found.get("kind") == "stress" and (directory / SUMMARY_FILE).exists():
        name = directory.name.removeprefix("stress-")
        return write_report(stress_document(pl.read_csv(directory / SUMMARY_FILE), name), out)
    return write_report(trials_document(found, directory.name), out)


def tuning_document(found: Mapping[str, Any], name: str) -> Document:
    """The report of a search.

    Args:
        found: the content of `results.json`.
        name: of the study.
    """
    metric = found["metric"]
    trials = found["trials"]
    tiles = _state_tiles(trials)
    blocks: list[Block] = [Tiles(tiles)]
    best = found.get("best")
    if best is None:
        blocks.append(Text("The search is not complete, so nothing is chosen yet.", "warning"))
    else:
        value = next(trial["value"] for trial in trials if trial["key"] == best["key"])
        tiles.insert(0, Tile(f"Best {metric}", f"{value:.4f}", "on validation"))
        test = found["metrics"].get("test", {}).get(metric)
        if test is not None:
            tiles.insert(1, Tile(f"Test {metric}", f"{test:.4f}", "opened for the best one alone"))
        blocks.append(Text(f"Best settings: {settings_in_words(best['settings'])}."))
    for warning in found.get("warnings", ()):
        blocks.append(Text(f"{warning[0].upper()}{warning[1:]}.", "warning"))

    names = list(found.get("space", {}))
    valued = [trial for trial in trials if trial["value"] is not None]
    pictures = []
    if len(valued) > 1:
        pictures = [slice_chart(each, valued, metric=metric) for each in names]
        if found.get("importances"):
            pictures.append(importance_chart(found["importances"]))
        pictures.append(curve_chart(valued, metric=metric))
    sections = [
        Section("Summary", blocks),
        Section("The search", [Charts(pictures)] if pictures else []),
        Section("Trials", [_trial_table(trials, names, metric)]),
        Section("What is the same for all", [_asked_table(found)]),
    ]
    return Document(f"Tuning study {name}", f"chosen by {metric} on validation", sections)


def trials_document(found: Mapping[str, Any], name: str) -> Document:
    """The report of a study of which nothing is known but its trials; arguments as above."""
    trials = found["trials"]
    names: dict[str, None] = {}
    for trial in trials:
        names |= dict.fromkeys(trial["settings"])
    metric = found["metric"]
    sections = [
        Section("Summary", [Tiles(_state_tiles(trials))]),
        Section("Trials", [_trial_table(trials, list(names), metric)]),
    ]
    return Document(f"Study {name}", str(found.get("kind")), sections)


def _state_tiles(trials: Sequence[Mapping[str, Any]]) -> list[Tile]:
    tiles = [Tile("Trials", str(len(trials)))]
    states = [trial["state"] for trial in trials]
    for state in dict.fromkeys(states):
        tiles.append(Tile(state.capitalize(), str(states.count(state))))
    seconds = sum(trial["seconds"] for trial in trials)
    tiles.append(Tile("Time", f"{seconds:,.0f} s", "of all trials together"))
    return tiles


def _trial_table(trials: Sequence[Mapping[str, Any]], names: Sequence[str], metric: str) -> Table:
    rows = []
    for trial in trials:
        found = trial["found"]
        row = [number(trial["trial"], ".0f")]
        for name in names:
            value = trial["settings"].get(name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            row.append(number(value, ".4g") if is_number else words(value))
        row.append(number(found.get("validation", {}).get(metric)))
        if any("test" in each["found"] for each in trials):
            row.append(number(found.get("test", {}).get(metric)))
        row.append(number(found.get("best_epoch"), ".0f"))
        row.append(number(found.get("trained_epochs"), ".0f"))
        row.append(number(trial["seconds"], ".1f"))
        mark: Mark = "worse" if trial["state"] == "failed" else ""
        row.append(words(trial["state"], mark))
        row.append(words(trial["reason"]))
        rows.append(row)
    columns = ["trial", *(name.rpartition(".")[2] for name in names), f"validation {metric}"]
    if any("test" in each["found"] for each in trials):
        columns.append(f"test {metric}")
    columns += ["best epoch", "epochs", "seconds", "state", "reason"]
    return Table("All trials", columns, rows)


def _asked_table(found: Mapping[str, Any]) -> Table:
    rows = []
    for name, value in found.get("asked", {}).items():
        if name != "space":
            rows.append([words(name), words(value)])
    for name, values in found.get("space", {}).items():
        rows.append([words(f"searched: {name}"), words(_space_in_words(values))])
    return Table("Settings that differ from the defaults, and what was searched", ["", ""], rows)


def _space_in_words(values: Any) -> str:
    if isinstance(values, dict):
        scale = ", by order of magnitude" if values.get("log") else ""
        return f"{values['low']:g} to {values['high']:g}{scale}"
    return ", ".join(str(value) for value in values)
