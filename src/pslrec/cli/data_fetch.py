"""`pslrec data fetch`: download a published data set, or list them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from pslrec.cli._ending import INTERRUPTED
from pslrec.cli._telling import notes_console, tell

if TYPE_CHECKING:
    from pslrec.data.sources import Source


def fetch_command(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Data set to download; without it, list all of them."),
    ] = None,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--directory", "-d", metavar="DIRECTORY", help="Where to put it. Default: a cache."
        ),
    ] = None,
) -> None:
    """Download a published data set, resuming an earlier attempt, and print its path."""
    from pslrec.data.sources import SOURCES

    console = notes_console()
    if name is None:
        Console().print(_overview(directory))
        return
    source = SOURCES[name]
    # The terms come before the download, not after it.
    tell(console, f"{source.title}: {source.licence}")
    try:
        path = _fetch_with_progress(source, directory, console)
    except KeyboardInterrupt:
        typer.echo(
            f"stopped; run `pslrec data fetch {name}` again to resume the download", err=True
        )
        raise typer.Exit(INTERRUPTED) from None
    tell(console, f"the paper's preparation: {preparation(source)}")
    # Only the path goes to standard output, so that a script can take it.
    typer.echo(path)


def preparation(source: "Source") -> str:
    """What the paper does to the raw data, and what is left."""
    steps = []
    if source.min_rating is not None:
        steps.append(f"ratings of at least {source.min_rating:g}")
    steps.append("repeated pairs removed")
    steps.append(f"{source.k_core}-core")
    left = source.statistics
    return (
        f"{', '.join(steps)}; leaves {left.n_users:,} users, {left.n_items:,} items, "
        f"{left.n_interactions:,} interactions"
    )


def _fetch_with_progress(source: "Source", directory: Path | None, console: Console) -> Path:
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    from pslrec.data.sources import fetch

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    progress = Progress(*columns, console=console)
    task = progress.add_task(source.raw_file, total=None)

    def show(received: int, total: int | None) -> None:
        # Started when the first bytes arrive: a file that is there already needs no bar, and an
        # error about the network stands better without an empty one.
        progress.start()
        progress.update(task, completed=received, total=total)

    try:
        return fetch(source.name, directory, on_progress=show)
    finally:
        if progress.live.is_started:
            progress.stop()


def _overview(directory: Path | None) -> Table:
    from pslrec.data.sources import SOURCES, find_raw, find_split

    table = Table(box=None)
    table.add_column("name", no_wrap=True)
    table.add_column("users", justify="right")
    table.add_column("items", justify="right")
    table.add_column("interactions", justify="right")
    table.add_column("on this machine")
    for name in SOURCES:
        # The counts after the paper's preparation, which is what people compare with.
        counts = SOURCES[name].statistics
        here = []
        if find_raw(name, directory):
            here.append("raw")
        if find_split(name, directory):
            here.append("split")
        table.add_row(
            name,
            f"{counts.n_users:,}",
            f"{counts.n_items:,}",
            f"{counts.n_interactions:,}",
            ", ".join(here) or "-",
        )
    return table
