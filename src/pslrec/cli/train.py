"""`pslrec train`: any loss on any backbone on any data."""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from rich.console import Console

from pslrec.cli._ending import INTERRUPTED
from pslrec.cli._options import (
    Backbone,
    ConfigFile,
    DataIfAny,
    Device,
    Loss,
    NumberOfProcesses,
    Preset,
    Protocol,
    Restarts,
    Seed,
    Settings,
    ShardItems,
    Threads,
    Timeout,
    use_threads,
)
from pslrec.cli._processes import is_restarted, is_told_here, joined, start_workers
from pslrec.cli._reading import NO_READING, Reading, takes_reading
from pslrec.cli._rule_options import ItemTableEncoding, NewItemTable, table_file
from pslrec.cli._settings import configured, parse_settings, parsed_value
from pslrec.cli._telling import notes_console, tell

if TYPE_CHECKING:
    from pslrec.config import RunConfig
    from pslrec.data.items import TableFile
    from pslrec.distributed import Group
    from pslrec.experiment import RunResult

# Settings that most people change have flags; --set takes all others.
USUAL = "Usual settings"
DEFAULT_TIMEOUT = 600.0
# A second or two of ranking at the end of a training.
MOST_SCORES_OF_BASELINE = 2e9
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
    typer.Option(
        metavar="N|auto",
        help="Passes over the training data at most. Default: found by --preset auto.",
        rich_help_panel=USUAL,
    ),
]
Dimension = Annotated[
    int | None,
    typer.Option(metavar="N", help="Length of the vectors. Default: 64.", rich_help_panel=USUAL),
]
LearningRate = Annotated[
    float | None,
    typer.Option(
        metavar="RATE",
        help="Learning rate of Adam. Default: found by --preset auto.",
        rich_help_panel=USUAL,
    ),
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
        help="iid, popularity (shifted), temporal, temporal-per-user or leave-one-out, by which a "
        "test part is held out of a log; none trains on everything. Default: iid.",
        rich_help_panel=USUAL,
    ),
]


@takes_reading
def train_command(
    context: typer.Context,
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
    item_table: NewItemTable = None,
    item_table_encoding: ItemTableEncoding = None,
    resume: Resume = False,
    threads: Threads = None,
    device: Device = None,
    processes: NumberOfProcesses = None,
    shard_items: ShardItems = False,
    timeout: Timeout = DEFAULT_TIMEOUT,
    restarts: Restarts = 3,
    as_json: AsJson = False,
    reading: Reading = NO_READING,
) -> None:
    """Train a model, pick its best epoch on validation data and evaluate it on test data."""
    from pslrec.errors import ConfigError

    if item_table is not None and out is None:
        raise ConfigError("`--item-table` is saved with the model, so it needs `--out DIRECTORY`")
    titles = table_file(item_table, item_table_encoding)
    if out is None:
        # There is no checkpoint to start again from.
        restarts = 0
    start_workers(processes, threads=threads, restarts=restarts)
    with joined(timeout) as group:
        # A worker that was started again after a failure finds a run, if it came that far.
        resume = resume or (out is not None and is_restarted())
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
            "training.device": device,
            **reading.settings(),
        }
        configuration = configured(
            options, parse_settings(settings), preset=preset, file=config, is_search=False
        )
        # `--import` is an option of the program, not of this command.
        modules = context.find_root().params["modules"] or ()
        again = _Again(modules, threads, group.size, shard_items, timeout, as_json)
        result = _train(configuration, out, titles, resume=resume, group=group, again=again)
    if not group.is_first:
        return
    if as_json:
        typer.echo(json.dumps(result.metrics))
    else:
        _show(result, out)


class _Again(NamedTuple):
    """Options that a run directory does not keep, since they belong to the machine or the call."""

    modules: Sequence[str]
    threads: int | None
    processes: int
    shard_items: bool
    timeout: float
    as_json: bool

    def typed(self) -> list[str]:
        """The options as they have to be typed again."""
        options = []
        for module in self.modules:
            options += ["--import", module]
        if self.threads is not None:
            options += ["--threads", str(self.threads)]
        if self.processes > 1:
            options += ["--processes", str(self.processes)]
        if self.shard_items:
            options.append("--shard-items")
        if self.timeout != DEFAULT_TIMEOUT:
            options += ["--timeout", f"{self.timeout:g}"]
        if self.as_json:
            options.append("--json")
        return options


def _config_to_resume(out: Path | None, data: str | None, config: Path | None) -> Path | None:
    """The file with the settings of the run to resume: the one given, or the run's own."""
    from pslrec.errors import ConfigError
    from pslrec.files import check_regular, is_address, shown_address

    if out is None:
        raise ConfigError("`--resume` needs `--out`, the directory of the run to resume")
    if config is not None:
        return config
    own = _stored_settings(out)
    if own is not None:
        check_regular(own, error=ConfigError)
        return own
    # With DATA a new run starts: a script can then use one command for the first attempt and
    # for all that follow.
    if data is None and is_address(out):
        raise ConfigError(
            f"`--resume` of a run at an address needs DATA as well, or `--config`, "
            f"got `--out` {shown_address(out)}"
        )
    if data is None:
        raise ConfigError(f"there is no run in {out} to resume; give DATA to start one")
    # A slip in the name would cost a whole training.
    notes = notes_console(is_silent=not is_told_here())
    tell(
        notes, f"there is no run in {shown_address(out)} yet, so this one starts from the beginning"
    )
    return None


def _train(
    configuration: "RunConfig",
    out: Path | None,
    item_table: "TableFile | None",
    *,
    resume: bool,
    group: "Group",
    again: _Again,
) -> "RunResult":
    from pslrec.cli._progress import TrainingProgress
    from pslrec.experiment import run
    from pslrec.training import TrainingInterrupted

    try:
        with TrainingProgress(notes_console(is_silent=not group.is_first)) as progress:
            return run(
                configuration,
                out=out,
                resume=resume,
                listeners=[progress.listen],
                item_table=item_table,
                group=group,
                shard_items=again.shard_items,
            )
    except TrainingInterrupted as stop:
        reason = str(stop)
    except KeyboardInterrupt:
        # Outside of a training: between two of `auto`, before the first one, or while walks are chosen.
        reason = "stopped"
    if group.is_first:
        typer.echo(_how_to_resume(reason, out, again), err=True)
    raise typer.Exit(INTERRUPTED)


def _how_to_resume(reason: str, out: Path | None, again: _Again) -> str:
    if out is None:
        return "stopped; nothing was saved, as there was no --out"
    if _stored_settings(out) is None:
        return f"{reason}; nothing was saved yet"
    # All settings are in the run directory.
    command = ["pslrec", "train", "--out", str(out), "--resume", *again.typed()]
    return f"{reason}; resume with: {shlex.join(command)}"


def _stored_settings(out: Path) -> Path | None:
    """The file with the settings of the run in a directory, if there is one."""
    # Until `auto` has chosen, there are only the settings as they were given.
    for name in ("config.toml", "request.toml"):
        if (out / name).exists():
            return out / name
    return None


def _tell_popularity(result: "RunResult", console: Console) -> None:
    """What the same list for everybody has, so that a newcomer can tell whether a number is good."""
    dataset = result.dataset
    if not len(dataset.test) or dataset.n_users * dataset.n_items > MOST_SCORES_OF_BASELINE:
        return
    tell(
        console,
        "for comparison, the most popular items for everybody: NDCG@20 "
        f"{result.popularity():.4f} (this model: {result.metrics['test']['ndcg@20']:.4f})",
    )


def _show(result: "RunResult", out: Path | None) -> None:
    from pslrec.cli._results import show_metrics
    from pslrec.files import shown_address

    console = Console()
    show_metrics(result.metrics, console)
    _tell_popularity(result, console)
    if out is None:
        return
    n_held_out = len(result.dataset.test) + result.dataset.n_left_out
    if result.dataset.divided_by and n_held_out:
        refit = " --refit" if result.dataset.validation is not None else ""
        tell(
            console,
            f"{n_held_out:,} interactions were held out of training, so the model may "
            f"recommend them; for one to use, train on everything: --split none{refit}",
        )
    tell(console, f"saved to {shown_address(out)}")
