"""Tables of text, as Markdown and as LaTeX."""

from collections.abc import Sequence
from dataclasses import dataclass

LATEX = {
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
    "±": r"$\pm$",
    "@": "@",
    "-": "-",
    "$": r"\$",
}


@dataclass(frozen=True)
class TextTable:
    """A table of text.

    Args:
        title: what it shows.
        header: of its columns; the first column is the name of a row.
        rows: cells, as many as the header has.
        notes: sentences below it.
        labels: how many of the columns are names, on the left; the others are numbers, on the right.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    labels: int = 1

    def markdown(self, level: int = 3) -> str:
        """With the title as a heading.

        >>> print(TextTable("Sizes", ["data", "users"], [["Gowalla", "29,858"]]).markdown())
        ### Sizes
        <BLANKLINE>
        | data | users |
        | --- | ---: |
        | Gowalla | 29,858 |
        """
        is_number = [place >= self.labels for place in range(len(self.header))]
        table = pipe_table(self.header, self.rows, is_number)
        return "\n\n".join([f"{'#' * level} {self.title}", table, *self.notes])

    def latex(self) -> str:
        """A `table` with `booktabs` rules."""
        columns = "l" * self.labels + "r" * (len(self.header) - self.labels)
        body = [" & ".join(map(latex_text, cells)) + r" \\" for cells in self.rows]
        notes = [latex_text(note) for note in self.notes]
        return "\n".join(
            [
                r"\begin{table}[htbp]",
                r"  \centering",
                rf"  \caption{{{' '.join([latex_text(self.title) + '.', *notes])}}}",
                rf"  \begin{{tabular}}{{{columns}}}",
                r"    \toprule",
                "    " + " & ".join(map(latex_text, self.header)) + r" \\",
                r"    \midrule",
                *(f"    {line}" for line in body),
                r"    \bottomrule",
                r"  \end{tabular}",
                r"\end{table}",
            ]
        )


class Sheet:
    """The cells of a table, filled in any order.

    Args:
        columns: their names, without that of the first, which names the rows.

    >>> sheet = Sheet(["users", "items"])
    >>> sheet.put("Gowalla", "items", "40,988")
    >>> sheet.rows()
    [['Gowalla', '', '40,988']]
    """

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = columns
        self._rows: dict[str, dict[str, str]] = {}

    def put(self, row: str, column: str, text: str) -> None:
        """Fill a cell; rows come in the order in which they got their first text."""
        if text:
            self._rows.setdefault(row, {})[column] = text

    def rows(self) -> list[list[str]]:
        """Every row that has a text, with its name."""
        found = []
        for name, texts in self._rows.items():
            found.append([name, *(texts.get(column, "") for column in self.columns)])
        return found


def pipe_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], is_number: Sequence[bool]
) -> str:
    """A table of Markdown.

    Args:
        header: of the columns.
        rows: cells, as many as there are columns.
        is_number: which columns are on the right.
    """
    rule = ["---:" if is_right else "---" for is_right in is_number]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))


def latex_text(text: str) -> str:
    """A text for LaTeX, without the marks that it has for Markdown."""
    plain = text.replace("**", "").replace("`", "")
    return "".join(LATEX.get(character, character) for character in plain)
