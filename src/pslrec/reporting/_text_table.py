"""A table of text, as Markdown and as LaTeX."""

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
        rule = ["---" if place < self.labels else "---:" for place in range(len(self.header))]
        lines = [f"| {' | '.join(cells)} |" for cells in (self.header, rule, *self.rows)]
        parts = [f"{'#' * level} {self.title}", "\n".join(lines), *self.notes]
        return "\n\n".join(parts)

    def latex(self) -> str:
        """A `table` with `booktabs` rules."""
        columns = "l" * self.labels + "r" * (len(self.header) - self.labels)
        body = [" & ".join(map(_escaped, cells)) + r" \\" for cells in self.rows]
        notes = [_escaped(note) for note in self.notes]
        return "\n".join(
            [
                r"\begin{table}[htbp]",
                r"  \centering",
                rf"  \caption{{{' '.join([_escaped(self.title) + '.', *notes])}}}",
                rf"  \begin{{tabular}}{{{columns}}}",
                r"    \toprule",
                "    " + " & ".join(map(_escaped, self.header)) + r" \\",
                r"    \midrule",
                *(f"    {line}" for line in body),
                r"    \bottomrule",
                r"  \end{tabular}",
                r"\end{table}",
            ]
        )


def _escaped(text: str) -> str:
    return "".join(
        LATEX.get(character, character) for character in text.replace("**", "").replace("`", "")
    )
