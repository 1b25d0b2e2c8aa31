"""`pslrec stress`: how robust losses are to popularity shift and false negatives, on any data."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from pslrec.cli._options import (
    Backbone,
    ConfigFile,
    Data,
    Device,
    NoProcesses,
    Preset,
    Settings,
    SettingsFor,
    Storage,
    Threads,
    Workers,
    use_threads,
)
from pslrec.cli._parsing import listed, numbers, whole_numbers
from pslrec.cli._processes import refuse_processes
from pslrec.cli._reading import NO_READING, Reading, takes_reading
from pslrec.cli._settings import configured, parse_settings, settings_by_loss, stem_of
from pslrec.cli._tables import show_tables
from pslrec.cli._telling import tell

if TYPE_CHECKING:
    from pslrec.config import RunConfig
    from pslrec.studies import StressPlan

MODES = ("catalog", "sampled")

Losses = Annotated[
    str,
    typer.Option(metavar="NAME,NAME,...", help="Losses to compare; the first is the reference."),
]
Mode = Annotated[
    str,
    typer.Option(
        metavar="catalog|sampled",
        help="Negatives: the whole catalogue, or the loss's default number of sampled ones.",
    ),
]
Noise = Annotated[
    str,
    typer.Option(metavar="P,P,...", help='Probabilities of a false negative; "" skips this test.'),
]
Shift = Annotated[
    str,
    typer.Option(metavar="S,S,...", help='Strengths of popularity shift; "" skips this test.'),
]
Seeds = Annotated[
    str, typer.Option(metavar="N,N,...", help="Training seeds, such as 2024,2025,2026.")
]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="DIRECTORY", help="Where to write. Default: stress-DATA."),
]


@takes_reading
def stress_command(
    data: Data,
    losses: Losses = "sl,psl-relu",
    mode: Mode = "catalog",
    backbone: Backbone = None,
    preset: Preset = None,
    noise: Noise = "0.05,0.1,0.2,0.3,0.5",
    shift: Shift = "0,0.5,1",
    seeds: Seeds = "2024",
    settings: Settings = None,
    settings_for: SettingsFor = None,
    config: ConfigFile = None,
    out: Out = None,
    workers: Workers = 1,
    processes: NoProcesses = None,
    storage: Storage = None,
    threads: Threads = None,
    device: Device = None,
    reading: Reading = NO_READING,
) -> None:
    """Compare how losses hold up under popularity shift and false negatives.

    Every point of the curves is a run of its own. Repeat the command to resume after a stop.
    """
    from pslrec.studies import StressPlan

    refuse_processes(processes, "stress")
    use_threads(threads)
    names = listed(losses)
    common = parse_settings(settings)
    plan = StressPlan(
        losses=names,
        noise=numbers(noise, "noise"),
        shift=numbers(shift, "shift"),
        seeds=whole_numbers(seeds, "seeds"),
        options=_settings_of_losses(names, mode, common, settings_for or []),
    )
    # A setting such as loss.temperature goes to the losses that take it (see `plan`); checked for
    # all of them here, it would be refused where the default loss does not know it.
    shared = {name: value for name, value in common.items() if not name.startswith("loss.")}
    options = {
        "data.source": data,
        "backbone.name": backbone,
        "sampling.negatives": "catalog" if mode == "catalog" else None,
        "training.device": device,
        **reading.settings(),
    }
    configuration = configured(options, shared, preset=preset, file=config)
    directory = out or Path(f"stress-{stem_of(data)}")
    how = {"workers": workers, "storage": storage}
    _stress(configuration, plan, directory, name=stem_of(data), **how)


def _stress(
    configuration: "RunConfig", plan: "StressPlan", directory: Path, *, name: str, **how: Any
) -> None:
    from pslrec.cli._study_progress import study_listener
    from pslrec.reporting import stress_tables
    from pslrec.studies import stress, summarize, write_stress

    with study_listener() as listener:
        runs = stress(configuration, plan, out=directory, listener=listener, **how)
    base = plan.losses[0]
    write_stress(runs, directory, base=base, name=name)
    show_tables(stress_tables(summarize(runs, base), base).values())
    if len(plan.seeds) == 1:
        tell(
            Console(),
            "with one seed you cannot tell gains from chance; try `--seeds 2024,2025,2026`",
        )
    tell(Console(), f"curves, tables and stress.html are in {directory}")


def _settings_of_losses(
    losses: list[str], mode: str, common: dict[str, Any], texts: list[str]
) -> dict[str, dict[str, Any]]:
    """The settings of each loss: the common ones that it takes, overridden by its own."""
    from pslrec.errors import ConfigError
    from pslrec.losses import LOSSES

    if mode not in MODES:
        raise ConfigError(f"`--mode` must be one of {', '.join(MODES)}, got {mode!r}")
    options = settings_by_loss(losses, common, texts)
    # Left unset, the negatives would be those of the strict protocol: the whole catalogue.
    if mode == "sampled" and "sampling.negatives" not in common:
        return {
            loss: {"sampling.negatives": LOSSES[loss].default_negatives, **own}
            for loss, own in options.items()
        }
    return options
