"""A table from its cells to its pages: run what is missing, judge it, render it."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pslrec.reporting import reproduction_report
from pslrec.reproduction import claims, datasets, significance
from pslrec.reproduction.cells import PUBLISHED_EPOCHS, Cell
from pslrec.reproduction.cost import Costs
from pslrec.reproduction.execution import Executor, Task, Watcher
from pslrec.reproduction.grid import Choice, Grid
from pslrec.reproduction.ledgers import Ledger, SearchLedger, TableLedger
from pslrec.reproduction.page import tables_of, write_rendered, write_table
from pslrec.reproduction.provision import Provision
from pslrec.reproduction.results import Results
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

    def results(self, *, is_try: bool = False) -> Results:
        """The CSVs; those of a try stay with its runs."""
        return Results((self.runs if is_try else self.directory) / "results")


class Reproduction:
    """The tables of the paper.

    Args:
        places: where things are.
        choice: what to run.
        budget: seconds after which nothing goes on.
        watch: is told whenever something changes.
    """

    def __init__(
        self, places: Places, choice: Choice, *, budget: float | None = None, watch: Watcher = lambda _tasks: None
    ) -> None:
        self.places, self.choice, self._watch = places, choice, watch
        self._deadline = float("inf") if budget is None else time.monotonic() + budget
        self._finished: list[Task] = []
        self.notes: list[str] = []
        self.grid = Grid(places.directory)
        self.is_try = choice.epochs not in (None, PUBLISHED_EPOCHS)
        self.results = places.results(is_try=self.is_try)
        known = [row for name in self.results.tables_of_runs() for row in self.results.rows(name)]
        self._costs = Costs(known, self.grid.file.datasets)

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
            elif all(SearchLedger(self.results, until=0).value(trial) == -float("inf") for trial in trials):
                self.notes.append(f"{', '.join(group)}: every setting of the inside form that was tried diverged")
            else:
                self.notes.append(
                    f"{', '.join(group)}: the settings of the inside form were never printed; find them with --search"
                )
        return [cell for best in chosen for cell in inside_cells(self.grid, best, self.choice)]

    def render(self, table: str) -> list[TextTable]:
        """Write what is known of a table: significance, Markdown and LaTeX; of a try nothing is written.

        Gives the tables of the data sets and backbones that were chosen.
        """
        cells = self.grid.cells(table, self.choice)
        if not self.is_try:
            significance.update(self.results, table, cells, self.places.runs)
            write_table(self.places.directory, self.grid, self.results, table)
        chosen = {(cell.dataset, cell.backbone) for cell in cells}
        return tables_of(self.grid, self.results, table, with_tries=self.is_try, among=chosen)

    def _write_page(self, table: str) -> None:
        if not self.is_try:
            write_table(self.places.directory, self.grid, self.results, table)

    def report(self) -> Path | None:
        """Write the HTML report of all results beside the runs; `None` where there are no results."""
        if not self.results.tables_of_runs():
            return None
        self.places.runs.mkdir(parents=True, exist_ok=True)
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
