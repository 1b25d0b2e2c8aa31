"""`pslrec reproduce`: the tables and figures of the paper, our number beside the published one."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pslrec.cli._ending import INTERRUPTED, UNFINISHED
from pslrec.cli._options import Budget, Threads, use_threads
from pslrec.cli._parsing import listed, numbers, seconds_of, whole_numbers

if TYPE_CHECKING:
    from pslrec.reproduction.grid import Choice
    from pslrec.reproduction.reproducing import Places
    from pslrec.reproduction.tabular import TextTable

PLACE = Path("reproductions") / "psl-neurips-2024"

reproduce_app = typer.Typer(
    name="reproduce",
    help="Make the tables and figures of the paper again; what is finished is never run twice.",
    no_args_is_help=True,
)

Datasets = Annotated[
    str | None, typer.Option(help="Such as electronic,gowalla; by default all of the table.")
]
Backbones = Annotated[str | None, typer.Option(help="Such as mf,lightgcn.")]
Losses = Annotated[str | None, typer.Option(help="Such as sl,psl-relu.")]
Noise = Annotated[str | None, typer.Option(help="Levels of the noise setting, such as 0.05,0.5.")]
Seeds = Annotated[str, typer.Option(help="Such as 2024,2025,2026.")]
Mode = Annotated[str, typer.Option(help="Negatives: sampled, catalog (all there are), or both.")]
Protocol = Annotated[str, typer.Option(help="paper, strict, or both.")]
DataDirectory = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        exists=True,
        file_okay=False,
        help="With published splits (amazon2014-health.zip) or raw files.",
    ),
]
Epochs = Annotated[
    int | None,
    typer.Option(min=1, help="Fewer than the published 200, for a try: results stay in --runs."),
]
Runs = Annotated[Path, typer.Option("--runs", help="Where run directories live.")]
Directory = Annotated[
    Path | None, typer.Option("--directory", help="With grid.toml, published/ and results/.")
]
Out = Annotated[
    Path | None,
    typer.Option("--out", help="Where to write; by default the page of the repository."),
]
Distinct = Annotated[
    bool, typer.Option("--distinct", help="Draw a positive's negatives without replacement.")
]
LastEpoch = Annotated[
    bool, typer.Option("--last-epoch", help="OOD: take the last epoch, choose none on test.")
]
Search = Annotated[
    bool, typer.Option("--search", help="Try the settings that were never printed, on validation.")
]
Plan = Annotated[
    bool, typer.Option("--plan", help="Show what would run and how long it takes; run nothing.")
]
Again = Annotated[
    bool,
    typer.Option(
        "--again", help="Run cells that have a recorded row, too; results stay in --runs."
    ),
]
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

        _refuse_idle(
            table, {"noise": noise is not None, "last-epoch": last_epoch, "search": search}
        )
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

    command.__doc__ = about
    reproduce_app.command(table)(command)


def _refuse_idle(table: str, given: dict[str, bool]) -> None:
    """An option without an effect would be taken for one that has it."""
    from pslrec.errors import ConfigError

    for name, is_given in given.items():
        if is_given and table not in TABLES_WITH[name]:
            tables = " and ".join(TABLES_WITH[name])
            raise ConfigError(f"`--{name}` has no effect on `{table}`; it belongs to {tables}")


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
            code, ending = INTERRUPTED, "stopped; the same command goes on from here"
    unfinished = summarize(progress.console, progress.tasks, reproduction)
    show_tables(reproduction.render(table))
    for line in reproduction.beside_records(table):
        typer.echo(line, err=True)
    for name, path in (
        *(("results", path) for path in reproduction.written(table)),
        ("report", reproduction.report()),
    ):
        if path is not None:
            typer.echo(f"{name}: {path}", err=True)
    if ending:
        typer.echo(ending, err=True)
    if code or unfinished:
        raise typer.Exit(code or unfinished)


def show_tables(tables: "Sequence[TextTable]") -> None:
    """Print tables."""
    console = Console()
    for text_table in tables:
        lines = [
            [cell.replace("**", "") for cell in cells]
            for cells in (text_table.header, *text_table.rows)
        ]
        widths = column_widths(lines, console.width)
        shown = Table(
            title=text_table.title,
            title_justify="left",
            box=None,
            pad_edge=False,
            collapse_padding=True,
        )
        for place, (name, width) in enumerate(zip(text_table.header, widths, strict=True)):
            shown.add_column(
                name, justify="left" if place < text_table.labels else "right", width=width
            )
        for cells in lines[1:]:
            shown.add_row(*map(escape, cells))
        console.print(shown, width=max(console.width, sum(widths) + len(widths)), crop=False)
        for note in text_table.notes:
            console.print(note, highlight=False, markup=False)


def column_widths(lines: "Sequence[Sequence[str]]", available: int) -> list[int]:
    """How wide columns are with a space between them: lines break between words, never within one, the widest column first.

    >>> column_widths([["claim", "value"], ["PSL-relu is above SL", "1.20"]], 18)
    [12, 5]
    """
    columns = list(zip(*lines, strict=True))
    widths = [max(map(len, cells)) for cells in columns]
    least = [
        max((len(word) for cell in cells for word in cell.split()), default=0) for cells in columns
    ]
    while sum(widths) + len(widths) - 1 > available:
        wide = [place for place, width in enumerate(widths) if width > least[place]]
        if not wide:
            break
        widths[max(wide, key=widths.__getitem__)] -= 1
    return widths


_table_command("iid", "Table 1: every loss, backbone and data set in the IID setting.")
_table_command("ood", "Table 2: test data of shifted popularity.")
_table_command("noise", "Figures 2 and C.1 to C.8: false negatives among the negatives.")
_table_command("noise-interpretations", "What the paper leaves open about its false negatives.")
_table_command("softplus", "Section C.2: PSL-softplus, with the settings of PSL-tanh.")
_table_command("forms", "Temperature outside and inside of the surrogate.")


@reproduce_app.command("datasets")
def datasets_command(
    data_dir: DataDirectory = None, runs: Runs = RUNS, directory: Directory = None
) -> None:
    """The statistics of the data sets, with density, beside the printed ones."""
    from pslrec.reproduction.reproducing import Places, measure_datasets

    table, absent = measure_datasets(Places(found_directory(directory), runs, data_dir))
    show_tables([table])
    for message in absent:
        typer.echo(message, err=True)


@reproduce_app.command("claims")
def claims_command(directory: Directory = None) -> None:
    """The paper's sentences as checks on the results: holds, fails, inside noise."""
    from pslrec.reproduction.reproducing import Places, check_claims

    show_tables(check_claims(Places(found_directory(directory), RUNS)))


@reproduce_app.command("figures")
def figures_command(
    run: Annotated[Path | None, typer.Option(help="A finished run, to measure weights on.")] = None,
    out: Out = None,
    directory: Directory = None,
) -> None:
    """Figures 1a and 1b: surrogates, and the weights they give to negatives."""
    from pslrec.reproduction import figures

    _tell(figures.write(out or found_directory(directory) / "figures", run))


@reproduce_app.command("theory")
def theory_command(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RUN...", help="Finished runs; without any, small ones are trained."
        ),
    ] = None,
    out: Out = None,
    directory: Directory = None,
) -> None:
    """The bounds and the robustness of the paper's theorems, measured on trained models."""
    from pslrec.reproduction import theory

    _tell(theory.write(out or found_directory(directory) / "theory", runs or ()))


def _tell(written: Sequence[Path]) -> None:
    for path in written:
        typer.echo(path)


def found_directory(given: Path | None) -> Path:
    """The directory of the reproduction: the one given, the one below the working directory, or that of the repository."""
    from pslrec.errors import ConfigError

    repository = Path(__file__).resolve().parents[3]
    places = [given] if given is not None else [PLACE, repository / PLACE]
    for place in places:
        if (place / "grid.toml").is_file():
            return place
    raise ConfigError(
        f"there is no grid.toml in {' or '.join(map(str, places))}; run this in a clone of the repository, "
        "or give --directory"
    )


def _listed(text: str | None) -> list[str] | None:
    return None if text is None else listed(text)


def _either(text: str, name: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
    from pslrec.errors import ConfigError

    if text != "both" and text not in allowed:
        raise ConfigError(f"`--{name}` must be {', '.join(allowed)} or both, got `{text}`")
    return allowed if text == "both" else (text,)
