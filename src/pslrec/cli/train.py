"""`pslrec train`: any loss on any backbone on any data."""

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from pslrec.cli._ending import INTERRUPTED
from pslrec.cli._options import (
    Backbone,
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
from pslrec.cli._settings import configured, parse_settings
from pslrec.cli._telling import tell

if TYPE_CHECKING:
    from pslrec.config import RunConfig
    from pslrec.experiment import RunResult

Out = Annotated[
    Path | None, typer.Option("--out", "-o", help="Directory for everything the run leaves behind.")
]
Refit = Annotated[
    bool,
    typer.Option(
        "--refit", help="Train again on training and validation data once the epoch is chosen."
    ),
]
WarmStart = Annotated[
    Path | None,
    typer.Option(metavar="RUN", help="Start from the users and items of a finished run."),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print the metrics as JSON on standard output.")
]


def train_command(
    data: DataIfAny = None,
    backbone: Backbone = None,
    loss: Loss = None,
    preset: Preset = None,
    settings: Settings = None,
    protocol: Protocol = None,
    seed: Seed = None,
    config: ConfigFile = None,
    out: Out = None,
    refit: Refit = False,
    warm_start: WarmStart = None,
    resume: Resume = False,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Train a model, choose its epoch on validation data, and judge it on the test data."""
    if resume:
        config = _config_to_resume(out, data, config)
    use_threads(threads)
    options = {
        "data.source": data,
        "backbone.name": backbone,
        "loss.name": loss,
        "evaluation.protocol": protocol,
        "training.seed": seed,
        "training.refit": refit or None,
        "training.warm_start": None if warm_start is None else str(warm_start),
    }
    configuration = configured(options, parse_settings(settings), preset=preset, file=config)
    result = _train(configuration, out, resume=resume, threads=threads)
    if as_json:
        typer.echo(json.dumps(result.metrics))
    else:
        _show(result, out)


def _config_to_resume(out: Path | None, data: str | None, config: Path | None) -> Path | None:
    """The file with the settings of a run that goes on: the one given, or the run's own."""
    from pslrec.errors import ConfigError
    from pslrec.files import check_regular

    if out is None:
        raise ConfigError("--resume needs --out, the directory of the run to go on with")
    if config is not None:
        return config
    own = out / "config.toml"
    if own.exists():
        check_regular(own, error=ConfigError)
        return own
    if data is None:
        raise ConfigError(f"there is no run in {out} to go on with; give DATA to begin one")
    return None


def _train(
    configuration: "RunConfig", out: Path | None, *, resume: bool, threads: int | None
) -> "RunResult":
    from pslrec.cli._progress import TrainingProgress
    from pslrec.experiment import run
    from pslrec.training import TrainingInterrupted

    try:
        with TrainingProgress(Console(stderr=True)) as progress:
            return run(configuration, out=out, resume=resume, listeners=[progress.listen])
    except TrainingInterrupted as stop:
        machine = "" if threads is None else f" --threads {threads}"
        message = (
            f"{stop}; go on with: pslrec train --out {shlex.quote(str(out))} --resume{machine}"
        )
        typer.echo("stopped; without --out nothing was saved" if out is None else message, err=True)
        raise typer.Exit(INTERRUPTED) from None


def _show(result: "RunResult", out: Path | None) -> None:
    from pslrec.cli._results import show_metrics

    console = Console()
    show_metrics(result.metrics, console)
    if out is not None:
        tell(console, f"everything is in {out}")
