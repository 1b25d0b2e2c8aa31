"""What a report is made of, whatever it tells: sections of paragraphs, tiles, tables and charts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from markupsafe import Markup

Mark = Literal["", "best", "better", "worse", "differs", "muted"]
Tone = Literal["", "note", "warning"]
MISSING = "–"  # noqa: RUF001 - a dash as wide as a digit, where there is no value


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Args:
        text: what is shown.
        value: what it is sorted by; a cell with one is a number and stands to the right.
        mark: how it stands out.
    """

    text: str
    value: float | None = None
    mark: Mark = ""


@dataclass(frozen=True)
class Table:
    """A table with a caption.

    Args:
        caption: says what the numbers are.
        columns: names of the columns.
        rows: cells, as many in each row as there are columns.
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    kind: ClassVar[str] = "table"

    @property
    def is_number(self) -> list[bool]:
        """Whether each column holds numbers."""
        return [
            any(row[place].value is not None for row in self.rows)
            for place in range(len(self.columns))
        ]


@dataclass(frozen=True)
class LegendEntry:
    """A line of a legend: what a line or a colour stands for."""

    label: str
    swatch: Markup


@dataclass(frozen=True)
class Chart:
    """A picture with its data.

    Args:
        title: short.
        description: what it shows, for readers who do not see it.
        body: content of the SVG element; without one there was nothing to draw.
        size: width and height of that content.
        legend: what its lines stand for.
        data: the numbers drawn.
    """

    title: str
    description: str
    body: Markup | None
    size: tuple[float, float]
    legend: Sequence[LegendEntry]
    data: Table
    kind: ClassVar[str] = "chart"


@dataclass(frozen=True)
class Charts:
    """Charts side by side, as many as the page is wide."""

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
    """The numbers to see first."""

    tiles: Sequence[Tile]
    kind: ClassVar[str] = "tiles"


@dataclass(frozen=True)
class Fold:
    """Blocks that are shown on demand."""

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
        """Its name in addresses."""
        return "".join(c if c.isalnum() else "-" for c in self.title.lower()).strip("-")


@dataclass(frozen=True)
class Document:
    """A whole report.

    Args:
        title: of the page.
        subtitle: one line below it.
        sections: those without blocks are left out.
    """

    title: str
    subtitle: str
    sections: Sequence[Section]


def words(text: object, mark: Mark = "") -> Cell:
    """A cell of text.

    >>> words(None)
    Cell(text='–', value=None, mark='')
    """
    return Cell(MISSING if text is None or text == "" else str(text), mark=mark)


def number(value: float | None, pattern: str = ".4f", mark: Mark = "") -> Cell:
    """A cell of a number, or a dash where there is none.

    >>> number(0.12345).text, number(None).text, number(float("nan")).text
    ('0.1235', '–', 'not a number')
    """
    if value is None:
        return Cell(MISSING, mark=mark)
    if math.isnan(value):
        return Cell("not a number", mark=mark)
    return Cell(format(value, pattern), float(value), mark)


def percent(share: float | None, *, mark_sign: bool = False) -> Cell:
    """A cell of a signed percentage.

    >>> percent(0.0213).text, percent(-0.0213, mark_sign=True)
    ('+2.1 %', Cell(text='-2.1 %', value=-0.0213, mark='worse'))
    """
    if share is None or not math.isfinite(share):
        return Cell(MISSING)
    mark: Mark = ("better" if share > 0 else "worse" if share < 0 else "") if mark_sign else ""
    # A difference that rounds to nothing has no sign.
    text = f"{100 * share:+.1f} %"
    return Cell("0.0 %" if text in ("+0.0 %", "-0.0 %") else text, share, mark)


def probability(value: float) -> Cell:
    """A cell of a p-value.

    >>> probability(0.0312).text, probability(1e-9).text
    ('0.031', '< 0.001')
    """
    return Cell("< 0.001" if value < 0.001 else f"{value:.3f}", value)
