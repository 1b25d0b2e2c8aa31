"""`pslrec data fetch`: get a published data set, or list what there is."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from pslrec.cli._ending import INTERRUPTED
from pslrec.cli._telling import tell

if TYPE_CHECKING:
    from pslrec.data.sources import Source


def fetch_command(
    name: Annotated[
        str | None, typer.Argument(help="Which data set; without a name all are listed.")
    ] = None,
    directory: Annotated[
        Path | None, typer.Option("--directory", "-d", help="Where to put it; by default a cache.")
    ] = None,
) -> None:
    """Download a published data set, continuing where an earlier attempt stopped, and print where it is."""
    from pslrec.data.sources import SOURCES

    console = Console(stderr=True)
    if name is None:
        Console().print(_overview(directory))
        return
    source = SOURCES[name]
    tell(console, f"{source.title}: {source.licence}")
    try:
        path = _fetch_with_progress(source, directory, console)
    except KeyboardInterrupt:
        tell(console, f"stopped; run `pslrec data fetch {name}` again to continue where it was")
        raise typer.Exit(INTERRUPTED) from None
    tell(console, f"the paper's preparation: {preparation(source)}")
    # The path alone goes to the standard output, so that a script can take it.
    typer.echo(path)


def preparation(source: "Source") -> str:
    """What the paper does to the raw data, and what is left."""
    threshold = "" if source.min_rating is None else f"ratings of at least {source.min_rating:g}, "
    left = source.statistics
    return (
        f"{threshold}repeated pairs removed, {source.k_core}-core; "
        f"leaves {left.n_users:,} users, {left.n_items:,} items, {left.n_interactions:,} interactions"
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
    for heading in ("users", "items", "interactions"):
        table.add_column(heading, justify="right")
    table.add_column("on this machine")
    for name in SOURCES:
        counts = SOURCES[name].statistics
        present = {"raw": find_raw(name, directory), "split": find_split(name, directory)}
        here = ", ".join(kind for kind, path in present.items() if path) or "-"
        sizes = (f"{count:,}" for count in (counts.n_users, counts.n_items, counts.n_interactions))
        table.add_row(name, *sizes, here)
    return table
