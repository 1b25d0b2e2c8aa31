"""The results: one CSV per table, a row per run; several processes may add to it at a time."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pslrec.errors import ConfigError
from pslrec.files import exclusive, make_directory, write_text
from pslrec.reporting import RUN_COLUMNS, read_results
from pslrec.reproduction._cells import Cell, Identity, identity_of
from pslrec.reproduction._published import Row

CUTOFFS = "cutoffs"


def columns_of(metrics: Sequence[str]) -> tuple[str, ...]:
    """The columns of a table of runs.

    >>> columns_of(["ndcg20"])[-7:-4]
    ('ours_ndcg20', 'published_ndcg20', 'published_in')
    """
    ours = [f"ours_{metric}" for metric in metrics]
    published = [f"published_{metric}" for metric in metrics]
    last = ("published_in", "selected_on_test", "best_epoch", "seconds", "commit")
    return ("table", *RUN_COLUMNS, *ours, *published, *last)


def row_of(cell: Cell, metrics: Sequence[str], found: Mapping[str, Any], commit: str) -> Row:
    """The row of a finished run.

    Args:
        cell: what was run.
        metrics: of the paper, such as `ndcg@20`.
        found: what its `metrics.json` holds.
        commit: of the code that ran it.
    """
    row = cell.columns()
    names = [metric.replace("@", "") for metric in metrics]
    for metric, name in zip(metrics, names, strict=True):
        row[f"ours_{name}"] = str(round(found["test"][metric], 5))
    row |= published_columns(cell, names)
    # One look, after the last epoch, chooses nothing.
    looks = cell.settings.get("training.validate_every", 1) < cell.epochs
    row["selected_on_test"] = str(found["selected_on_test"] and looks)
    row["best_epoch"] = str(found["best_epoch"])
    row["seconds"] = str(round(found["seconds_per_epoch"] * found["trained_epochs"]))
    row["commit"] = commit
    return row


def published_columns(cell: Cell, metrics: Sequence[str]) -> Row:
    """What was printed for a cell, as columns of its row."""
    row = {"published_in": cell.published_in}
    for metric in metrics:
        row[f"published_{metric}"] = str(cell.published.get(metric, ""))
    return row


def cutoff_rows(cell: Cell, found: Mapping[str, Any]) -> list[Row]:
    """Recall and NDCG of a finished run at every list length."""
    lengths = []
    for name in found["test"]:
        metric, _, k = name.partition("@")
        if metric == "recall":
            lengths.append(int(k))
    rows = []
    for k in sorted(lengths):
        row = cell.columns() | {"k": str(k)}
        for metric in ("recall", "ndcg"):
            row[metric] = f"{found['test'][f'{metric}@{k}']:.5f}"
        rows.append(row)
    return rows


@dataclass
class Results:
    """The directory of results.

    Args:
        directory: is made if it is not there.
        metrics: of the paper, as columns name them.
        below: results that are read as well, but never written; rows here take their place.
    """

    directory: Path
    metrics: Sequence[str] = ("recall20", "ndcg20")
    below: "Results | None" = field(default=None, kw_only=True)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Of a table of runs."""
        return columns_of(self.metrics)

    def path(self, table: str) -> Path:
        """The CSV of a table."""
        return self.directory / f"{table}.csv"

    def rows(self, table: str) -> list[Row]:
        """All rows of a table; none if there are none yet."""
        own = self._own_rows(table)
        if self.below is None:
            return own
        both = [*own, *self.below.rows(table)]
        if not both or tuple(both[0]) != self.columns:
            # Of tables that are not of runs, readers take the first row that they look for.
            return both
        return list(by_identity(reversed(both)).values())

    def _own_rows(self, table: str) -> list[Row]:
        if not self.path(table).exists():
            return []
        return read_results(self.path(table))

    def rows_of_runs(self) -> list[Row]:
        """The rows of all tables of which every row is a run."""
        names = {path.stem for path in self.directory.glob("*.csv")}
        if self.below is not None:
            names |= {path.stem for path in self.below.directory.glob("*.csv")}
        found = []
        for name in sorted(names):
            rows = self.rows(name)
            if rows and tuple(rows[0]) == self.columns:
                found += rows
        return found

    def add(self, table: str, rows: Sequence[Row]) -> None:
        """Put rows in; they take the place of rows of the same runs."""
        self.merge(table, rows, columns=self.columns, key=identity_of)

    def add_cutoffs(self, rows: Sequence[Row]) -> None:
        """Put in the values at every list length, of all tables together."""
        columns = ("table", *RUN_COLUMNS, "k", "recall", "ndcg")
        self.merge(
            CUTOFFS,
            rows,
            columns=columns,
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
            merged = {key(row): row for row in [*self._own_rows(name), *rows]}
            ordered = sorted(merged.values(), key=lambda row: _sortable(row, columns))
            self._write(name, ordered, columns)

    def replace(self, name: str, rows: Sequence[Row], *, columns: Sequence[str]) -> None:
        """Write the file of this name anew, rows in the order given."""
        with self.locked():
            self._write(name, rows, columns)

    def _write(self, name: str, rows: Iterable[Row], columns: Sequence[str]) -> None:
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


def by_identity(rows: Iterable[Row]) -> dict[Identity, Row]:
    """Runs by what makes them one; a run that stands in several tables is there once."""
    return {identity_of(row): row for row in rows}


def _sortable(row: Row, columns: Sequence[str]) -> list[tuple[float, str]]:
    key = []
    for column in columns:
        try:
            key.append((float(row[column]), ""))
        except ValueError:
            key.append((float("inf"), row[column]))
    return key
