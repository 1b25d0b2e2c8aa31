"""`pslrec tune`: search for the settings that do best on validation data."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pslrec.cli._options import (
    Backbone,
    Budget,
    ConfigFile,
    DataIfAny,
    Device,
    Loss,
    NoProcesses,
    Preset,
    Protocol,
    Pruner,
    Seed,
    Settings,
    Storage,
    Threads,
    Workers,
    use_threads,
)
from pslrec.cli._parsing import seconds_of
from pslrec.cli._processes import refuse_processes
from pslrec.cli._reading import NO_READING, Reading, takes_reading
from pslrec.cli._settings import configured, parse_settings, stem_of
from pslrec.cli._telling import tell

if TYPE_CHECKING:
    from pslrec.config import RunConfig
    from pslrec.studies import Space, TuningResult

# As many rows as fit a terminal together with the metrics below them.
SHOWN_TRIALS = 10

Grid = Annotated[
    list[str] | None,
    typer.Option(
        "--grid",
        "-g",
        metavar="SECTION.KEY=A,B,...",
        help="Values to try for a setting. Repeatable. Takes the place of --space.",
    ),
]
SpaceOption = Annotated[
    str,
    typer.Option(
        "--space",
        metavar="paper|wide|FILE",
        help="Search space: the loss's own values, ranges around them, or a TOML file.",
    ),
]
Sampler = Annotated[
    str | None,
    typer.Option(
        metavar="grid|random|tpe",
        help="How settings are proposed. Default: tpe for ranges or with --trials, else grid.",
    ),
]
Trials = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Settings to try. Default: 60, or as --budget allows."),
]
Confirm = Annotated[
    int,
    typer.Option(
        "--seeds",
        metavar="N",
        min=1,
        help="Train the two best with so many seeds, and warn if these cannot tell them apart.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="DIRECTORY",
        help="Directory of the study. Default: tune-DATA-BACKBONE-LOSS.",
    ),
]
Metric = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Validation metric to maximise. Default: ndcg@20."),
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
    space: SpaceOption = "paper",
    sampler: Sampler = None,
    pruner: Pruner = "none",
    trials: Trials = None,
    budget: Budget = None,
    seeds: Confirm = 1,
    workers: Workers = 1,
    processes: NoProcesses = None,
    storage: Storage = None,
    preset: Preset = None,
    settings: Settings = None,
    protocol: Protocol = None,
    seed: Seed = None,
    config: ConfigFile = None,
    out: Out = None,
    metric: Metric = None,
    threads: Threads = None,
    device: Device = None,
    as_json: AsJson = False,
    reading: Reading = NO_READING,
) -> None:
    """Search for settings on validation data; only the best ones are evaluated on test data.

    Every trial is a run directory. Repeat the command to resume a search that was stopped, or
    start it in several terminals to share the work.
    """
    from pslrec.cli._study_progress import study_listener
    from pslrec.studies import Effort, tune

    refuse_processes(processes, "tune")
    use_threads(threads)
    fixed = parse_settings(settings)
    options: dict[str, Any] = {
        "data.source": data,
        "backbone.name": backbone,
        "loss.name": loss,
        "evaluation.protocol": protocol,
        "training.seed": seed,
        "training.device": device,
        **reading.settings(),
    }
    configuration = configured(options, fixed, preset=preset, file=config)
    effort = Effort(
        sampler=sampler,
        pruner=pruner,
        trials=trials,
        budget_seconds=seconds_of(budget),
        workers=workers,
    )
    values = chosen_grid(grid, list(fixed)) if grid else chosen_space(space, configuration, fixed)
    directory = out or default_directory(configuration)
    with study_listener() as listener:
        result = tune(
            configuration,
            values,
            out=directory,
            metric=metric,
            effort=effort,
            seeds=seeds,
            storage=storage,
            listener=listener,
        )
    if as_json:
        # The file holds exactly what there is to print.
        typer.echo((directory / "results.json").read_text(encoding="utf-8"), nl=False)
    else:
        show_result(result, Console())


def default_directory(configuration: "RunConfig") -> Path:
    """The directory of a search without `--out`."""
    stem = stem_of(configuration.data.source)
    return Path(f"tune-{stem}-{configuration.backbone.name}-{configuration.loss.name}")


def chosen_space(name: str, configuration: "RunConfig", fixed: Iterable[str]) -> "Space":
    """The space that `--space` names, without the settings that `--set` fixes."""
    from pslrec.errors import ConfigError
    from pslrec.studies import Trained, named_space, read_space

    if name in ("paper", "wide"):
        return named_space(Trained(configuration), name, fixed=list(fixed))
    if not Path(name).is_file():
        raise ConfigError(f"`--space` must be paper, wide or a TOML file, got `{name}`")
    space = read_space(Path(name))
    return {key: values for key, values in space.items() if key not in fixed}


def chosen_grid(texts: list[str], fixed: list[str]) -> dict[str, list[Any]]:
    """The grid of the command line."""
    from pslrec.errors import ConfigError

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
    """Print the best trials, the test metrics of the best one, and where everything is."""
    from pslrec.cli._results import show_metrics
    from pslrec.reporting import settings_in_words

    console.print(_table(result))
    states = [trial.state for trial in result.trials]
    n_hidden = len(states) - SHOWN_TRIALS
    n_failed = states.count("failed")
    if n_hidden > 0:
        tell(console, f"and {n_hidden} more in {result.directory / 'results.csv'}")
    if n_failed:
        tell(console, f"{n_failed} of {len(states)} trials diverged; results.csv says why")
    # Choosing among the trials that happen to be finished would favour the cheap ones.
    if not result.is_complete:
        n_done = sum(trial.is_over for trial in result.trials)
        tell(
            console,
            f"the budget is used up with {n_done} of {len(states)} trials finished, "
            "so nothing is chosen yet; repeat the command to resume",
        )
        return
    best = result.best
    # `tune` raises if a complete search has no finished trial.
    assert best is not None
    settings = settings_in_words(best.settings)
    console.print(
        Text.assemble("\n", (f"best: {settings}", "bold"), ", chosen on validation"),
        soft_wrap=True,
    )
    show_metrics(result.metrics, console)
    for warning in result.warnings:
        tell(console, f"note: {warning}")
    tell(console, f"train it again with: pslrec train --config {result.directory / 'best.toml'}")


def _table(result: "TuningResult") -> Table:
    table = Table(box=None, pad_edge=False)
    for name in result.space:
        table.add_column(name.rpartition(".")[2], justify="right")
    for heading in (f"validation {result.metric}", "epoch", "of", ""):
        table.add_column(heading, justify="right")
    for trial in result.trials[:SHOWN_TRIALS]:
        cells = [str(trial.settings[name]) for name in result.space]
        value = trial.found.get("validation", {}).get(result.metric)
        cells.append("" if value is None else f"{value:.4f}")
        cells.append(str(trial.found.get("best_epoch", "")))
        cells.append(str(trial.found.get("trained_epochs", "")))
        # The last column says what is unusual; "finished" in every row would hide it.
        cells.append("" if trial.state == "finished" else trial.state)
        table.add_row(*cells)
    return table
