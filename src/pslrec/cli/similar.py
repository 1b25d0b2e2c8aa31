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
    item: Annotated[str | None, typer.Option(help="Id of an item.")] = None,
    user: Annotated[str | None, typer.Option(help="Id of a user, instead.")] = None,
    k: Annotated[int, typer.Option("-k", "--k", min=1, help="How many.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
) -> None:
    """Show the items nearest to an item, or the users nearest to a user, by cosine."""
    from pslrec.errors import ConfigError
    from pslrec.inference import TrainedModel
    from pslrec.recommender import ranked_frame, rows_of

    if (item is None) == (user is None):
        raise ConfigError("give either --item ID or --user ID")
    model = TrainedModel.load(run)
    vocabulary = model.items if user is None else model.users
    wanted = typed(item if item is not None else str(user), vocabulary)
    rows = rows_of([wanted], vocabulary)
    top = (model.similar_items if user is None else model.similar_users)(rows, k)
    frame = ranked_frame(
        vocabulary.series.gather(rows.numpy()), top, vocabulary, (vocabulary.kind, "similar")
    )
    if as_json:
        for record in frame.to_dicts():
            typer.echo(json.dumps(record, default=str))
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("rank", justify="right")
    table.add_column(f"{vocabulary.kind} like {wanted}", no_wrap=True)
    table.add_column("cosine", justify="right")
    for _, similar, score, rank in frame.iter_rows():
        table.add_row(str(rank), Text(str(similar)), f"{score:.4f}")
    Console().print(table)
