"""`pslrec data cache`: what was prepared out of core and is kept, or to remove it."""

from typing import Annotated

import typer


def cache_command(
    clean: Annotated[
        bool, typer.Option("--clean", help="Remove them; they are made again when needed.")
    ] = False,
) -> None:
    """List the data sets that were prepared out of core and are kept to be used again."""
    from pslrec.data.large import cached_datasets, clean_cache

    if clean:
        removed = clean_cache()
        n_bytes = sum(each.n_bytes for each in removed)
        typer.echo(f"removed {len(removed)} prepared data sets, {n_bytes / 1e6:,.1f} MB")
        return
    kept = cached_datasets()
    if not kept:
        typer.echo("no prepared data sets are kept")
        return
    for each in kept:
        n_pairs = sum(each.n_pairs.values())
        # Lines and not a table: paths are long, and a table would break them.
        typer.echo(
            f"{each.source}: {n_pairs:,} pairs, {each.n_bytes / 1e6:,.1f} MB, "
            f"prepared {each.made}, in {each.path}"
        )
