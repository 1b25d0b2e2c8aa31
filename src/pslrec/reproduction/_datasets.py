"""The table of data sets: what the paper printed, and what the data here have."""

import logging

from pslrec.data import describe, load_interactions
from pslrec.reproduction.grid import Grid
from pslrec.reproduction.provision import Provision
from pslrec.reproduction.results import Results, Row
from pslrec.reproduction.tabular import TextTable

logger = logging.getLogger(__name__)
COUNTS = ("users", "items", "interactions")
COLUMNS = ("dataset", *COUNTS, "density", *(f"published_{name}" for name in (*COUNTS, "density")))


def measure(grid: Grid, provision: Provision, results: Results) -> list[str]:
    """Count what is in the data that are here; gives how to get those that are not."""
    absent = []
    for dataset, source in grid.file.datasets.items():
        if not provision.is_there(source, "iid"):
            absent.append(provision.how_to_get(source))
            continue
        found = describe(load_interactions(provision.path(source, "iid")))
        printed = grid.published.datasets.get(dataset, {})
        row = {
            "dataset": dataset,
            "users": str(found.n_users),
            "items": str(found.n_items),
            "interactions": str(found.n_interactions),
            "density": f"{found.density:.5f}",
            **{f"published_{name}": printed.get(name, "") for name in (*COUNTS, "density")},
        }
        results.merge("datasets", [row], columns=COLUMNS, key=lambda row: (row["dataset"],))
    return absent


def table(grid: Grid, results: Results) -> TextTable:
    """Every data set of the grid, those too that are not here."""
    measured = {row["dataset"]: row for row in results.rows("datasets")}
    header = [
        "data set",
        *COUNTS,
        "density",
        *(f"published {name}" for name in (*COUNTS, "density")),
        "",
    ]
    rows = [
        _row(name, measured.get(name, {}), grid.published.datasets.get(name, {}))
        for name in grid.file.datasets
    ]
    return TextTable("Statistics of the data sets", header, rows)


def _row(name: str, ours: Row, printed: Row) -> list[str]:
    columns = (*COUNTS, "density")
    verdict = "not here" if not ours else "not in the paper" if not printed else "equal"
    if ours and printed:
        different = [column for column in columns if float(ours[column]) != float(printed[column])]
        verdict = f"other {', '.join(different)}" if different else verdict
    return [
        name,
        *(_count(ours.get(c, "")) for c in columns),
        *(_count(printed.get(c, "")) for c in columns),
        verdict,
    ]


def _count(text: str) -> str:
    return f"{int(text):,}" if text.isdigit() else text
