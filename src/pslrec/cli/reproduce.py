"""`pslrec reproduce`: the tables of a paper, our number beside the published one."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pslrec.cli._ending import INTERRUPTED, UNFINISHED
from pslrec.cli._options import Budget, Settings, Threads, use_threads
from pslrec.cli._parsing import listed, seconds_of, whole_numbers
from pslrec.cli._settings import parse_settings
from pslrec.cli._tables import show_tables
from pslrec.cli._telling import notes_console

if TYPE_CHECKING:
    from pslrec.reproduction import Places, Reproduction

# Not beside the results, which belong into a repository: run directories are large.
RUNS = Path("runs") / "reproduction"
# What may be asked for besides the tables that `paper.toml` names.
DATASETS, CLAIMS = "datasets", "claims"
MODES = ("sampled", "catalog")
PROTOCOLS = ("paper", "strict")


def reproduce_command(
    paper: Annotated[
        str | None,
        typer.Argument(
            metavar="PAPER",
            help="Folder with a paper.toml, or the name of one that comes with pslrec. Default: "
            "list those.",
        ),
    ] = None,
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TABLE",
            help="Tables of the paper, or datasets, or claims. Default: all tables, then claims.",
        ),
    ] = None,
    datasets: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Data sets, such as electronic,gowalla.")
    ] = None,
    backbones: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Backbones, such as mf,lightgcn.")
    ] = None,
    losses: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Losses, such as sl,psl-relu.")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=VALUE,...",
            help="Only cells with these values in a column of the results, such as noise=0.05,0.5. "
            "Repeatable.",
        ),
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(metavar="N,...", help="Training seeds, such as 2024,2025,2026."),
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            metavar="sampled|catalog|both", help="Negatives: sampled, the whole catalogue, or both."
        ),
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(metavar="paper|strict|both", help="Evaluation protocol.")
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            file_okay=False,
            metavar="DIRECTORY",
            help="Directory with published splits (amazon2014-health.zip) or raw files.",
        ),
    ] = None,
    budget: Budget = None,
    workers: Annotated[int, typer.Option(metavar="N", min=1, help="Processes to work in.")] = 1,
    threads: Threads = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Train for fewer than the published epochs, as a trial; results stay in --runs.",
        ),
    ] = None,
    settings: Settings = None,
    runs: Annotated[
        Path, typer.Option("--runs", metavar="DIRECTORY", help="Where to keep run directories.")
    ] = RUNS,
    again: Annotated[
        bool,
        typer.Option(
            "--again", help="Also run cells with recorded results; the new ones stay in --runs."
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Only show which cells would run and how long they would take."
        ),
    ] = False,
    render: Annotated[
        bool,
        typer.Option("--render", help="Only write the page anew from the rows that are there."),
    ] = False,
) -> None:
    """Reproduce a paper's tables; finished cells are never run twice.

    A paper is a folder: paper.toml, published numbers, claims, our results and a page made of them.
    """
    from pslrec.reproduction import Choice, Reproduction

    if paper is None:
        _list_papers()
        return
    choice = Choice(
        datasets=_listed(datasets),
        backbones=_listed(backbones),
        losses=_listed(losses),
        where=_columns(where or ()),
        seeds=None if seeds is None else whole_numbers(seeds, "seeds"),
        modes=_either(mode, "mode", MODES),
        protocols=_either(protocol, "protocol", PROTOCOLS),
        epochs=epochs,
        settings=parse_settings(settings),
    )
    places = _places(paper, runs, data_dir)
    if render:
        _render(Reproduction(places))
        return
    use_threads(threads)
    reproduction = Reproduction(
        places, choice, budget=seconds_of(budget), workers=workers, again=again
    )
    if dry_run:
        _show_plan(reproduction, tables)
    else:
        _run(reproduction, tables)


def _list_papers() -> None:
    from pslrec.reproduction import Grid, included_papers

    shown = Table(box=None, pad_edge=False)
    for name in ("paper", "tables", "title"):
        shown.add_column(name)
    for name, folder in included_papers().items():
        paper = Grid(folder).paper
        shown.add_row(name, ", ".join(paper.tables), escape(paper.title))
    Console().print(shown)


def _places(paper: str, runs: Path, data_dir: Path | None) -> "Places":
    from pslrec.reproduction import Places, find_paper

    folder = find_paper(paper)
    name = folder.resolve().name
    # A folder that was named by its path belongs to whoever did.
    return Places(folder, runs / name, data_dir, is_own=folder == Path(paper))


def _render(reproduction: "Reproduction") -> None:
    from pslrec.errors import ConfigError

    if not reproduction.writes_page:
        raise ConfigError("`--render` writes the page of a folder; give the folder by its path")
    reproduction.write_pages()
    typer.echo(f"page: {reproduction.places.folder / 'README.md'}", err=True)


def _wanted(reproduction: "Reproduction", tables: Sequence[str] | None) -> list[str]:
    """The tables that were asked for, or all that list what was chosen, and then claims."""
    grid, choice = reproduction.grid, reproduction.choice
    wanted = list(tables or [])
    if not wanted:
        wanted = [table for table in grid.paper.tables if grid.lists(table, choice)]
        wanted.append(CLAIMS)
    for table in wanted:
        if table not in (DATASETS, CLAIMS):
            # Refuses what does not exist before anything runs.
            grid.cells(table, choice)
    return wanted


def _show_plan(reproduction: "Reproduction", tables: Sequence[str] | None) -> None:
    from pslrec.cli._reproduce_progress import plan_table, summarize

    tasks = []
    for table in _wanted(reproduction, tables):
        if table not in (DATASETS, CLAIMS):
            tasks += reproduction.plan(table)
    Console().print(plan_table(tasks))
    summarize(notes_console(), tasks, reproduction)


def _run(reproduction: "Reproduction", tables: Sequence[str] | None) -> None:
    code = 0
    for table in _wanted(reproduction, tables):
        if table == CLAIMS:
            show_tables(reproduction.claims())
        elif table == DATASETS:
            shown, absent = reproduction.datasets()
            show_tables(shown)
            _tell(absent)
        else:
            is_stopped, found = _run_table(reproduction, table)
            code = code or found
            if is_stopped:
                # A stop outranks cells that failed or have no data.
                code = found
                break
    report = reproduction.report()
    if report is not None:
        _tell([f"report: {report}"])
    if code:
        raise typer.Exit(code)


def _run_table(reproduction: "Reproduction", table: str) -> tuple[bool, int]:
    """Run a table and show it; gives whether it was stopped, and an exit code."""
    from pslrec.cli._reproduce_progress import CellsProgress, summarize
    from pslrec.studies import BudgetSpent
    from pslrec.training import TrainingInterrupted

    code, ending = 0, ""
    with CellsProgress(notes_console()) as progress:
        try:
            reproduction.run(table, progress.show)
        except BudgetSpent as stop:
            code, ending = UNFINISHED, str(stop)
        except (TrainingInterrupted, KeyboardInterrupt):
            code, ending = INTERRUPTED, "stopped; repeat the command to resume"
    # Also after a stop: the tables show whatever is finished.
    # Failures are told with `--quiet` as well.
    unfinished = summarize(Console(stderr=True), progress.tasks, reproduction)
    show_tables(reproduction.render(table))
    _tell(reproduction.beside_records(table))
    _tell(f"results: {path}" for path in reproduction.written(table))
    if ending:
        _tell([ending])
    return bool(ending), code or unfinished


def _tell(lines: Iterable[str]) -> None:
    for line in lines:
        typer.echo(line, err=True)


def _listed(text: str | None) -> list[str] | None:
    if text is None:
        return None
    return listed(text)


def _columns(pairs: Iterable[str]) -> dict[str, list[str]]:
    from pslrec.errors import ConfigError

    found = {}
    for pair in pairs:
        name, separator, values = pair.partition("=")
        if not separator:
            raise ConfigError(f"`--where` must be COLUMN=VALUE,..., got `{pair}`")
        found[name.strip()] = listed(values)
    return found


def _either(text: str | None, name: str, allowed: tuple[str, ...]) -> tuple[str, ...] | None:
    from pslrec.errors import ConfigError

    if text is None:
        return None
    if text == "both":
        return allowed
    if text not in allowed:
        raise ConfigError(f"`--{name}` must be {', '.join(allowed)} or both, got `{text}`")
    return (text,)
