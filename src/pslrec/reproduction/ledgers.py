"""Where finished cells are written down, and how one finds that a cell is finished."""

from collections.abc import Callable
from typing import Any, Protocol

from pslrec.reproduction.cells import Cell, identity_of
from pslrec.reproduction.published import Value
from pslrec.reproduction.results import (
    COLUMNS,
    Results,
    Row,
    cutoff_rows,
    published_columns,
    row_of,
)

SEARCH = "forms-search"
DIVERGED = "diverged"
SEARCH_COLUMNS = (
    *COLUMNS[:15],
    "validation_ndcg20",
    "best_epoch",
    "epochs",
    "seconds",
    "outcome",
    "commit",
)


class Ledger(Protocol):
    """Knows which cells are finished."""

    def find(self, cell: Cell) -> str | None:
        """What came out of a cell, for people, or `None` if it has to be run."""
        ...

    def record(self, cell: Cell, metrics: dict[str, Any], commit: str) -> None:
        """Write down what came out."""
        ...

    def record_failure(self, cell: Cell, commit: str) -> None:
        """A cell diverged, and would do so again."""
        ...


class TableLedger:
    """Rows in the CSV of the cell's table; a run that is in another table already is copied from there.

    Args:
        results: the directory of CSVs.
        after: called with the name of a table that has a new row, so that its page never lags behind.
        copies: whether rows of other tables are copied; without, looking changes nothing.
    """

    def __init__(
        self,
        results: Results,
        after: Callable[[str], object] = lambda _table: None,
        *,
        copies: bool = True,
    ) -> None:
        self.results, self._after, self._copies = results, after, copies

    def find(self, cell: Cell) -> str | None:
        """Recall@20 and NDCG@20, with the printed ones."""
        known = self.results.by_identity([cell.table]).get(cell.identity)
        if known is None:
            known = self.results.by_identity(self.results.tables_of_runs()).get(cell.identity)
            if known is None:
                return None
            known = known | {"table": cell.table} | published_columns(cell)
            if self._copies:
                self.results.add(cell.table, [known])
                self._after(cell.table)
        return _beside_published(known, cell.published)

    def record(self, cell: Cell, metrics: dict[str, Any], commit: str) -> None:
        """Its row, and its values at every list length."""
        self.results.add(cell.table, [row_of(cell, metrics, commit)])
        self.results.add_cutoffs(cutoff_rows(cell, metrics))
        self._after(cell.table)

    def record_failure(self, cell: Cell, commit: str) -> None:
        """Nothing: a table has rows of finished runs only."""


def _beside_published(row: Row, published: Value) -> str:
    values = {
        "Recall@20": (row["ours_recall20"], published.recall),
        "NDCG@20": (row["ours_ndcg20"], published.ndcg),
    }
    return ", ".join(
        f"{name} {float(ours):.4f}" + ("" if printed is None else f" (published {printed:.4f})")
        for name, (ours, printed) in values.items()
    )


class SearchLedger:
    """What was tried on validation data; a try that diverged counts as tried.

    Args:
        results: the directory of CSVs.
        until: the epochs a try must have been trained for to count.
    """

    def __init__(self, results: Results, until: int) -> None:
        self.results, self._until = results, until

    def find(self, cell: Cell) -> str | None:
        """NDCG@20 on validation."""
        known = self._known(cell)
        return (
            None
            if known is None
            else f"validation {known['validation_ndcg20'] or known['outcome']}"
        )

    def value(self, cell: Cell) -> float | None:
        """The same as a number, -inf for a try that diverged."""
        known = self._known(cell)
        return None if known is None else float(known["validation_ndcg20"] or "-inf")

    def record(self, cell: Cell, metrics: dict[str, Any], commit: str) -> None:
        """Its value on validation; that on the test part is not looked at."""
        epochs = metrics["trained_epochs"]
        self._add(
            cell,
            {
                "validation_ndcg20": f"{metrics['validation']['ndcg@20']:.5f}",
                "best_epoch": str(metrics["best_epoch"]),
                "epochs": str(epochs),
                "seconds": str(round(metrics["seconds_per_epoch"] * epochs)),
                "outcome": "finished" if epochs == cell.epochs else "left",
                "commit": commit,
            },
        )

    def record_failure(self, cell: Cell, commit: str) -> None:
        """A row without a value."""
        self._add(cell, {"outcome": DIVERGED, "commit": commit})

    def _known(self, cell: Cell) -> Row | None:
        row = self.results.by_identity([SEARCH]).get(cell.identity)
        is_through = row is not None and (
            row["outcome"] == DIVERGED or int(row["epochs"]) >= self._until
        )
        return row if is_through else None

    def _add(self, cell: Cell, values: Row) -> None:
        row = dict.fromkeys(SEARCH_COLUMNS, "") | cell.columns() | values
        self.results.merge(SEARCH, [row], columns=SEARCH_COLUMNS, key=identity_of)
