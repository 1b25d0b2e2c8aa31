"""Writing the tables: into the marked sections of a Markdown page, and as LaTeX."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from pslrec.files import read_text, write_text
from pslrec.reporting import TextTable, results_of
from pslrec.reproduction._grid import Grid
from pslrec.reproduction._layouts import Layout
from pslrec.reproduction._published import Row
from pslrec.reproduction._results import Results

END = "<!-- end of results -->"
PAGE = "README.md"
NOTHING = "No runs yet."


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
        grid: of the paper.
        results: the directory of CSVs.
        table: which one.
        with_tries: whether runs with fewer epochs are in it.
        among: whether a row is shown.
    """
    rows = []
    for row in results.rows(table):
        is_try = re.search(r"\d+ epochs", row["setting"]) is not None
        if among(row) and (with_tries or not is_try):
            rows.append(row)
    layout = Layout(grid, table, results.rows("significance"))
    return layout.tables(results_of(rows))


def write_rendered(folder: Path, results: Results, table: str, tables: Sequence[TextTable]) -> None:
    """Put tables into the section `<!-- results: NAME -->` of the page, and into `NAME.tex`.

    Args:
        folder: with the page, `README.md`.
        results: the directory of CSVs, where the LaTeX goes as well.
        table: name of the section.
        tables: what to put there.
    """
    with results.locked():
        if tables:
            latex = "\n\n".join(each.latex() for each in tables)
            write_text(results.directory / f"{table}.tex", f"{latex}\n")
    fill_section(folder, results, table, section_of(tables))


def fill_section(folder: Path, results: Results, name: str, body: str) -> None:
    """Put a text into the section `<!-- results: NAME -->` of the page, if it has one.

    Args:
        folder: with the page, `README.md`.
        results: the directory of CSVs, whose lock is that of the page.
        name: of the section.
        body: the text.
    """
    page = folder / PAGE
    with results.locked():
        if page.exists():
            write_text(page, filled(read_text(page), name, body))


def section_of(tables: Sequence[TextTable]) -> str:
    """Tables as the text of a section."""
    return "\n\n".join(each.markdown() for each in tables) or NOTHING


def filled(page: str, name: str, body: str) -> str:
    r"""The page with a new body in the section of this name; as it was where it has none.

    >>> filled("a\n<!-- results: iid -->\nold\n<!-- end of results -->\nb", "iid", "new")
    'a\n<!-- results: iid -->\n\nnew\n\n<!-- end of results -->\nb'
    """
    pattern = re.compile(
        rf"(<!-- results: {re.escape(name)} -->\n).*?({re.escape(END)})", re.DOTALL
    )
    return pattern.sub(lambda match: f"{match[1]}\n{body}\n\n{match[2]}", page)
