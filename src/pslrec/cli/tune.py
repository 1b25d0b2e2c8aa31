"""`pslrec tune`: search for the settings that do best on validation data."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pslrec.cli._ending import saved_when_stopped
from pslrec.cli._options import (
    Backbone,
    Budget,
    ConfigFile,
    DataIfAny,
    Loss,
    Preset,
    Protocol,
    Seed,
    Settings,
    Threads,
    use_threads,
)
from pslrec.cli._parsing import seconds_of
from pslrec.cli._reading import NO_READING, Reading, takes_reading
from pslrec.cli._settings import configured, parse_settings, stem_of
from pslrec.cli._telling import tell

if TYPE_CHECKING:
    from pslrec.config import RunConfig
    from pslrec.tuning import TuningResult

# As many rows as fit a terminal together with the metrics below them.
SHOWN_CELLS = 10

Grid = Annotated[
    list[str] | None,
    typer.Option(
        "--grid",
        "-g",
        metavar="SECTION.KEY=A,B,...",
        help="Values to try for a setting. Repeatable. Default: the loss's own search space.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="DIRECTORY",
        help="Directory of the search. Default: tune-DATA-BACKBONE-LOSS.",
    ),
]
Metric = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Validation metric to maximise. Default: ndcg@20."),
]
Halving = Annotated[
    bool, typer.Option("--halving", help="Stop hopeless cells early, by successive halving.")
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON on standard output.")
]


@takes_reading
def tune_command(
    data: DataIfAny = None,
    loss: Loss = None,
    backbone: Backbone = None,
    grid: Grid = None,
    preset: Preset = None,
    settings: Settings = None,
    protocol: Protocol = None,
    seed: Seed = None,
    config: ConfigFile = None,
    out: Out = None,
    metric: Metric = None,
    halving: Halving = False,
    budget: Budget = None,
    threads: Threads = None,
    as_json: AsJson = False,
    reading: Reading = NO_READING,
) -> None:
    """Search a grid of settings on validation data; only the best cell is evaluated on test data.

    Every cell is a run directory. Repeat the command to resume a search that was stopped, or
    start it in several terminals to share the work.
    """
    use_threads(threads)
    fixed = parse_settings(settings)
    options: dict[str, Any] = {
        "data.source": data,
        "backbone.name": backbone,
        "loss.name": loss,
        "evaluation.protocol": protocol,
        "training.seed": seed,
        **reading.settings(),
    }
    configuration = configured(options, fixed, preset=preset, file=config)
    values = chosen_grid(grid or [], configuration, list(fixed))
    directory = out or default_directory(configuration)
    how = {"metric": metric, "halving": halving, "budget_seconds": seconds_of(budget)}
    result = _search(configuration, values, directory, **how)
    if as_json:
        # The file holds exactly what there is to print.
        typer.echo((directory / "results.json").read_text(encoding="utf-8"), nl=False)
    else:
        show_result(result, Console())


def _search(
    configuration: "RunConfig", grid: dict[str, list[Any]], directory: Path, **how: Any
) -> "TuningResult":
    from pslrec.cli._tuning_progress import TuningProgress
    from pslrec.tuning import tune

    with saved_when_stopped(), TuningProgress(Console(stderr=True)) as progress:
        return tune(configuration, grid, out=directory, listener=progress.listen, **how)


def default_directory(configuration: "RunConfig") -> Path:
    """The directory of a search without `--out`."""
    stem = stem_of(configuration.data.source)
    return Path(f"tune-{stem}-{configuration.backbone.name}-{configuration.loss.name}")


def chosen_grid(
    texts: list[str], configuration: "RunConfig", fixed: list[str]
) -> dict[str, list[Any]]:
    """The grid of the command line, or the loss's own without the settings that `--set` fixes."""
    from pslrec.errors import ConfigError
    from pslrec.tuning import default_grid

    if not texts:
        own = default_grid(configuration, fixed=fixed)
        return {name: list(values) for name, values in own.items()}
    grid: dict[str, list[Any]] = {}
    for text in texts:
        name, separator, values = text.partition("=")
        name = name.strip()
        if not separator or not name or not values.strip():
            raise ConfigError(
                "`--grid` must be SECTION.KEY=VALUE,VALUE, such as loss.temperature=0.1,0.2, "
                f"got `{text}`"
            )
        # Which of the two is meant cannot be known, so neither silently wins.
        if name in fixed or name in grid:
            raise ConfigError(f"`{name}` is given twice; give all of its values in one `--grid`")
        grid[name] = []
        for value in values.split(","):
            # Read as `--set` would read it, so that both know the same numbers and texts.
            parsed = parse_settings([f"{name}={value.strip()}"])
            grid[name].append(parsed[name])
    return grid


def show_result(result: "TuningResult", console: Console) -> None:
    """Print the best cells, the test metrics of the best one, and where everything is."""
    from pslrec.cli._results import show_metrics

    console.print(_table(result))
    states = [cell.state for cell in result.cells]
    n_hidden = len(result.cells) - SHOWN_CELLS
    n_failed = states.count("failed")
    if n_hidden > 0:
        tell(console, f"and {n_hidden} more in {result.directory / 'results.csv'}")
    if n_failed:
        tell(console, f"{n_failed} of {len(result.cells)} cells diverged; results.csv says why")
    # Choosing among the cells that happen to be finished would favour the cheap ones.
    if not result.is_complete:
        n_done = states.count("finished") + n_failed
        tell(
            console,
            f"the budget is used up with {n_done} of {len(result.cells)} cells finished, "
            "so nothing is chosen yet; repeat the command to resume",
        )
        return
    best = result.best
    # `tune` raises if a complete search has no finished cell.
    assert best is not None
    console.print(
        Text.assemble("\n", (f"best: {best.cell.described()}", "bold"), ", chosen on validation"),
        soft_wrap=True,
    )
    show_metrics(result.metrics, console)
    # The optimum may lie outside of the grid, which a table of the best cells does not show.
    for name in result.at_the_edge():
        value = best.cell.settings[name]
        tell(console, f"`{name}` = {value} is at the edge of its grid; try values beyond it")
    tell(console, f"train it again with: pslrec train --config {result.directory / 'best.toml'}")


def _table(result: "TuningResult") -> Table:
    table = Table(box=None, pad_edge=False)
    names = list(result.cells[0].cell.settings)
    for name in names:
        table.add_column(name.rpartition(".")[2], justify="right")
    for heading in (f"validation {result.metric}", "epoch", "of", ""):
        table.add_column(heading, justify="right")
    for outcome in result.cells[:SHOWN_CELLS]:
        cells = [str(outcome.cell.settings[name]) for name in names]
        value = outcome.value(result.metric)
        cells.append("" if value is None else f"{value:.4f}")
        cells.append(str(outcome.found.get("best_epoch", "")))
        cells.append(str(outcome.epochs or ""))
        # The last column says what is unusual; "finished" in every row would hide it.
        cells.append("" if outcome.state == "finished" else outcome.state)
        table.add_row(*cells)
    return table
