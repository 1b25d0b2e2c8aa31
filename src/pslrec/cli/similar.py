"""`pslrec similar`: the neighbours of an item or a user."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pslrec.cli._lists import Blocks, check_file, check_processes, write_lists
from pslrec.cli._options import FinishedRun, NumberOfProcesses, Threads, Timeout, use_threads
from pslrec.cli._processes import joined, start_workers
from pslrec.cli._rule_options import (
    AtMost,
    Exclude,
    ItemTableEncoding,
    ItemTableFile,
    Where,
    limits_from,
    table_file,
    table_in,
    title_cell,
    titles_like,
)

if TYPE_CHECKING:
    import polars as pl

    from pslrec.data.items import ItemTable
    from pslrec.inference import RowRules, TrainedModel

# Ranked in one block, which is what progress and Ctrl-C go by.
ITEMS_AT_ONCE = 8192


def similar_command(
    run: FinishedRun,
    given: Annotated[
        str | None,
        typer.Argument(metavar="ITEM", help="The same as --item ITEM.", show_default=False),
    ] = None,
    item: Annotated[
        str | None, typer.Option(metavar="ID", help="Item whose neighbours to show.")
    ] = None,
    user: Annotated[
        str | None, typer.Option(metavar="ID", help="User whose neighbours to show.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Write the neighbours of all items; needs --out.")
    ] = False,
    k: Annotated[
        int, typer.Option("-k", "--k", metavar="K", min=1, help="Number of neighbours.")
    ] = 10,
    item_table: ItemTableFile = None,
    item_table_encoding: ItemTableEncoding = None,
    exclude: Exclude = None,
    where: Where = None,
    at_most: AtMost = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="With --all: .parquet, .csv or .jsonl."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, one line each.")] = False,
    threads: Threads = None,
    processes: NumberOfProcesses = None,
    timeout: Timeout = 600.0,
) -> None:
    """Show the items most similar to an item, or the users most similar to a user."""
    from pslrec.inference import Rules, TrainedModel
    from pslrec.recommender import ranked_frame, rows_of

    has_rules = bool(exclude or where or at_most)
    _check(given, item, user, out, everything=everything, has_rules=has_rules)
    if item is None:
        item = given
    check_file(out)
    check_processes(processes, out)
    titles = table_file(item_table, item_table_encoding)
    start_workers(processes, threads=threads)
    use_threads(threads)
    model = TrainedModel.load(run)
    table = None
    if user is None:
        table = table_in(titles, run, model.items)
        rules = Rules(exclude=exclude or [], where=where, at_most=limits_from(at_most))
        row_rules = rules.in_rows(model.items, table)
    if out is not None:
        with joined(timeout) as group:
            blocks = _blocks_of_items(model, k, row_rules, table)
            write_lists(blocks, out, group, kind="item")
        return
    if item is not None:
        vocabulary = model.items
        rows = rows_of([item], vocabulary, titles_like([item], vocabulary, table))
        top = model.similar_items(rows, k, rules=row_rules)
    else:
        vocabulary = model.users
        rows = rows_of([user], vocabulary)
        top = model.similar_users(rows, k)
    names = vocabulary.series.gather(rows.numpy())
    frame = ranked_frame(names, top, vocabulary, (vocabulary.kind, "similar"), table)
    if as_json:
        for record in frame.to_dicts():
            # Ids may be dates, which JSON does not know.
            typer.echo(json.dumps(record, default=str))
        return
    wanted = str(names[0])
    if table is not None:
        wanted = table.titles[int(rows[0])] or wanted
    listing = Table(box=None, pad_edge=False)
    listing.add_column("rank", justify="right")
    # As Text: an id may hold brackets, which rich would take for markup.
    listing.add_column(Text(f"{vocabulary.kind}s similar to {wanted}"), no_wrap=True)
    listing.add_column("cosine", justify="right")
    for record in frame.iter_rows(named=True):
        similar = Text(title_cell(record, "similar"))
        listing.add_row(str(record["rank"]), similar, f"{record['score']:.4f}")
    Console().print(listing)
    if frame.is_empty() and user is not None:
        typer.echo("none of this user's items are in the training part", err=True)


def _check(
    given: str | None,
    item: str | None,
    user: str | None,
    out: Path | None,
    *,
    everything: bool,
    has_rules: bool,
) -> None:
    """Raise where options do not go together."""
    from pslrec.errors import ConfigError

    n_named = sum(each is not None for each in (given, item, user))
    if n_named + everything != 1:
        raise ConfigError(
            "give one item, as in `pslrec similar RUN ITEM`, or one user by `--user ID`, or `--all`"
        )
    if has_rules and user is not None:
        raise ConfigError("`--exclude`, `--where` and `--at-most` are about items; give `--item`")
    if everything and out is None:
        raise ConfigError("`--all` writes to a file; give `--out FILE`")
    if out is not None and not everything:
        raise ConfigError("`--out` is for the neighbours of all items; give `--all`")


def _blocks_of_items(
    model: "TrainedModel", k: int, rules: "RowRules", table: "ItemTable | None"
) -> Blocks:
    import torch

    from pslrec.recommender import ranked_frame

    parts = torch.arange(model.n_items).split(ITEMS_AT_ONCE)

    def make(number: int) -> "pl.DataFrame":
        rows = parts[number]
        top = model.similar_items(rows, k, rules=rules)
        names = model.items.series.gather(rows.numpy())
        return ranked_frame(names, top, model.items, ("item", "similar"), table)

    return Blocks(model.n_items, len(parts), make)
