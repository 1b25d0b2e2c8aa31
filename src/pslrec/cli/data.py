"""`pslrec data`: look at, prepare, split and fetch data sets."""

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from pslrec.cli.data_fetch import fetch_command

data_app = typer.Typer(
    name="data", help="Look at, prepare, split and fetch data sets.", no_args_is_help=True
)
data_app.command("fetch")(fetch_command)

DATA_HELP = "A file, a directory or zip with train and test, or a name: debian, synthetic, or one that `pslrec data fetch` lists."
DataArgument = Annotated[str, typer.Argument(metavar="DATA", help=DATA_HELP)]
ReadingPanel = "Reading"
UserColumn = Annotated[
    str | None, typer.Option(help="Column of the users.", rich_help_panel=ReadingPanel)
]
ItemColumn = Annotated[
    str | None, typer.Option(help="Column of the items.", rich_help_panel=ReadingPanel)
]
RatingColumn = Annotated[
    str | None,
    typer.Option(help='Column of the ratings; "" to do without.', rich_help_panel=ReadingPanel),
]
TimestampColumn = Annotated[
    str | None,
    typer.Option(help='Column of the times; "" to do without.', rich_help_panel=ReadingPanel),
]
WeightColumn = Annotated[
    str | None,
    typer.Option(help='Column of the weights; "" to do without.', rich_help_panel=ReadingPanel),
]
Separator = Annotated[
    str | None,
    typer.Option(
        help="Between the fields of a text file; \\t is a tab.", rich_help_panel=ReadingPanel
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line of a text file names the columns.",
        show_default=False,
        rich_help_panel=ReadingPanel,
    ),
]
FileFormat = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="delimited, unquoted, json-lines, lightgcn, parquet or recbole.",
        rich_help_panel=ReadingPanel,
    ),
]
Repair = Annotated[
    bool,
    typer.Option(
        "--repair",
        help="Drop test pairs that are in training, or never trained on, instead of refusing.",
        rich_help_panel=ReadingPanel,
    ),
]


@data_app.command("describe")
def describe_command(
    data: DataArgument,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    user_column: UserColumn = None,
    item_column: ItemColumn = None,
    rating_column: RatingColumn = None,
    timestamp_column: TimestampColumn = None,
    weight_column: WeightColumn = None,
    separator: Separator = None,
    header: Header = None,
    file_format: FileFormat = None,
    repair: Repair = False,
) -> None:
    """Count users, items and interactions; show history lengths and the popularity tail."""
    from pslrec.cli._describing import as_record, show
    from pslrec.data import Columns, load

    columns = Columns(user_column, item_column, rating_column, timestamp_column, weight_column)
    loaded = load(
        data,
        columns=columns,
        format=file_format,
        separator=_escaped(separator),
        header=header,
        repair=repair,
    )
    if as_json:
        typer.echo(as_record(loaded))
    else:
        show(loaded, Console(), title=data)


@data_app.command("prepare")
def prepare_command(
    data: DataArgument,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="File to write: .csv, .tsv or .parquet.")
    ],
    minimum_rating: Annotated[
        float, typer.Option(help="Remove interactions rated lower, if there are ratings.")
    ] = 3.0,
    k_core: Annotated[
        int,
        typer.Option(min=0, help="Interactions that every user and item must have; 0 keeps all."),
    ] = 10,
    weights: Annotated[
        Literal["none", "count", "rating"],
        typer.Option(
            help="Keep how often a pair occurs, or the sum of its ratings, as its weight."
        ),
    ] = "none",
    user_column: UserColumn = None,
    item_column: ItemColumn = None,
    rating_column: RatingColumn = None,
    timestamp_column: TimestampColumn = None,
    weight_column: WeightColumn = None,
    separator: Separator = None,
    header: Header = None,
    file_format: FileFormat = None,
) -> None:
    """Remove low ratings, repeated pairs, and everybody outside the k-core."""
    from pslrec.cli._describing import show
    from pslrec.data import (
        Columns,
        Preparation,
        check_new_file,
        load_interactions,
        prepare,
        write_interactions,
    )

    check_new_file(out)
    columns = Columns(user_column, item_column, rating_column, timestamp_column, weight_column)
    log = load_interactions(
        data, columns=columns, format=file_format, separator=_escaped(separator), header=header
    )
    prepared = prepare(log, Preparation(minimum_rating, k_core, weights))
    write_interactions(prepared, out)
    show(prepared, Console(), title=str(out))
    typer.echo(f"\nwrote {len(prepared):,} of {len(log):,} interactions to {out}")


@data_app.command("split")
def split_command(
    data: DataArgument,
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", help="Directory to make, with train.tsv, test.tsv and the ids."
        ),
    ],
    method: Annotated[
        str,
        typer.Option(help="iid, popularity (shifted), temporal, temporal-per-user, leave-one-out."),
    ] = "iid",
    train_fraction: Annotated[
        float | None, typer.Option(help="Share of the training part; 0.8 if not given.")
    ] = None,
    validation: Annotated[
        Literal["none", "paper", "fraction"],
        typer.Option(help="How to carve out validation interactions as well."),
    ] = "none",
    seed: Annotated[
        int,
        typer.Option(
            help="The same data and seed give the same parts; 0 gives the published ones."
        ),
    ] = 0,
    user_column: UserColumn = None,
    item_column: ItemColumn = None,
    rating_column: RatingColumn = None,
    timestamp_column: TimestampColumn = None,
    weight_column: WeightColumn = None,
    separator: Separator = None,
    header: Header = None,
    file_format: FileFormat = None,
) -> None:
    """Divide interactions into a training and a test part, and perhaps a validation part."""
    from pslrec.data import Columns, check_new_directory, load_interactions, write_dataset
    from pslrec.data.splits import split_by_name

    check_new_directory(out)
    columns = Columns(user_column, item_column, rating_column, timestamp_column, weight_column)
    log = load_interactions(
        data, columns=columns, format=file_format, separator=_escaped(separator), header=header
    )
    dataset = split_by_name(
        log, method, train_fraction=train_fraction, validation=validation, seed=seed
    )
    write_dataset(dataset, out)
    shown = ", ".join(f"{len(part):,} {name}" for name, part in dataset.parts().items())
    typer.echo(f"wrote {shown} interactions to {out}")


def _escaped(separator: str | None) -> str | None:
    # A shell hands over a backslash and a t where people mean a tab.
    return None if separator is None else separator.replace("\\t", "\t")
