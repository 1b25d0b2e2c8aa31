"""A table from its cells to its pages: run what is missing, compare, render."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pslrec.files import make_directory
from pslrec.reporting import TextTable, metric_title, reproduction_report
from pslrec.reproduction import _claims, _datasets, _overview, _significance
from pslrec.reproduction._cells import Cell
from pslrec.reproduction._cost import Costs
from pslrec.reproduction._grid import Choice, Grid
from pslrec.reproduction._page import PAGE, Page, tables_of
from pslrec.reproduction._provision import Provision
from pslrec.reproduction._published import Row
from pslrec.reproduction._results import (
    Results,
    by_identity,
    cutoff_rows,
    published_columns,
    row_of,
)
from pslrec.reproduction._running import COMMIT, Runner, Task, Watcher, key_of
from pslrec.studies import PER_USER, Clock, Study


@dataclass(frozen=True)
class Places:
    """Where things are.

    Args:
        folder: of the paper.
        runs: where its run directories live, and what is not written into the folder.
        data: where the data sets lie; by default `PSLREC_DATA_DIR` and the cache.
        is_own: whether new rows and the page are written into the folder. Folders that come with
            pslrec stay as they are; new rows go to `runs`.
    """

    folder: Path
    runs: Path
    data: Path | None = None
    is_own: bool = True

    def provision(self) -> Provision:
        """What finds the data."""
        return Provision(self.data, self.runs / "data", self.folder)


class Reproduction:
    """A paper, as far as it is reproduced.

    Args:
        places: where things are.
        choice: what to run.
        budget: seconds after which nothing is begun.
        workers: processes.
        again: run cells that have a recorded row as well; what comes out stays apart.
    """

    def __init__(
        self,
        places: Places,
        choice: Choice | None = None,
        *,
        budget: float | None = None,
        workers: int = 1,
        again: bool = False,
    ) -> None:
        self.places = places
        self.choice = choice or Choice()
        self.grid = Grid(places.folder)
        self.is_apart = again or self.grid.is_try(self.choice)
        self.recorded = Results(places.folder / "results", self.grid.metrics)
        self.results = self.recorded
        if self.is_apart:
            self.results = Results(places.runs / "apart", self.grid.metrics)
        elif not places.is_own:
            added = places.runs / "results"
            self.results = Results(added, self.grid.metrics, below=self.recorded)
        self._page = Page(places.folder, self.results, self.writes_page)
        self._clock = Clock(budget)
        self._workers = workers
        self._provision = places.provision()
        rows = [*self.recorded.rows_of_runs(), *self.results.rows_of_runs()]
        self._costs = Costs(self.grid.paper, rows, self.recorded.rows(_datasets.NAME))

    @property
    def writes_page(self) -> bool:
        """Whether the page of the folder follows the results."""
        return self.places.is_own and not self.is_apart

    def plan(self, table: str) -> list[Task]:
        """What `run` would do, cheapest first, without doing it."""
        here = by_identity(self.results.rows(table))
        known = by_identity(self.results.rows_of_runs()) | here
        tasks = []
        for cell in self.grid.cells(table, self.choice):
            task = Task(cell, self._costs.seconds(cell))
            if cell.identity in known:
                task.recorded = known[cell.identity]
                task.end("done", self._described(task.recorded))
            elif not self._provision.is_there(cell.source, cell.split):
                task.end("absent", self._provision.how_to_get(cell.source))
            tasks.append(task)
        return sorted(tasks, key=lambda task: task.seconds)

    def run(self, table: str, watch: Watcher = lambda _tasks: None) -> list[Task]:
        """Run the cells of a table that are not finished.

        Args:
            table: which one.
            watch: is told whenever something changes.
        """
        tasks = self.plan(table)
        self._copy_rows(table, tasks)
        runner = Runner(tasks, self._study(), self._provision, self._record, watch, self._clock)
        runner.run(workers=self._workers)
        return tasks

    def _study(self) -> Study:
        asked = {"paper": self.places.folder.resolve().name}
        return Study(self.places.runs, kind="reproduction", asked=asked)

    def _copy_rows(self, table: str, tasks: Iterable[Task]) -> None:
        """Take over the rows of runs that stand in another table."""
        rows = []
        for task in tasks:
            if task.recorded is not None and task.recorded["table"] != table:
                published = published_columns(task.cell, self.grid.metrics)
                rows.append({**task.recorded, "table": table, **published})
        self.results.add(table, rows)

    def _record(self, cell: Cell, found: Mapping[str, Any]) -> str:
        row = row_of(cell, self.grid.paper.metrics, found, str(found[COMMIT]))
        self.results.add(cell.table, [row])
        self.results.add_cutoffs(cutoff_rows(cell, found))
        # Its page never lags behind.
        self._write_page(cell.table)
        return self._described(row)

    def _described(self, row: Mapping[str, str]) -> str:
        parts = []
        for metric in self.grid.metrics:
            text = f"{metric_title(metric)} {float(row[f'ours_{metric}']):.4f}"
            if row[f"published_{metric}"]:
                text += f" (published {float(row[f'published_{metric}']):.4f})"
            parts.append(text)
        return ", ".join(parts)

    def render(self, table: str) -> list[TextTable]:
        """Write what is known of a table, and give the tables of what was chosen."""
        cells = self.grid.cells(table, self.choice)
        if not self.is_apart:
            per_user = {}
            for cell in cells:
                per_user[cell.identity] = self.places.runs / "trials" / key_of(cell) / PER_USER
            _significance.update(self.grid, self.results, table, per_user)
        self._write_page(table)
        self._write_summary()
        chosen = set()
        for cell in cells:
            chosen.add(_chosen_by(cell.columns()))
        return tables_of(
            self.grid,
            self.results,
            table,
            with_tries=self.is_apart,
            among=lambda row: _chosen_by(row) in chosen,
        )

    def _write_page(self, table: str) -> None:
        if self.writes_page:
            self._page.show(table, tables_of(self.grid, self.results, table))

    def written(self, table: str) -> list[Path]:
        """Where the results of a table are: rows, and the page that shows them if there is one."""
        paths = [self.results.path(table)]
        if self.writes_page:
            paths.append(self.places.folder / PAGE)
        return [path for path in paths if path.exists()]

    def beside_records(self, table: str) -> list[str]:
        """What was run again beside what is recorded of it, a line per cell."""
        if not self.is_apart:
            return []
        ours = by_identity(self.results.rows_of_runs())
        recorded = by_identity(self.recorded.rows_of_runs())
        lines = []
        for cell in self.grid.cells(table, self.choice):
            if cell.identity in ours and cell.identity in recorded:
                pair = (ours[cell.identity], recorded[cell.identity])
                lines.append(f"{cell.label()}: {compared(*pair, self.grid.metrics)}")
        return lines

    def report(self) -> Path | None:
        """Write the HTML report of all results beside the runs; `None` without results."""
        if not self.results.rows_of_runs():
            return None
        make_directory(self.places.runs)
        directory = self.results.directory
        if not any(directory.glob("*.csv")):
            directory = self.recorded.directory
        out = self.places.runs / "report.html"
        return reproduction_report(
            directory, out, presentation=_overview.presentation_of(self.grid)
        )

    def datasets(self) -> tuple[list[TextTable], list[str]]:
        """The table of data sets, and how to get those that are not here."""
        absent = _datasets.measure(self.grid, self._provision, self.results)
        found = [_datasets.table(self.grid, self.results)]
        self._page.show(_datasets.NAME, found)
        return found, absent

    def claims(self) -> list[TextTable]:
        """The tables of claims, from the results that there are."""
        said = _claims.read_claims(self.places.folder)
        if said is None:
            return []
        rows = _claims.check(said, self.results)
        found = _claims.tables(rows, said.note)
        if self.writes_page:
            self.results.replace(_claims.NAME, rows, columns=_claims.COLUMNS)
        self._page.show(_claims.NAME, found)
        self._write_summary()
        return found

    def _write_summary(self) -> None:
        if self.writes_page:
            agreement = _overview.measured(self.grid, self.results)
            _overview.write_picture(agreement, self.places.folder)
            claims = self.results.rows(_claims.NAME)
            text = _overview.summary_text(self.grid, agreement, claims)
            self._page.fill(_overview.NAME, text)

    def write_pages(self) -> None:
        """Write every section of the page from the rows, and run nothing."""
        for table in self.grid.paper.tables:
            self._write_page(table)
        self._page.show(_datasets.NAME, [_datasets.table(self.grid, self.results)])
        self.claims()
        self._write_summary()


def _chosen_by(row: Mapping[str, str]) -> tuple[str, ...]:
    names = ("dataset", "backbone", "loss", "mode", "protocol")
    return tuple(row[name] for name in names)


def compared(ours: Row, recorded: Row, metrics: Sequence[str]) -> str:
    """Two rows of one run.

    >>> compared({"ours_ndcg20": "0.05"}, {"ours_ndcg20": "0.050"}, ["ndcg20"])
    'as recorded, to the last digit'
    """
    parts = []
    for metric in metrics:
        first, second = ours[f"ours_{metric}"], recorded[f"ours_{metric}"]
        if float(first) != float(second):
            parts.append(f"{metric_title(metric)} {first}, recorded {second}")
    return "; ".join(parts) or "as recorded, to the last digit"
