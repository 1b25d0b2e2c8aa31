"""`pslrec similar`: the neighbours of an item or a user."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pslrec.cli._options import FinishedRun
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
    k: Annotated[
        int, typer.Option("-k", "--k", metavar="K", min=1, help="Number of neighbours.")
    ] = 10,
    item_table: ItemTableFile = None,
    item_table_encoding: ItemTableEncoding = None,
    exclude: Exclude = None,
    where: Where = None,
    at_most: AtMost = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, one line each.")] = False,
) -> None:
    """Show the items most similar to an item, or the users most similar to a user."""
    from pslrec.errors import ConfigError
    from pslrec.inference import Rules, TrainedModel
    from pslrec.recommender import ranked_frame, rows_of

    if sum(each is not None for each in (given, item, user)) != 1:
        raise ConfigError(
            "give one item, as in `pslrec similar RUN ITEM`, or one user by `--user ID`"
        )
    if item is None:
        item = given
    has_rules = bool(exclude or where or at_most)
    if has_rules and item is None:
        raise ConfigError("`--exclude`, `--where` and `--at-most` are about items; give `--item`")
    titles = table_file(item_table, item_table_encoding)
    model = TrainedModel.load(run)
    table = None
    if item is not None:
        vocabulary = model.items
        table = table_in(titles, run, model.items)
        rules = Rules(exclude=exclude or [], where=where, at_most=limits_from(at_most))
        rows = rows_of([item], vocabulary, titles_like([item], vocabulary, table))
        top = model.similar_items(rows, k, rules=rules.in_rows(model.items, table))
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
