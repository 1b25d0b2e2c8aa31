"""The table of data sets: what the paper printed, and what the data here have."""

from pslrec.data import describe, load_interactions
from pslrec.reporting import TextTable
from pslrec.reproduction._grid import Grid
from pslrec.reproduction._provision import Provision
from pslrec.reproduction._published import Row
from pslrec.reproduction._results import Results

NAME = "datasets"
COUNTS = ("users", "items", "interactions", "density")


def printed_sizes(grid: Grid) -> dict[str, Row]:
    """What the paper printed in `published/datasets.csv`, by data set; nothing without that file."""
    if not (grid.folder / "published" / f"{NAME}.csv").exists():
        return {}
    return {row["dataset"]: row for row in grid.published.rows(NAME)}


def measure(grid: Grid, provision: Provision, results: Results) -> list[str]:
    """Count what is in the data that are here; gives how to get those that are not."""
    absent = []
    printed = printed_sizes(grid)
    columns = ("dataset", *COUNTS, *(f"published_{name}" for name in COUNTS))
    for dataset, source in grid.paper.datasets.items():
        if not provision.is_there(source, "iid"):
            absent.append(provision.how_to_get(source))
            continue
        found = describe(load_interactions(provision.path(source, "iid")))
        row = {
            "dataset": dataset,
            "users": str(found.n_users),
            "items": str(found.n_items),
            "interactions": str(found.n_interactions),
            "density": f"{found.density:.5f}",
        }
        for name in COUNTS:
            row[f"published_{name}"] = printed.get(dataset, {}).get(name, "")
        results.merge(NAME, [row], columns=columns, key=lambda row: (row["dataset"],))
    return absent


def table(grid: Grid, results: Results) -> TextTable:
    """Every data set of the paper, those too that are not here."""
    measured: dict[str, Row] = {}
    for row in results.rows(NAME):
        measured.setdefault(row["dataset"], row)
    printed = printed_sizes(grid)
    header = ["data set", *COUNTS, *(f"published {name}" for name in COUNTS), ""]
    rows = []
    for name in grid.paper.datasets:
        ours, theirs = measured.get(name, {}), printed.get(name, {})
        cells = [name]
        for sizes in (ours, theirs):
            for count in COUNTS:
                cells.append(_with_commas(sizes.get(count, "")))
        rows.append([*cells, _verdict(ours, theirs)])
    return TextTable("Statistics of the data sets", header, rows)


def _verdict(ours: Row, printed: Row) -> str:
    if not ours:
        return "not here"
    if not printed:
        return "not in the paper"
    different = []
    for count in COUNTS:
        if float(ours[count]) != float(printed[count]):
            different.append(count)
    if different:
        return f"other {', '.join(different)}"
    return "equal"


def _with_commas(text: str) -> str:
    if text.isdigit():
        return f"{int(text):,}"
    return text
