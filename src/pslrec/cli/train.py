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
from pslrec.cli._reading import NO_READING, Reading, takes_reading
from pslrec.cli._settings import configured, parse_settings, parsed_value
from pslrec.cli._telling import tell

if TYPE_CHECKING:
    from pslrec.config import RunConfig
    from pslrec.experiment import RunResult

# Settings that most people change have flags; --set takes all others.
USUAL = "Usual settings"
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="DIRECTORY",
        help="New directory for the model, metrics, log and checkpoints. Default: save nothing.",
    ),
]
Refit = Annotated[
    bool,
    typer.Option(
        "--refit",
        help="Once the best epoch is known, train again on training and validation data.",
    ),
]
WarmStart = Annotated[
    Path | None,
    typer.Option(metavar="RUN", help="Start from the vectors of a finished run."),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Resume the run in --out from its last checkpoint.")
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print the metrics as JSON on standard output.")
]


Epochs = Annotated[
    str | None,
    typer.Option(metavar="N|auto", help="Passes over the training data.", rich_help_panel=USUAL),
]
Dimension = Annotated[
    int | None, typer.Option(metavar="N", help="Length of the vectors.", rich_help_panel=USUAL)
]
LearningRate = Annotated[
    float | None,
    typer.Option(metavar="RATE", help="Learning rate of Adam.", rich_help_panel=USUAL),
]
KCore = Annotated[
    int | None,
    typer.Option(
        "--k-core",
        metavar="N",
        help="Repeatedly drop users and items with fewer than N interactions.",
        rich_help_panel=USUAL,
    ),
]
Split = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="iid, popularity (shifted), temporal, temporal-per-user or leave-one-out.",
        rich_help_panel=USUAL,
    ),
]


@takes_reading
def train_command(
    data: DataIfAny = None,
    backbone: Backbone = None,
    loss: Loss = None,
    preset: Preset = None,
    settings: Settings = None,
    protocol: Protocol = None,
    seed: Seed = None,
    epochs: Epochs = None,
    dimension: Dimension = None,
    learning_rate: LearningRate = None,
    k_core: KCore = None,
    split: Split = None,
    config: ConfigFile = None,
    out: Out = None,
    refit: Refit = False,
    warm_start: WarmStart = None,
    resume: Resume = False,
    threads: Threads = None,
    as_json: AsJson = False,
    reading: Reading = NO_READING,
) -> None:
    """Train a model, pick its best epoch on validation data and evaluate it on test data."""
    if resume:
        config = _config_to_resume(out, data, config)
    use_threads(threads)
    options = {
        "data.source": data,
        "backbone.name": backbone,
        "loss.name": loss,
        "evaluation.protocol": protocol,
        "training.seed": seed,
        "training.epochs": None if epochs is None else parsed_value(epochs),
        "training.learning_rate": learning_rate,
        "backbone.dimension": dimension,
        "data.k_core": k_core,
        "data.split": split,
        # Without the flag the setting of a file or preset holds, so it is not set to false.
        "training.refit": refit or None,
        "training.warm_start": None if warm_start is None else str(warm_start),
        **reading.settings(),
    }
    configuration = configured(
        options, parse_settings(settings), preset=preset, file=config, is_search=False
    )
    result = _train(configuration, out, resume=resume, threads=threads)
    if as_json:
        typer.echo(json.dumps(result.metrics))
    else:
        _show(result, out)


def _config_to_resume(out: Path | None, data: str | None, config: Path | None) -> Path | None:
    """The file with the settings of the run to resume: the one given, or the run's own."""
    from pslrec.errors import ConfigError
    from pslrec.files import check_regular

    if out is None:
        raise ConfigError("`--resume` needs `--out`, the directory of the run to resume")
    if config is not None:
        return config
    # Until `auto` has chosen, there are only the settings as they were given.
    for name in ("config.toml", "request.toml"):
        own = out / name
        if own.exists():
            check_regular(own, error=ConfigError)
            return own
    # With DATA a new run starts: a script can then use one command for the first attempt and
    # for all that follow.
    if data is None:
        raise ConfigError(f"there is no run in {out} to resume; give DATA to start one")
    return None


def _train(
    configuration: "RunConfig", out: Path | None, *, resume: bool, threads: int | None
) -> "RunResult":
    from pslrec.cli._progress import TrainingProgress
    from pslrec.experiment import run
    from pslrec.training import TrainingInterrupted

    try:
        # On standard error, so that `--json` leaves nothing but JSON on standard output.
        with TrainingProgress(Console(stderr=True)) as progress:
            return run(configuration, out=out, resume=resume, listeners=[progress.listen])
    except TrainingInterrupted as stop:
        if out is None:
            message = "stopped; nothing was saved, as there was no --out"
        else:
            command = f"pslrec train --out {shlex.quote(str(out))} --resume"
            # The settings are in the run directory; the number of threads belongs to the machine.
            if threads is not None:
                command += f" --threads {threads}"
            message = f"{stop}; resume with: {command}"
        typer.echo(message, err=True)
        raise typer.Exit(INTERRUPTED) from None


def _show(result: "RunResult", out: Path | None) -> None:
    from pslrec.cli._results import show_metrics

    console = Console()
    show_metrics(result.metrics, console)
    if out is not None:
        tell(console, f"saved to {out}")
