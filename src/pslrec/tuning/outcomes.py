"""What became of each cell, and the files that say so."""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from pslrec.artifacts import read_metrics
from pslrec.experiment import VALIDATION_FILE
from pslrec.files import exclusive, write_text
from pslrec.tuning.grid import Cell

RESULTS, SUMMARY, BEST = "results.csv", "results.json", "best.toml"


@dataclass(frozen=True)
class CellOutcome:
    """A cell and what is known of it.

    Args:
        cell: its settings.
        directory: where its run is.
        found: what its `validation.json` holds; empty before its first look at the validation part.
    """

    cell: Cell
    directory: Path
    found: Mapping[str, Any]

    @property
    def state(self) -> str:
        """`open`, `paused`, `finished` or `failed`."""
        if self.found.get("failed"):
            return "failed"
        if not self.found.get("trained_epochs"):
            return "open"
        return "finished" if self.found.get("is_finished") else "paused"

    @property
    def epochs(self) -> int:
        """Trained so far."""
        return int(self.found.get("trained_epochs", 0))

    def value(self, metric: str) -> float | None:
        """On validation, at the best epoch so far; `None` if there is none."""
        value = self.found.get("validation", {}).get(metric)
        return None if value is None else float(value)


@dataclass(frozen=True)
class TuningResult:
    """A search.

    Args:
        directory: where its files are.
        metric: by which cells are compared, on validation.
        cells: all of them, best first; those without a value last.
        metrics: of the best one, with the test part; empty as long as the search is not complete.
        is_complete: whether every cell that was still in the running is finished.
    """

    directory: Path
    metric: str
    cells: Sequence[CellOutcome]
    metrics: Mapping[str, Any]
    is_complete: bool

    @property
    def best(self) -> CellOutcome | None:
        """The finished cell with the highest value on validation."""
        return next((cell for cell in self.cells if cell.state == "finished"), None)

    def at_the_edge(self) -> list[str]:
        """Settings whose best value is the lowest or highest that was tried, so that a better one may lie beyond."""
        best = self.best
        names = [] if best is None else list(best.cell.settings)
        found = []
        for name in names:
            values = {cell.cell.settings[name] for cell in self.cells}
            is_number = all(
                isinstance(value, int | float) and not isinstance(value, bool) for value in values
            )
            if best is not None and is_number and len(values) > 1:
                value = best.cell.settings[name]
                # Nothing lies below 0.
                if value == max(values) or (value == min(values) and value > 0):
                    found.append(name)
        return found

    def to_frame(self) -> pl.DataFrame:
        """One row per cell: its settings, and what it reached on validation."""
        return pl.DataFrame(
            [_row(cell, rank, self.metric) for rank, cell in enumerate(self.cells, 1)], strict=False
        )


def _row(outcome: CellOutcome, rank: int, metric: str) -> dict[str, Any]:
    found = outcome.found
    names = dict.fromkeys([metric, "ndcg@20", "recall@20"])
    return {
        "rank": rank if outcome.value(metric) is not None else None,
        "cell": outcome.cell.key,
        **{
            name: value if isinstance(value, int | float) else str(value)
            for name, value in outcome.cell.settings.items()
        },
        "state": outcome.state,
        **{f"validation_{name}": outcome.value(name) for name in names},
        "best_epoch": found.get("best_epoch"),
        "trained_epochs": found.get("trained_epochs"),
        "seconds_per_epoch": found.get("seconds_per_epoch"),
        "seed": outcome.cell.config.training.seed,
        "failed": found.get("failed"),
    }


def read_outcome(cell: Cell, directory: Path) -> CellOutcome:
    """What the directory of a cell says."""
    path = directory / "cells" / cell.key
    found = read_metrics(path, VALIDATION_FILE) if (path / VALIDATION_FILE).exists() else {}
    return CellOutcome(cell, path, found)


def ranked(outcomes: Sequence[CellOutcome], metric: str) -> list[CellOutcome]:
    """Best first: by value, finished before paused ones at equal value, then in the order given."""

    def order(outcome: CellOutcome) -> tuple[float, bool]:
        value = outcome.value(metric)
        return (float("inf") if value is None else -value), outcome.state != "finished"

    return sorted(outcomes, key=order)


def write_results(result: TuningResult, grid: Mapping[str, Sequence[Any]]) -> None:
    """Write `results.csv`, `results.json` and, once there is a best cell, `best.toml`."""
    content = io.StringIO()
    content.write(result.to_frame().write_csv())
    best = result.best
    summary = {
        "metric": f"{result.metric} on validation",
        "is_complete": result.is_complete,
        "grid": {name: list(values) for name, values in grid.items()},
        "cells": [
            {
                "cell": each.cell.key,
                "settings": dict(each.cell.settings),
                "state": each.state,
                **each.found,
            }
            for each in result.cells
        ],
        "best": None
        if best is None
        else {"cell": best.cell.key, "settings": dict(best.cell.settings)},
        "metrics": dict(result.metrics),
    }
    # Two processes that share a search write the same names, and the three files belong together.
    with exclusive(result.directory / "lock", wait=True):
        write_text(result.directory / RESULTS, content.getvalue())
        write_text(result.directory / SUMMARY, json.dumps(summary, indent=2) + "\n")
        if best is not None:
            write_text(result.directory / BEST, best.cell.config.to_toml())
