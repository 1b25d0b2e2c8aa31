"""`pslrec reproduce`: the tables and figures of the paper, our number beside the published one."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pslrec.cli._ending import INTERRUPTED, UNFINISHED
from pslrec.cli._help import Command, Group
from pslrec.cli._options import Budget, Threads, use_threads
from pslrec.cli._parsing import listed, numbers, seconds_of, whole_numbers

if TYPE_CHECKING:
    from pslrec.reproduction.grid import Choice
    from pslrec.reproduction.reproducing import Places
    from pslrec.reproduction.tabular import TextTable

PLACE = Path("reproductions") / "psl-neurips-2024"

reproduce_app = typer.Typer(
    name="reproduce",
    cls=Group,
    help="Reproduce the paper's tables and figures; finished cells are never run twice.",
    no_args_is_help=True,
)

Datasets = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,...", help="Data sets, such as electronic,gowalla. Default: all in the table."
    ),
]
Backbones = Annotated[
    str | None, typer.Option(metavar="NAME,...", help="Backbones, such as mf,lightgcn.")
]
Losses = Annotated[
    str | None, typer.Option(metavar="NAME,...", help="Losses, such as sl,psl-relu.")
]
Noise = Annotated[
    str | None,
    typer.Option(metavar="P,...", help="Levels of false-negative noise, such as 0.05,0.5."),
]
Seeds = Annotated[
    str, typer.Option(metavar="N,...", help="Training seeds, such as 2024,2025,2026.")
]
Mode = Annotated[
    str,
    typer.Option(
        metavar="sampled|catalog|both", help="Negatives: sampled, the whole catalogue, or both."
    ),
]
Protocol = Annotated[str, typer.Option(metavar="paper|strict|both", help="Evaluation protocol.")]
DataDirectory = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        exists=True,
        file_okay=False,
        metavar="DIRECTORY",
        help="Directory with published splits (amazon2014-health.zip) or raw files.",
    ),
]
Epochs = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Train for fewer than the published 200 epochs, as a trial; results stay in --runs.",
    ),
]
Runs = Annotated[
    Path, typer.Option("--runs", metavar="DIRECTORY", help="Where to keep the run directories.")
]
Directory = Annotated[
    Path | None,
    typer.Option(
        "--directory",
        metavar="DIRECTORY",
        help="Directory with grid.toml, published/ and results/. Default: that of the repository.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="DIRECTORY", help="Where to write. Default: beside the published results."
    ),
]
Distinct = Annotated[
    bool, typer.Option("--distinct", help="Sample the negatives of a pair without replacement.")
]
LastEpoch = Annotated[
    bool,
    typer.Option(
        "--last-epoch",
        help="OOD tables only: use the last epoch instead of the best one on test data.",
    ),
]
Search = Annotated[
    bool,
    typer.Option(
        "--search", help="Search for settings that the paper does not give, on validation."
    ),
]
Plan = Annotated[
    bool,
    typer.Option("--plan", help="Only show which cells would run and how long they would take."),
]
Again = Annotated[
    bool,
    typer.Option(
        "--again", help="Also run cells with recorded results; the new ones stay in --runs."
    ),
]
# Not beside the results, which are in the repository: run directories are large.
RUNS = Path("runs") / "reproduction"
# Options that mean something for these tables only.
TABLES_WITH = {
    "noise": ("noise", "noise-interpretations"),
    "last-epoch": ("ood", "softplus"),
    "search": ("forms",),
}


class _Options(NamedTuple):
    budget: float | None
    threads: int | None
    search: bool
    again: bool


def _table_command(table: str, about: str) -> None:
    def command(
        datasets: Datasets = None,
        backbones: Backbones = None,
        losses: Losses = None,
        noise: Noise = None,
        seeds: Seeds = "2024",
        mode: Mode = "sampled",
        protocol: Protocol = "paper",
        data_dir: DataDirectory = None,
        budget: Budget = None,
        epochs: Epochs = None,
        threads: Threads = None,
        runs: Runs = RUNS,
        directory: Directory = None,
        distinct: Distinct = False,
        last_epoch: LastEpoch = False,
        search: Search = False,
        again: Again = False,
        plan: Plan = False,
    ) -> None:
        from pslrec.reproduction.grid import Choice
        from pslrec.reproduction.reproducing import Places

        given = {"noise": noise is not None, "last-epoch": last_epoch, "search": search}
        _refuse_idle(table, given)
        options = _Options(seconds_of(budget), threads, search, again)
        choice = Choice(
            datasets=_listed(datasets),
            backbones=_listed(backbones),
            losses=_listed(losses),
            noise=None if noise is None else numbers(noise, "noise"),
            seeds=whole_numbers(seeds, "seeds"),
            modes=_either(mode, "mode", ("sampled", "catalog")),
            protocols=_either(protocol, "protocol", ("paper", "strict")),
            epochs=epochs,
            replacement=not distinct,
            last_epoch=last_epoch,
        )
        places = Places(found_directory(directory), runs, data_dir)
        if plan:
            _show_plan(table, choice, places, again=again)
        else:
            _run(table, choice, places, options)

    # typer takes the text of a help page from the docstring.
    command.__doc__ = about
    reproduce_app.command(table, cls=Command)(command)


def _refuse_idle(table: str, given: dict[str, bool]) -> None:
    """Refuse options that have no effect on this table, instead of ignoring them."""
    from pslrec.errors import ConfigError

    for name, is_given in given.items():
        if is_given and table not in TABLES_WITH[name]:
            tables = " and ".join(TABLES_WITH[name])
            raise ConfigError(f"`--{name}` has no effect on `{table}`, only on {tables}")


def _show_plan(table: str, choice: "Choice", places: "Places", *, again: bool) -> None:
    from pslrec.cli._reproduce_progress import plan_table, summarize
    from pslrec.reproduction.reproducing import Reproduction

    reproduction = Reproduction(places, choice, again=again)
    tasks = reproduction.plan(table)
    Console().print(plan_table(tasks))
    summarize(Console(stderr=True), tasks, reproduction)


def _run(table: str, choice: "Choice", places: "Places", options: "_Options") -> None:
    from pslrec.cli._reproduce_progress import CellsProgress, summarize
    from pslrec.reproduction.execution import BudgetSpent
    from pslrec.reproduction.reproducing import Reproduction
    from pslrec.training import TrainingInterrupted

    use_threads(options.threads)
    code, ending = 0, ""
    with CellsProgress(Console(stderr=True)) as progress:
        reproduction = Reproduction(
            places, choice, budget=options.budget, watch=progress.show, again=options.again
        )
        try:
            reproduction.run(table, search=options.search)
        except BudgetSpent as stop:
            code, ending = UNFINISHED, str(stop)
        except (TrainingInterrupted, KeyboardInterrupt):
            code, ending = INTERRUPTED, "stopped; repeat the command to resume"
    # Also after a stop: the tables show whatever is finished.
    unfinished = summarize(progress.console, progress.tasks, reproduction)
    show_tables(reproduction.render(table))
    for line in reproduction.beside_records(table):
        typer.echo(line, err=True)
    for path in reproduction.written(table):
        typer.echo(f"results: {path}", err=True)
    report = reproduction.report()
    if report is not None:
        typer.echo(f"report: {report}", err=True)
    if ending:
        typer.echo(ending, err=True)
    # A stop outranks cells that failed or have no data.
    if code or unfinished:
        raise typer.Exit(code or unfinished)


def show_tables(tables: "Sequence[TextTable]") -> None:
    """Print tables."""
    console = Console()
    for text_table in tables:
        # The tables are written for Markdown, where stars set the best value in bold.
        lines = [_without_stars(cells) for cells in (text_table.header, *text_table.rows)]
        widths = column_widths(lines, console.width)
        shown = Table(
            title=text_table.title,
            title_justify="left",
            box=None,
            pad_edge=False,
            collapse_padding=True,
        )
        for place, (name, width) in enumerate(zip(text_table.header, widths, strict=True)):
            is_label = place < text_table.labels
            shown.add_column(name, justify="left" if is_label else "right", width=width)
        for cells in lines[1:]:
            shown.add_row(*map(escape, cells))
        # Wider than the terminal rather than cut, if even the longest words do not fit.
        console.print(shown, width=max(console.width, sum(widths) + len(widths)), crop=False)
        for note in text_table.notes:
            console.print(note, highlight=False, markup=False)


def _without_stars(cells: Sequence[str]) -> list[str]:
    return [cell.replace("**", "") for cell in cells]


def column_widths(lines: "Sequence[Sequence[str]]", available: int) -> list[int]:
    """Widths of columns with a space between them that fit the available width.

    The widest column gives way first. Lines break between words, never within one.

    >>> column_widths([["claim", "value"], ["PSL-relu is above SL", "1.20"]], 18)
    [12, 5]
    """
    columns = list(zip(*lines, strict=True))
    widths = [max(map(len, cells)) for cells in columns]
    least = []
    for cells in columns:
        words = " ".join(cells).split()
        least.append(max(map(len, words), default=0))
    # One character at a time is fast enough for tables that a person reads.
    while sum(widths) + len(widths) - 1 > available:
        wide = [place for place, width in enumerate(widths) if width > least[place]]
        if not wide:
            break
        widths[max(wide, key=widths.__getitem__)] -= 1
    return widths


_table_command("iid", "Table 1: every loss, backbone and data set in the IID setting.")
_table_command("ood", "Table 2: test data with shifted popularity.")
_table_command("noise", "Figures 2 and C.1 to C.8: false negatives among the sampled negatives.")
_table_command("noise-interpretations", "Readings of the noise setting that the paper leaves open.")
_table_command("softplus", "Section C.2: PSL-softplus, with the settings of PSL-tanh.")
_table_command("forms", "The temperature outside and inside the surrogate.")


@reproduce_app.command("datasets", cls=Command)
def datasets_command(
    data_dir: DataDirectory = None, runs: Runs = RUNS, directory: Directory = None
) -> None:
    """Statistics of the data sets beside the printed ones."""
    from pslrec.reproduction.reproducing import Places, measure_datasets

    table, absent = measure_datasets(Places(found_directory(directory), runs, data_dir))
    show_tables([table])
    for message in absent:
        typer.echo(message, err=True)


@reproduce_app.command("claims", cls=Command)
def claims_command(directory: Directory = None) -> None:
    """Check the paper's claims against the results: holds, fails, or within noise."""
    from pslrec.reproduction.reproducing import Places, check_claims

    show_tables(check_claims(Places(found_directory(directory), RUNS)))


@reproduce_app.command("figures", cls=Command)
def figures_command(
    run: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Finished run whose scores the weights are measured on."),
    ] = None,
    out: Out = None,
    directory: Directory = None,
) -> None:
    """Figures 1a and 1b: surrogates, and the weights they give to negatives."""
    from pslrec.reproduction import figures

    _tell(figures.write(out or found_directory(directory) / "figures", run))


@reproduce_app.command("theory", cls=Command)
def theory_command(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RUN", help="Finished runs. Default: small ones are trained first."),
    ] = None,
    out: Out = None,
    directory: Directory = None,
) -> None:
    """Measure the bounds and the robustness of the paper's theorems on trained models."""
    from pslrec.reproduction import theory

    _tell(theory.write(out or found_directory(directory) / "theory", runs or ()))


def _tell(written: Sequence[Path]) -> None:
    for path in written:
        typer.echo(path)


def found_directory(given: Path | None) -> Path:
    """The directory of the reproduction.

    Args:
        given: what `--directory` says; without it, the one below the working directory, or else
            the one of the repository that the package is installed from.
    """
    from pslrec.errors import ConfigError

    # Right for an editable installation in a clone; elsewhere there is no grid.toml below it.
    repository = Path(__file__).resolve().parents[3]
    places = [given] if given is not None else [PLACE, repository / PLACE]
    for place in places:
        if (place / "grid.toml").is_file():
            return place
    raise ConfigError(
        f"there is no grid.toml in {' or '.join(map(str, places))}; run this in a clone of the "
        "repository, or give `--directory`"
    )


def _listed(text: str | None) -> list[str] | None:
    return None if text is None else listed(text)


def _either(text: str, name: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
    from pslrec.errors import ConfigError

    if text != "both" and text not in allowed:
        raise ConfigError(f"`--{name}` must be {', '.join(allowed)} or both, got `{text}`")
    return allowed if text == "both" else (text,)
