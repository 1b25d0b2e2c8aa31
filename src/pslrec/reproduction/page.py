"""Writing the tables: into the marked sections of a Markdown page, and as LaTeX."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from pslrec.files import read_text, write_text
from pslrec.reproduction.grid import Grid
from pslrec.reproduction.layouts import noise_tables, results_tables
from pslrec.reproduction.results import COLUMNS, Results, Row
from pslrec.reproduction.summaries import Summary, summarize
from pslrec.reproduction.tabular import TextTable

END = "<!-- end of results -->"
NOISE = ("noise", "noise-interpretations")


def write_table(directory: Path, grid: Grid, results: Results, table: str) -> list[TextTable]:
    """Render a table from its CSV into the page and as LaTeX beside the CSV.

    Args:
        directory: with the page, `README.md`.
        grid: knows the order of data sets.
        results: the directory of CSVs.
        table: which one.
    """
    tables = tables_of(grid, results, table)
    write_rendered(directory, results, table, tables)
    return tables


def tables_of(
    grid: Grid,
    results: Results,
    table: str,
    *,
    with_tries: bool = False,
    among: Callable[[Row], bool] = lambda _row: True,
) -> list[TextTable]:
    """The tables of a CSV of runs.

    Args:
        grid: knows the order of data sets.
        results: the directory of CSVs.
        table: which one.
        with_tries: whether runs with fewer epochs are in it.
        among: whether a row is shown.
    """
    rows = [row for row in results.rows(table) if tuple(row) == COLUMNS and among(row)]
    summaries = [summary for summary in summarize(rows) if with_tries or not _is_try(summary)]
    places = list(grid.file.datasets)
    if table in NOISE:
        return noise_tables(summaries, places=places)
    return results_tables(summaries, results.rows("significance"), places=places)


def write_rendered(
    directory: Path, results: Results, table: str, tables: Sequence[TextTable]
) -> None:
    """Put tables into the section `<!-- results: NAME -->` of the page, and into `NAME.tex`."""
    with results.locked():
        if tables:
            write_text(
                results.directory / f"{table}.tex",
                "\n\n".join(each.latex() for each in tables) + "\n",
            )
        page = directory / "README.md"
        if page.exists():
            text = read_text(page)
            body = "\n\n".join(each.markdown() for each in tables) or "No runs yet."
            write_text(page, filled(text, table, body))


def filled(page: str, name: str, body: str) -> str:
    r"""The page with a new body in the section of this name; as it was where it has no such section.

    >>> filled("a\n<!-- results: iid -->\nold\n<!-- end of results -->\nb", "iid", "new")
    'a\n<!-- results: iid -->\n\nnew\n\n<!-- end of results -->\nb'
    """
    pattern = re.compile(
        rf"(<!-- results: {re.escape(name)} -->\n).*?({re.escape(END)})", re.DOTALL
    )
    return pattern.sub(lambda match: f"{match[1]}\n{body}\n\n{match[2]}", page)


def _is_try(summary: Summary) -> bool:
    return bool(re.search(r"\d+ epochs", summary["setting"]))
