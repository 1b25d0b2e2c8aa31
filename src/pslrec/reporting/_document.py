"""What a report is made of, whatever it is about: sections of paragraphs, tiles, tables and charts.

The page is made of these by a template; nothing here knows HTML.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from markupsafe import Markup

from pslrec.reporting._text_table import pipe_table

# Both are classes of the style sheet.
Mark = Literal["", "best", "better", "worse", "differs", "muted"]
Tone = Literal["", "note", "warning"]
MISSING = "–"  # noqa: RUF001 - a dash as wide as a digit, where there is no value


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Args:
        text: what is shown.
        value: what the column is sorted by; a cell that has one is a number and is aligned right.
        mark: how the cell stands out.
    """

    text: str
    value: float | None = None
    mark: Mark = ""


@dataclass(frozen=True)
class Table:
    """A table with a caption.

    Args:
        caption: says what the numbers are.
        columns: their names.
        rows: each with as many cells as there are columns; the first one names the row.
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    # A template cannot ask for the type of a block, so every block says its kind.
    kind: ClassVar[str] = "table"

    @property
    def is_number(self) -> list[bool]:
        """Whether each column holds numbers."""
        found = []
        for place in range(len(self.columns)):
            found.append(any(row[place].value is not None for row in self.rows))
        return found

    def narrowed(self, n_columns: int) -> "Table":
        """The first columns of it."""
        rows = [row[:n_columns] for row in self.rows]
        return Table(self.caption, self.columns[:n_columns], rows)

    @property
    def texts(self) -> list[list[str]]:
        """What is shown in the cells of every row."""
        return [[cell.text for cell in row] for row in self.rows]

    def markdown(self) -> str:
        """The table without its caption."""
        return pipe_table(self.columns, self.texts, self.is_number)


@dataclass(frozen=True)
class LegendEntry:
    """One entry of a legend: what a line or a colour stands for."""

    label: str
    swatch: Markup


@dataclass(frozen=True)
class Chart:
    """A picture with its data.

    Args:
        title: a few words above the picture.
        description: what the picture shows, for readers who cannot see it.
        data: the numbers drawn.
        body: content of the SVG element; `None` if there was nothing to draw.
        size: width and height of that content.
        legend: what the lines stand for.
    """

    title: str
    description: str
    data: Table
    body: Markup | None = None
    size: tuple[float, float] = (400.0, 250.0)
    legend: Sequence[LegendEntry] = ()
    kind: ClassVar[str] = "chart"


@dataclass(frozen=True)
class Charts:
    """Charts side by side, as many as fit the page."""

    charts: Sequence[Chart]
    kind: ClassVar[str] = "charts"


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str
    tone: Tone = ""
    kind: ClassVar[str] = "text"


@dataclass(frozen=True)
class Tile:
    """One large number or word of a summary."""

    label: str
    value: str
    hint: str = ""


@dataclass(frozen=True)
class Tiles:
    """The numbers that a reader should see first."""

    tiles: Sequence[Tile]
    kind: ClassVar[str] = "tiles"


@dataclass(frozen=True)
class Fold:
    """Blocks that stay hidden until the reader opens them."""

    summary: str
    blocks: "Sequence[Block]"
    kind: ClassVar[str] = "fold"


Block = Table | Charts | Text | Tiles | Fold


@dataclass(frozen=True)
class Section:
    """A part of a report with a title."""

    title: str
    blocks: Sequence[Block] = field(default_factory=list)

    @property
    def anchor(self) -> str:
        """The section's name in links.

        >>> Section("Users and items").anchor
        'users-and-items'
        """
        return re.sub(r"[\W_]", "-", self.title.lower()).strip("-")


@dataclass(frozen=True)
class Document:
    """A whole report.

    Args:
        title: heading of the page, and its name in the browser.
        subtitle: one line below the heading.
        sections: those without blocks are left out of the page.
    """

    title: str
    subtitle: str
    sections: Sequence[Section]


def words(text: object, mark: Mark = "") -> Cell:
    """A cell of text, or a dash where there is none.

    Args:
        text: anything that can be written.
        mark: how the cell stands out.

    >>> words(None)
    Cell(text='–', value=None, mark='')
    """
    if text is None or text == "":
        return Cell(MISSING, mark=mark)
    return Cell(str(text), mark=mark)


def number(value: float | None, pattern: str = ".4f", mark: Mark = "") -> Cell:
    """A cell with a number, or a dash where there is none.

    Args:
        value: the number; infinities are written as such.
        pattern: how to write it, in the language of `format`.
        mark: how the cell stands out.

    >>> number(0.12345).text, number(None).text, number(float("nan")).text
    ('0.1235', '–', 'not a number')
    """
    if value is None:
        return Cell(MISSING, mark=mark)
    # A cell that is not a number has no place in an order, so it gets no value to sort by.
    if math.isnan(value):
        return Cell("not a number", mark=mark)
    return Cell(format(value, pattern), float(value), mark)


def plus_minus(mean: float | None, deviation: float | None) -> str:
    """A mean and its standard deviation, as far as they are known.

    >>> plus_minus(0.11, 0.01), plus_minus(0.11, None), plus_minus(None, None)
    ('0.1100 ± 0.0100', '0.1100', '–')
    """
    if mean is None:
        return MISSING
    if deviation is None:
        return f"{mean:.4f}"
    return f"{mean:.4f} ± {deviation:.4f}"


def interval(ends: Sequence[float], pattern: str = ".4f") -> Cell:
    """A cell with an interval, sorted by its lower end.

    >>> interval((0.1, 0.2)).text
    '0.1000 to 0.2000'
    """
    low, high = ends
    return Cell(f"{low:{pattern}} to {high:{pattern}}", low)


def percent(share: float | None, *, mark_sign: bool = False) -> Cell:
    """A cell with a signed percentage.

    Args:
        share: 0.01 for one percent; a dash is shown where there is none.
        mark_sign: colour gains and losses.

    >>> percent(0.0213).text, percent(-0.0213, mark_sign=True)
    ('+2.1 %', Cell(text='-2.1 %', value=-0.0213, mark='worse'))
    """
    if share is None or not math.isfinite(share):
        return Cell(MISSING)
    mark: Mark = ""
    if mark_sign and share > 0:
        mark = "better"
    elif mark_sign and share < 0:
        mark = "worse"
    text = f"{100 * share:+.1f} %"
    # A difference that rounds to nothing has no sign.
    if text in ("+0.0 %", "-0.0 %"):
        text = "0.0 %"
    return Cell(text, share, mark)


def probability(value: float | None) -> Cell:
    """A cell with a p-value, or a dash where nothing was tested.

    >>> probability(0.0312).text, probability(1e-9).text
    ('0.031', '< 0.001')
    """
    if value is None:
        return Cell(MISSING)
    # Beyond three decimals a p-value says more about its assumptions than about the data.
    if value < 0.001:
        return Cell("< 0.001", value)
    return Cell(f"{value:.3f}", value)
