"""How a command ends that does not end well."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer

UNFINISHED = 1
USER_ERROR = 2
INTERRUPTED = 130


@contextmanager
def saved_when_stopped() -> Iterator[None]:
    """Around work that is kept cell by cell: when it is stopped, say so in a sentence."""
    from pslrec.training import TrainingInterrupted

    try:
        yield
    except TrainingInterrupted:
        typer.echo("stopped; all of it is saved, and the same command goes on", err=True)
        raise typer.Exit(INTERRUPTED) from None
