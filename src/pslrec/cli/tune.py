"""`pslrec tune`: settings chosen on validation, by trying them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from pslrec.cli.reproduce import seconds_of
from pslrec.cli.train import SetOption, base_configuration, parse_settings

if TYPE_CHECKING:
    from pslrec.config import RunConfig
    from pslrec.tuning import TuningResult

INTERRUPTED = 130
SHOWN_CELLS = 10

GridOption = Annotated[
    list[str] | None,
    typer.Option(
        "--grid",
        "-g",
        metavar="SECTION.KEY=A,B,...",
        help="Values to try for a setting; repeatable. Without any: the loss's own search space.",
    ),
]


def tune_command(
    data: Annotated[str | None, typer.Argument(metavar="DATA", help="A file, directory, zip, or name.")] = None,
    loss: Annotated[str | None, typer.Option(help="psl-relu, sl, bpr, ...; see `pslrec losses`.")] = None,
    backbone: Annotated[str | None, typer.Option(help="mf, lightgcn, xsimgcl; see `pslrec backbones`.")] = None,
    grid: GridOption = None,
    preset: Annotated[
        str | None, typer.Option(help="Settings that belong together, such as fast; see `train`.")
    ] = None,
    settings: SetOption = None,
    protocol: Annotated[str | None, typer.Option(help="strict, or paper to compare with published numbers.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of everything random in training.")] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file with settings for all cells.")] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Directory of the search; tune-DATA-BACKBONE-LOSS if not given."),
    ] = None,
    metric: Annotated[str | None, typer.Option(help="What to choose by, on validation; ndcg@20.")] = None,
    halving: Annotated[
        bool, typer.Option("--halving", help="Leave hopeless cells early, by successive halving.")
    ] = False,
    budget: Annotated[
        str | None, typer.Option(metavar="TIME", help="Stop after about that time, such as 30m or 2h; go on later.")
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Processor threads to use.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output.")] = False,
) -> None:
    """Search a grid of settings: chosen on validation, the test part opened for the chosen cell alone.

    Every cell is a run directory. Repeat the command to go on with a search that was stopped, or run it twice to share the work.
    """
    import torch

    from pslrec.cli.tuning_progress import TuningProgress
    from pslrec.config import preset_settings
    from pslrec.training import TrainingInterrupted
    from pslrec.tuning import tune

    if threads is not None:
        torch.set_num_threads(threads)
    given = {
        "data.source": data,
        "backbone.name": backbone,
        "loss.name": loss,
        "evaluation.protocol": protocol,
        "training.seed": seed,
    }
    fixed = parse_settings(settings or [])
    chosen = {name: value for name, value in given.items() if value is not None} | fixed
    if preset is not None:
        chosen = preset_settings(preset, loss=chosen.get("loss.name")) | chosen
    configuration = base_configuration(chosen, config)
    values = chosen_grid(grid or [], configuration, list(fixed))
    directory = out or default_directory(configuration)
    try:
        with TuningProgress(Console(stderr=True)) as progress:
            result = tune(
                configuration,
                values,
                out=directory,
                metric=metric,
                halving=halving,
                budget_seconds=None if budget is None else seconds_of(budget),
                listener=progress.listen,
            )
    except TrainingInterrupted:
        typer.echo("stopped; all of it is saved, and the same command goes on", err=True)
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        typer.echo((directory / "results.json").read_text(encoding="utf-8"), nl=False)
        return
    show_result(result, Console())


def default_directory(configuration: "RunConfig") -> Path:
    """Where a search goes that was not told."""
    stem = Path(configuration.data.source).name.partition(".")[0]
    return Path(f"tune-{stem}-{configuration.backbone.name}-{configuration.loss.name}")


def chosen_grid(texts: list[str], configuration: "RunConfig", fixed: list[str]) -> dict[str, list[Any]]:
    """The grid given on the command line, or the loss's own without the settings that are fixed."""
    from pslrec.errors import ConfigError
    from pslrec.tuning import default_grid

    if not texts:
        return {name: list(values) for name, values in default_grid(configuration, fixed=fixed).items()}
    grid: dict[str, list[Any]] = {}
    for text in texts:
        name, separator, values = text.partition("=")
        name = name.strip()
        if not separator or not name or not values.strip():
            raise ConfigError(f"`--grid {text}` is not SECTION.KEY=VALUE,VALUE,...")
        if name in fixed or name in grid:
            raise ConfigError(f"`{name}` is given twice; give its values in one `--grid`")
        grid[name] = [parse_settings([f"{name}={value.strip()}"])[name] for value in values.split(",")]
    return grid


def show_result(result: "TuningResult", console: Console) -> None:
    """Print the best cells, what the best one reaches on the test part, and where everything is."""
    from pslrec.cli.results import show_metrics

    console.print(_table(result))
    n_hidden, n_failed = len(result.cells) - SHOWN_CELLS, sum(cell.state == "failed" for cell in result.cells)
    if n_hidden > 0:
        console.print(f"and {n_hidden} more in {result.directory / 'results.csv'}", highlight=False, soft_wrap=True)
    if n_failed:
        console.print(f"{n_failed} of {len(result.cells)} cells diverged; why is in results.csv", highlight=False)
    if not result.is_complete:
        n_done = sum(cell.state in ("finished", "failed") for cell in result.cells)
        console.print(
            f"the budget is used up with {n_done} of {len(result.cells)} cells finished, so nothing is chosen yet; "
            "the same command goes on",
            highlight=False,
            soft_wrap=True,
        )
        return
    best = result.best
    assert best is not None
    console.print(f"\n[bold]best: {best.cell.described()}[/], chosen on validation", highlight=False, soft_wrap=True)
    show_metrics(result.metrics, console)
    for name in result.at_the_edge():
        value = best.cell.settings[name]
        console.print(f"`{name}` = {value} is at the edge of its grid; there may be better beyond", highlight=False)
    console.print(
        f"train it again with: pslrec train --config {result.directory / 'best.toml'}", highlight=False, soft_wrap=True
    )


def _table(result: "TuningResult") -> Table:
    table = Table(box=None, pad_edge=False)
    names = list(result.cells[0].cell.settings)
    for name in names:
        table.add_column(name.rpartition(".")[2], justify="right")
    for heading in (f"validation {result.metric}", "epoch", "of", ""):
        table.add_column(heading, justify="right")
    for outcome in result.cells[:SHOWN_CELLS]:
        value = outcome.value(result.metric)
        table.add_row(
            *(str(outcome.cell.settings[name]) for name in names),
            "" if value is None else f"{value:.4f}",
            str(outcome.found.get("best_epoch", "")),
            str(outcome.epochs or ""),
            "" if outcome.state == "finished" else outcome.state,
        )
    return table
