"""`pslrec data`: describe, prepare, split and download data sets."""

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from pslrec.cli._help import Command, Group
from pslrec.cli._options import DATA_HELP
from pslrec.cli._reading import NO_READING, PANEL, Reading, takes_reading
from pslrec.cli.data_cache import cache_command
from pslrec.cli.data_fetch import fetch_command

data_app = typer.Typer(
    name="data",
    cls=Group,
    help="Describe, prepare, split and download data sets.",
    no_args_is_help=True,
)
data_app.command("fetch", cls=Command)(fetch_command)
data_app.command("cache", cls=Command)(cache_command)

DataArgument = Annotated[str, typer.Argument(metavar="DATA", help=DATA_HELP)]
Repair = Annotated[
    bool,
    typer.Option(
        "--repair",
        help=(
            "Instead of failing, drop test pairs that are also in the training part, "
            "or whose user or item is not."
        ),
        rich_help_panel=PANEL,
    ),
]


@data_app.command("describe", cls=Command, no_args_is_help=True)
@takes_reading
def describe_command(
    data: DataArgument,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
    exchangeability: Annotated[
        Literal["auto", "on", "off"],
        typer.Option(
            metavar="auto|on|off",
            help=(
                "Compare held-out pairs with pairs held out at random from training; "
                "auto takes a sample of users if all would take more than a second."
            ),
        ),
    ] = "auto",
    reading: Reading = NO_READING,
    repair: Repair = False,
) -> None:
    """Show counts, history lengths and item popularity, and whether a split is shifted."""
    from pslrec.cli._describing import as_record, show
    from pslrec.data import Dataset, check_exchangeability, load

    loaded = load(data, repair=repair, **reading.arguments())
    checks = {}
    if isinstance(loaded, Dataset):
        checks = check_exchangeability(loaded, mode=exchangeability)
    if as_json:
        typer.echo(as_record(loaded, checks))
    else:
        show(loaded, Console(), title=data, checks=checks)


@data_app.command("prepare", cls=Command, no_args_is_help=True)
@takes_reading
def prepare_command(
    data: DataArgument,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="File to write (.csv, .tsv or .parquet); an older one is replaced.",
        ),
    ],
    minimum_rating: Annotated[
        float,
        typer.Option(metavar="RATING", help="Drop interactions with lower ratings, if any."),
    ] = 3.0,
    k_core: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            help="Repeatedly drop users and items with fewer than N interactions; 0 keeps all.",
        ),
    ] = 10,
    weights: Annotated[
        Literal["none", "count", "rating"],
        typer.Option(
            metavar="none|count|rating",
            help="Weight each pair by how often it occurs, or by the sum of its ratings.",
        ),
    ] = "none",
    reading: Reading = NO_READING,
) -> None:
    """Drop low ratings, repeated pairs, and users and items outside the k-core."""
    from pslrec.cli._describing import show
    from pslrec.data import (
        Preparation,
        check_new_file,
        load_interactions,
        prepare,
        write_interactions,
    )

    # Before the data is read, which may take minutes.
    check_new_file(out)
    log = load_interactions(data, **reading.arguments())
    prepared = prepare(log, Preparation(minimum_rating, k_core, weights))
    write_interactions(prepared, out)
    show(prepared, Console(), title=str(out))
    typer.echo(f"\nwrote {len(prepared):,} of {len(log):,} interactions to {out}")


@data_app.command("split", cls=Command, no_args_is_help=True)
@takes_reading
def split_command(
    data: DataArgument,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="DIRECTORY",
            help="New directory for train.tsv, test.tsv and the ids.",
        ),
    ],
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="iid, popularity (shifted), temporal, temporal-per-user or leave-one-out; none "
            "holds out no test part.",
        ),
    ] = "iid",
    train_fraction: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Share of the training part. Default: 0.8."),
    ] = None,
    validation: Annotated[
        Literal["none", "paper", "fraction"],
        typer.Option(metavar="none|paper|fraction", help="How to set a validation part aside."),
    ] = "none",
    seed: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="The same data and seed give the same parts; 0 gives the published ones.",
        ),
    ] = 0,
    reading: Reading = NO_READING,
) -> None:
    """Split interactions into training and test parts, and optionally a validation part."""
    from pslrec.data import check_new_directory, load_interactions, write_dataset
    from pslrec.data.splits import split_by_name

    # Before the data is read, which may take minutes.
    check_new_directory(out)
    log = load_interactions(data, **reading.arguments())
    dataset = split_by_name(
        log, method, train_fraction=train_fraction, validation=validation, seed=seed
    )
    write_dataset(dataset, out)
    shown = ", ".join(f"{len(part):,} {name}" for name, part in dataset.parts().items())
    typer.echo(f"wrote {shown} interactions to {out}")
