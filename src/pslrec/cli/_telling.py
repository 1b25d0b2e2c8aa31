"""Lines for people, as every command prints them."""

import logging

from rich.console import Console

from pslrec.terminal import can_redraw, tell

__all__ = ["can_redraw", "notes_console", "tell"]


def notes_console(*, is_silent: bool = False) -> Console:
    """Standard error, for progress and notes; nothing is printed there with `--quiet`.

    Results go to standard output, so that `--json` leaves nothing but JSON there. Warnings are
    logged, and errors raised, so they are seen with `--quiet` as well.

    Args:
        is_silent: print nothing in any case, as in all processes but the first.
    """
    # The one place that keeps what was asked for; a command that is called as a function finds no level.
    is_quiet = logging.getLogger("pslrec").level > logging.INFO
    return Console(stderr=True, quiet=is_silent or is_quiet)
