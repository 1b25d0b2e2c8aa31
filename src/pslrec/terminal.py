"""Lines for people, and whether there is a terminal that can redraw them."""

from rich.console import Console


def tell(console: Console, text: str) -> None:
    """Print a line as it is: rich breaks no path in two and takes no bracket for markup."""
    console.print(text, highlight=False, soft_wrap=True, markup=False)


def can_redraw(console: Console) -> bool:
    """Whether progress bars and live tables make sense on this console."""
    # rich counts a file as interactive when colours are forced, as CI jobs do; bars would fill
    # their logs with thousands of lines.
    return console.is_interactive and console.file.isatty()
