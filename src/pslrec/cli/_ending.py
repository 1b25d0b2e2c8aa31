"""Exit codes, and what is said about work that was stopped."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer

# Some of the work was left over, failed or lacks its data; the rest is saved.
UNFINISHED = 1
USER_ERROR = 2
# 128 + SIGINT: what a shell reports for a program that Ctrl-C has ended.
INTERRUPTED = 130


@contextmanager
def saved_when_stopped() -> Iterator[None]:
    """Wrap work that is saved cell by cell; if it is stopped, say how to resume it."""
    from pslrec.training import TrainingInterrupted

    try:
        yield
    except TrainingInterrupted:
        typer.echo("stopped; everything is saved, repeat the command to resume", err=True)
        raise typer.Exit(INTERRUPTED) from None
