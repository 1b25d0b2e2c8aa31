"""A table from its cells to its pages: run what is missing, judge it, render it."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pslrec.files import make_directory
from pslrec.reporting import reproduction_report
from pslrec.reproduction import claims, datasets, significance
from pslrec.reproduction.cells import PUBLISHED_EPOCHS, Cell
from pslrec.reproduction.cost import Costs
from pslrec.reproduction.execution import Executor, Task, Watcher
from pslrec.reproduction.grid import Choice, Grid
from pslrec.reproduction.ledgers import Ledger, SearchLedger, TableLedger
from pslrec.reproduction.page import tables_of, write_rendered, write_table
from pslrec.reproduction.provision import Provision
from pslrec.reproduction.results import Results, Row
from pslrec.reproduction.search import best_trial, inside_cells, inside_trials
from pslrec.reproduction.tabular import TextTable

FORMS = "forms"


@dataclass(frozen=True)
class Places:
    """Where things are.

    Args:
        directory: with `grid.toml`, `published/`, `results/` and the page.
        runs: where run directories live.
        data: where the data sets lie; by default `PSLREC_DATA_DIR` and the cache.
    """

    directory: Path
    runs: Path
    data: Path | None = None

    def provision(self) -> Provision:
        """What finds the data."""
        return Provision(self.data, self.runs / "data")

    def results(self, *, is_apart: bool = False) -> Results:
        """The CSVs: the recorded ones, or those that stay apart from them, with their runs."""
        return Results((self.runs if is_apart else self.directory) / "results")


class Reproduction:
    """The tables of the paper.

    Args:
        places: where things are.
        choice: what to run.
        budget: seconds after which nothing goes on.
        watch: is told whenever something changes.
        again: run cells that have a recorded row as well; what comes out stays apart from the records.
    """

    def __init__(
        self,
        places: Places,
        choice: Choice,
        *,
        budget: float | None = None,
        watch: Watcher = lambda _tasks: None,
        again: bool = False,
    ) -> None:
        self.places, self.choice, self._watch = places, choice, watch
        self._deadline = float("inf") if budget is None else time.monotonic() + budget
        self._finished: list[Task] = []
        self.notes: list[str] = []
        self.grid = Grid(places.directory)
        self.is_try = choice.epochs not in (None, PUBLISHED_EPOCHS)
        self.is_apart = again or self.is_try
        self.results, self._recorded = places.results(is_apart=self.is_apart), places.results()
        own = self.results.rows_of_runs() if self.is_apart else []
        self._costs = Costs([*self._recorded.rows_of_runs(), *own], self.grid.file.datasets)

    def run(self, table: str, *, search: bool = False) -> list[Task]:
        """Run the cells of a table that are not finished.

        Args:
            table: which one.
            search: try the settings that were never printed, on validation data.
        """
        self._finished = []
        cells = self.grid.cells(table, self.choice)
        ledger = TableLedger(self.results, after=self._write_page)
        self._execute(ledger, cells)
        if table == FORMS:
            self._execute(ledger, self._inside(cells, search=search))
        return self._finished

    def plan(self, table: str) -> list[Task]:
        """What `run` would do, without doing it; trials of a search are not in it."""
        cells = self.grid.cells(table, self.choice)
        if table == FORMS:
            cells = [*cells, *self._inside(cells, search=False)]
        ledger = TableLedger(self.results, copies=False)
        return Executor(ledger, self.places.provision(), self.places.runs).plan(cells, self._costs)

    def _inside(self, outside: Sequence[Cell], *, search: bool) -> list[Cell]:
        def train(trials: Sequence[Cell], until: int) -> list[float | None]:
            ledger = SearchLedger(self.results, until)
            if search:
                self._execute(ledger, trials, until=until)
            return [ledger.value(trial) for trial in trials]

        chosen = []
        for group, trials in inside_trials(self.grid, list(outside), self.choice).items():
            best = best_trial(trials, self.grid.file.search.rounds, train)
            if best is not None:
                chosen.append(best)
            elif all(
                SearchLedger(self.results, until=0).value(trial) == -float("inf")
                for trial in trials
            ):
                self.notes.append(
                    f"{', '.join(group)}: every setting of the inside form that was tried diverged"
                )
            else:
                self.notes.append(
                    f"{', '.join(group)}: the settings of the inside form were never printed; find them with --search"
                )
        return [cell for best in chosen for cell in inside_cells(self.grid, best, self.choice)]

    def render(self, table: str) -> list[TextTable]:
        """Write what is known of a table: significance, and the page unless the results stay apart.

        Gives the tables of what was chosen.
        """
        cells = self.grid.cells(table, self.choice)
        if not self.is_try:
            significance.update(self.results, table, cells, self.places.runs)
        self._write_page(table)
        chosen = {(cell.dataset, cell.backbone, cell.loss) for cell in cells}

        def is_chosen(row: Row) -> bool:
            is_listed = (row["dataset"], row["backbone"], row["loss"]) in chosen
            return (
                is_listed
                and row["mode"] in self.choice.modes
                and row["protocol"] in self.choice.protocols
            )

        return tables_of(self.grid, self.results, table, with_tries=self.is_try, among=is_chosen)

    def written(self, table: str) -> list[Path]:
        """Where the results of a table are: rows, and the page that shows them if there is one."""
        page = [] if self.is_apart else [self.places.directory / "README.md"]
        return [path for path in (self.results.path(table), *page) if path.exists()]

    def beside_records(self, table: str) -> list[str]:
        """What was run again, beside what is recorded of it, a line for each cell; nothing unless results stay apart."""
        if not self.is_apart:
            return []
        ours, recorded = (
            results.by_identity(results.tables_of_runs())
            for results in (self.results, self._recorded)
        )
        cells = [
            cell
            for cell in self.grid.cells(table, self.choice)
            if cell.identity in ours.keys() & recorded.keys()
        ]
        return [
            f"{cell.label()}: {_compared(ours[cell.identity], recorded[cell.identity])}"
            for cell in cells
        ]

    def _write_page(self, table: str) -> None:
        if not self.is_apart:
            write_table(self.places.directory, self.grid, self.results, table)

    def report(self) -> Path | None:
        """Write the HTML report of all results beside the runs; `None` where there are no results."""
        if not self.results.tables_of_runs():
            return None
        make_directory(self.places.runs)
        return reproduction_report(self.results.directory, self.places.runs / "report.html")

    def _execute(self, ledger: Ledger, cells: Sequence[Cell], *, until: int | None = None) -> None:
        earlier = list(self._finished)
        executor = Executor(
            ledger,
            self.places.provision(),
            self.places.runs,
            deadline=self._deadline,
            until=until,
            watch=lambda tasks: self._watch([*earlier, *tasks]),
        )
        self._finished = earlier + executor.run(cells, self._costs)


def _compared(ours: Row, recorded: Row) -> str:
    """Two rows of one run.

    >>> _compared({"ours_ndcg20": "0.05", "ours_recall20": "0.08"}, {"ours_ndcg20": "0.05", "ours_recall20": "0.08"})
    'as recorded, to the last digit'
    """
    columns = {"Recall@20": "ours_recall20", "NDCG@20": "ours_ndcg20"}
    if all(float(ours[column]) == float(recorded[column]) for column in columns.values()):
        return "as recorded, to the last digit"
    parts = (
        f"{name} {ours[column]}, recorded {recorded[column]}" for name, column in columns.items()
    )
    return "; ".join(parts)


def measure_datasets(places: Places) -> tuple[TextTable, list[str]]:
    """The table of data sets, and how to get those that are not here."""
    grid, results = Grid(places.directory), places.results()
    absent = datasets.measure(grid, places.provision(), results)
    found = datasets.table(grid, results)
    write_rendered(places.directory, results, "datasets", [found])
    return found, absent


def check_claims(places: Places) -> list[TextTable]:
    """The tables of claims, from the results that there are."""
    results = places.results()
    found = claims.tables(claims.write(results))
    write_rendered(places.directory, results, "claims", found)
    return found
