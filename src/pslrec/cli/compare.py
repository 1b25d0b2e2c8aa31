"""`pslrec compare`: losses, backbones and baselines, tuned alike and tested for chance."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from pslrec.cli._options import (
    Budget,
    ConfigFile,
    Data,
    Device,
    NoProcesses,
    Preset,
    Protocol,
    Pruner,
    Seed,
    Settings,
    SettingsFor,
    Storage,
    Threads,
    Workers,
    use_threads,
)
from pslrec.cli._parsing import listed, seconds_of
from pslrec.cli._processes import refuse_processes
from pslrec.cli._reading import NO_READING, Reading, takes_reading
from pslrec.cli._settings import configured, parse_settings, settings_by_loss, stem_of
from pslrec.cli._tables import show_tables
from pslrec.cli._telling import tell

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pslrec.config import RunConfig
    from pslrec.reporting import TextTable
    from pslrec.studies import ComparisonPlan

Losses = Annotated[
    str, typer.Option(metavar="NAME,NAME,...", help="Losses; each is trained with every backbone.")
]
Backbones = Annotated[str, typer.Option(metavar="NAME,NAME,...", help="Backbones.")]
Baselines = Annotated[
    str, typer.Option(metavar="NAME,NAME,...", help="Baselines, such as ease,ials.")
]
Seeds = Annotated[
    int, typer.Option(metavar="N", min=1, help="Training seeds of the chosen settings.")
]
Tune = Annotated[
    int,
    typer.Option(metavar="N", min=0, help="Settings to try for each contestant; 0 tunes nothing."),
]
SpaceOption = Annotated[
    str,
    typer.Option(
        "--space",
        metavar="paper|wide",
        help="The values that come with the parts, or wider ranges.",
    ),
]
Metric = Annotated[
    str, typer.Option(metavar="ndcg@20|recall@20", help="What is tuned for and compared by.")
]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="DIRECTORY", help="Where to write. Default: compare-DATA."),
]


@takes_reading
def compare_command(
    data: Data,
    losses: Losses = "bpr,sl,psl-relu",
    backbones: Backbones = "mf",
    baselines: Baselines = "",
    seeds: Seeds = 5,
    tune: Tune = 20,
    space: SpaceOption = "paper",
    pruner: Pruner = "none",
    metric: Metric = "ndcg@20",
    budget: Budget = None,
    workers: Workers = 1,
    processes: NoProcesses = None,
    storage: Storage = None,
    preset: Preset = None,
    settings: Settings = None,
    settings_for: SettingsFor = None,
    protocol: Protocol = None,
    seed: Seed = None,
    config: ConfigFile = None,
    out: Out = None,
    threads: Threads = None,
    device: Device = None,
    reading: Reading = NO_READING,
) -> None:
    """Compare losses, backbones and baselines: tuned alike, several seeds, tested for chance.

    Everything is chosen on validation data. Repeat the command to resume after a stop, or start it
    in several terminals to share the work.
    """
    from pslrec.studies import ComparisonPlan

    refuse_processes(processes, "compare")
    use_threads(threads)
    common = parse_settings(settings)
    names = listed(losses)
    # Settings of a loss go to the losses that take them.
    shared = {name: value for name, value in common.items() if not name.startswith("loss.")}
    plan = ComparisonPlan(
        losses=names,
        backbones=listed(backbones),
        baselines=listed(baselines),
        n_seeds=seeds,
        n_trials=tune,
        space=space,
        metric=metric,
        pruner=pruner,
        options=settings_by_loss(names, common, settings_for or []),
        fixed=list(shared),
    )
    options: dict[str, Any] = {
        "data.source": data,
        "evaluation.protocol": protocol,
        "training.seed": seed,
        "training.device": device,
        **reading.settings(),
    }
    configuration = configured(options, shared, preset=preset, file=config)
    how = {"budget_seconds": seconds_of(budget), "workers": workers, "storage": storage}
    _compare(configuration, plan, out or Path(f"compare-{stem_of(data)}"), **how)


def _compare(
    configuration: "RunConfig", plan: "ComparisonPlan", directory: Path, **how: Any
) -> None:
    from pslrec.cli._study_progress import study_listener
    from pslrec.studies import compare_contestants

    with study_listener() as listener:
        found = compare_contestants(configuration, plan, out=directory, listener=listener, **how)
    console = Console()
    if found is None:
        tell(
            console,
            "the budget is used up, so nothing is compared yet; repeat the command to resume",
        )
        return
    show_tables([_table(found)])
    for line in _verdicts(found):
        tell(console, line)
    for one in found["contestants"]:
        for warning in one["warnings"]:
            tell(console, f"note: {one['name']}: {warning}")
    if plan.n_seeds == 1:
        tell(console, "with one seed you cannot tell differences from chance; try `--seeds 5`")
    tell(console, f"tables, pictures and comparison.html are in {directory}")


def _table(found: "Mapping[str, Any]") -> "TextTable":
    from pslrec.reporting import TextTable, contestant_table

    title = f"{found['data']}: test part, {found['n_users']:,} users, {found['n_seeds']} seeds"
    # The settings would not fit beside the numbers.
    table = contestant_table(found).narrowed(7)
    return TextTable(title, table.columns, table.texts)


def _verdicts(found: "Mapping[str, Any]") -> list[str]:
    """How the best one stands against each of the others."""
    best = found["contestants"][0]["name"]
    lines = []
    for pair in found["pairs"]:
        if pair["first"] == best:
            lines.append(
                f"{best} against {pair['second']}: {pair['verdict']} "
                f"({found['metric']} {pair['difference']:+.4f})"
            )
    return lines
