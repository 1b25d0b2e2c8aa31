"""The results: one CSV per table, a row per run; several processes may add to it at the same time."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pslrec.errors import ConfigError
from pslrec.files import exclusive, make_directory, write_text
from pslrec.reproduction.cells import IDENTITY, Cell, Identity, identity_of
from pslrec.reproduction.published import read_rows

COLUMNS = (
    "table",
    *IDENTITY,
    "ours_recall20",
    "ours_ndcg20",
    "published_recall20",
    "published_ndcg20",
    "published_in",
    "selected_on_test",
    "best_epoch",
    "seconds",
    "commit",
)
SORTED_BY = (
    "dataset",
    "backbone",
    "loss",
    "form",
    "setting",
    "noise",
    "mode",
    "protocol",
    "seed",
    "temperature",
)
CUTOFF_COLUMNS = (*COLUMNS[:15], "k", "recall", "ndcg")
Row = dict[str, str]


def row_of(cell: Cell, metrics: Mapping[str, Any], commit: str) -> Row:
    """The row of a finished run.

    Args:
        cell: what was run.
        metrics: what its `metrics.json` holds.
        commit: of the code that ran it.
    """
    values = {
        "ours_recall20": round(metrics["test"]["recall@20"], 5),
        "ours_ndcg20": round(metrics["test"]["ndcg@20"], 5),
        # One look, after the last epoch, chooses nothing.
        "selected_on_test": metrics["selected_on_test"] and "last epoch" not in cell.setting,
        "best_epoch": metrics["best_epoch"],
        "seconds": round(metrics["seconds_per_epoch"] * metrics["trained_epochs"]),
        "commit": commit,
    }
    row = (
        cell.columns()
        | published_columns(cell)
        | {name: str(value) for name, value in values.items()}
    )
    return {name: row[name] for name in COLUMNS}


def published_columns(cell: Cell) -> Row:
    """What was printed for a cell, as columns of its row."""
    value = cell.published
    numbers = {"published_recall20": value.recall, "published_ndcg20": value.ndcg}
    return {name: "" if number is None else str(number) for name, number in numbers.items()} | {
        "published_in": value.where
    }


def cutoff_rows(cell: Cell, metrics: Mapping[str, Any]) -> list[Row]:
    """Recall and NDCG of a finished run at every list length."""
    lengths = sorted(
        int(name.partition("@")[2]) for name in metrics["test"] if name.startswith("recall@")
    )
    columns = cell.columns()
    return [
        columns
        | {
            "k": str(k),
            "recall": f"{metrics['test'][f'recall@{k}']:.5f}",
            "ndcg": f"{metrics['test'][f'ndcg@{k}']:.5f}",
        }
        for k in lengths
    ]


class Results:
    """The directory of results.

    Args:
        directory: is made if it is not there.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def path(self, table: str) -> Path:
        """The CSV of a table."""
        return self.directory / f"{table}.csv"

    def rows(self, table: str) -> list[Row]:
        """All rows of a table; none if there are none yet."""
        return read_rows(self.path(table)) if self.path(table).exists() else []

    def tables_of_runs(self) -> list[str]:
        """The tables that there are, of which every row is a run."""
        tables = sorted(path.stem for path in self.directory.glob("*.csv"))
        return [
            table for table in tables if (rows := self.rows(table)) and tuple(rows[0]) == COLUMNS
        ]

    def rows_of_runs(self) -> list[Row]:
        """The rows of all those tables."""
        return [row for table in self.tables_of_runs() for row in self.rows(table)]

    def by_identity(self, tables: Iterable[str]) -> dict[Identity, Row]:
        """The runs of these tables; a run that stands in several is there once."""
        return {identity_of(row): row for table in tables for row in self.rows(table)}

    def add(self, table: str, rows: Sequence[Row]) -> None:
        """Put rows in; they take the place of rows of the same runs."""
        self.merge(table, rows, columns=COLUMNS, key=identity_of)

    def add_cutoffs(self, rows: Sequence[Row]) -> None:
        """Put in the values at every list length, of all tables together."""
        self.merge(
            "cutoffs",
            rows,
            columns=CUTOFF_COLUMNS,
            key=lambda row: (row["table"], *identity_of(row), row["k"]),
        )

    def merge(
        self,
        name: str,
        rows: Sequence[Row],
        *,
        columns: Sequence[str],
        key: Callable[[Row], tuple[str, ...]],
    ) -> None:
        """Put rows into the file of this name, the whole of it rewritten at once.

        Args:
            name: of the file, without ending.
            rows: what to put in.
            columns: of the file.
            key: rows with the same key replace each other.
        """
        if not rows:
            return
        with self.locked():
            merged = {key(row): row for row in [*self.rows(name), *rows]}
            ordered = sorted(
                merged.values(), key=lambda row: tuple(_sortable(row[column]) for column in columns)
            )
            self._write(name, ordered, columns)

    def replace(self, name: str, rows: Sequence[Row], *, columns: Sequence[str]) -> None:
        """Write the file of this name anew, rows in the order given."""
        with self.locked():
            self._write(name, rows, columns)

    def _write(self, name: str, rows: Sequence[Row], columns: Sequence[str]) -> None:
        text = io.StringIO()
        writer = csv.DictWriter(text, columns, lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
        write_text(self.path(name), text.getvalue())

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else writes here meanwhile."""
        make_directory(self.directory, error=ConfigError)
        with exclusive(self.directory / ".lock", wait=True, error=ConfigError):
            yield


def _sortable(text: str) -> tuple[float, str]:
    try:
        return float(text), ""
    except ValueError:
        return float("inf"), text
