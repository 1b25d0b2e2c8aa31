"""Tables of text in a terminal."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from pslrec.reporting import TextTable


def show_tables(tables: "Iterable[TextTable]") -> None:
    """Print tables."""
    console = Console()
    for text_table in tables:
        # The tables are written for Markdown, where stars set the best value in bold.
        lines = [_without_stars(cells) for cells in (text_table.header, *text_table.rows)]
        widths = column_widths(lines, console.width)
        shown = Table(
            title=text_table.title,
            title_justify="left",
            box=None,
            pad_edge=False,
            collapse_padding=True,
        )
        for place, (name, width) in enumerate(zip(text_table.header, widths, strict=True)):
            is_label = place < text_table.labels
            shown.add_column(name, justify="left" if is_label else "right", width=width)
        for cells in lines[1:]:
            shown.add_row(*map(escape, cells))
        # Wider than the terminal rather than cut, if even the longest words do not fit. No console prints
        # anything wider than itself.
        Console(width=max(console.width, sum(widths) + len(widths))).print(shown)
        for note in text_table.notes:
            console.print(note, highlight=False, markup=False)


def _without_stars(cells: Sequence[str]) -> list[str]:
    return [cell.replace("**", "") for cell in cells]


def column_widths(lines: "Sequence[Sequence[str]]", available: int) -> list[int]:
    """Widths of columns with a space between them that fit the available width.

    The widest column gives way first. Lines break between words, never within one.

    >>> column_widths([["claim", "value"], ["PSL-relu is above SL", "1.20"]], 18)
    [12, 5]
    """
    columns = list(zip(*lines, strict=True))
    widths = [max(map(len, cells)) for cells in columns]
    least = []
    for cells in columns:
        words = " ".join(cells).split()
        least.append(max(map(len, words), default=0))
    # One character at a time is fast enough for tables that a person reads.
    while sum(widths) + len(widths) - 1 > available:
        wide = [place for place, width in enumerate(widths) if width > least[place]]
        if not wide:
            break
        widths[max(wide, key=widths.__getitem__)] -= 1
    return widths
