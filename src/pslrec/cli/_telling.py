"""Lines for people, and whether there is a terminal on which they can be drawn over."""

from rich.console import Console


def tell(console: Console, text: str) -> None:
    """Print a line as it is: a path in it is not broken in two, and brackets in it are no markup."""
    console.print(text, highlight=False, soft_wrap=True, markup=False)


def can_redraw(console: Console) -> bool:
    """Whether bars and live tables have a place; a file or the log of a CI job takes lines only, colours forced or not."""
    return console.is_interactive and console.file.isatty()
