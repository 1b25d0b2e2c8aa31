"""`pslrec similar`: the neighbours of an item or a user."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pslrec.cli._identifiers import typed
from pslrec.cli._options import FinishedRun


def similar_command(
    run: FinishedRun,
    item: Annotated[
        str | None, typer.Option(metavar="ID", help="Item whose neighbours to show.")
    ] = None,
    user: Annotated[
        str | None, typer.Option(metavar="ID", help="User whose neighbours to show.")
    ] = None,
    k: Annotated[
        int, typer.Option("-k", "--k", metavar="K", min=1, help="Number of neighbours.")
    ] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, one line each.")] = False,
) -> None:
    """Show the items most similar to an item, or the users most similar to a user."""
    from pslrec.errors import ConfigError
    from pslrec.inference import TrainedModel
    from pslrec.recommender import ranked_frame, rows_of

    if (item is None) == (user is None):
        raise ConfigError("give either `--item ID` or `--user ID`")
    model = TrainedModel.load(run)
    if item is not None:
        vocabulary = model.items
        wanted = typed(item, vocabulary)
        rows = rows_of([wanted], vocabulary)
        top = model.similar_items(rows, k)
    else:
        vocabulary = model.users
        wanted = typed(str(user), vocabulary)
        rows = rows_of([wanted], vocabulary)
        top = model.similar_users(rows, k)
    names = vocabulary.series.gather(rows.numpy())
    frame = ranked_frame(names, top, vocabulary, (vocabulary.kind, "similar"))
    if as_json:
        for record in frame.to_dicts():
            # Ids may be dates, which JSON does not know.
            typer.echo(json.dumps(record, default=str))
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("rank", justify="right")
    table.add_column(f"{vocabulary.kind}s similar to {wanted}", no_wrap=True)
    table.add_column("cosine", justify="right")
    for _, similar, score, rank in frame.iter_rows():
        # As Text: an id may hold brackets, which rich would take for markup.
        table.add_row(str(rank), Text(str(similar)), f"{score:.4f}")
    Console().print(table)
