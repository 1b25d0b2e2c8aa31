"""Writing the tables: into the marked sections of a Markdown page, and as LaTeX."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Page:
    """The page of a paper, whose sections `<!-- results: NAME -->` are filled.

    Args:
        folder: with the page, `README.md`.
        results: the directory of CSVs, where the LaTeX goes as well; its lock is that of the page.
        is_written: whether anything is written at all.
    """

    folder: Path
    results: Results
    is_written: bool = True

    def show(self, name: str, tables: Sequence[TextTable]) -> None:
        """Put tables into a section, and into `NAME.tex`."""
        if self.is_written and tables:
            latex = "\n\n".join(each.latex() for each in tables)
            with self.results.locked():
                write_text(self.results.directory / f"{name}.tex", f"{latex}\n")
        markdown = "\n\n".join(each.markdown() for each in tables)
        self.fill(name, markdown or NOTHING)

    def fill(self, name: str, body: str) -> None:
        """Put a text into a section, if the page has it."""
        page = self.folder / PAGE
        if self.is_written and page.exists():
            with self.results.locked():
                write_text(page, filled(read_text(page), name, body))


def filled(page: str, name: str, body: str) -> str:
    r"""The page with a new body in the section of this name; as it was where it has none.

    >>> filled("a\n<!-- results: iid -->\nold\n<!-- end of results -->\nb", "iid", "new")
    'a\n<!-- results: iid -->\n\nnew\n\n<!-- end of results -->\nb'
    """
    pattern = re.compile(
        rf"(<!-- results: {re.escape(name)} -->\n).*?({re.escape(END)})", re.DOTALL
    )
    return pattern.sub(lambda match: f"{match[1]}\n{body}\n\n{match[2]}", page)
