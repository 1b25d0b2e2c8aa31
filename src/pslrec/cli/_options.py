"""Options that several commands take, declared once."""

from pathlib import Path
from typing import Annotated

import typer

DATA_HELP = (
    "A file, a directory or zip with train and test parts, or the name of a data set: debian, "
    "synthetic, or one that `pslrec data fetch` lists."
)
Data = Annotated[str, typer.Argument(metavar="DATA", help=DATA_HELP)]
DataIfAny = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA",
        help=f"{DATA_HELP} Default: that of --config, otherwise debian.",
        show_default=False,
    ),
]
FinishedRun = Annotated[Path, typer.Argument(metavar="RUN", help="Directory of a finished run.")]
Backbone = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="mf, lightgcn, xsimgcl, ...; see `pslrec backbones`."),
]
Loss = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="psl-relu, sl, bpr, ...; see `pslrec losses`."),
]
Preset = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="auto finds settings by rules and a short race on validation data, best the dimension "
        "as well; fast goes by rules alone; paper and fixed have fixed settings. Explicit options "
        "override it. Default: auto.",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "-s",
        metavar="SECTION.KEY=VALUE",
        help="Any setting, such as loss.temperature=0.1. Repeatable.",
    ),
]
SettingsFor = Annotated[
    list[str] | None,
    typer.Option(
        "--for", metavar="LOSS:SECTION.KEY=VALUE", help="A setting for one loss only. Repeatable."
    ),
]
Protocol = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Evaluation protocol: strict, or paper to compare with published numbers.",
    ),
]
Seed = Annotated[
    int | None, typer.Option(metavar="N", help="Seed for everything random in training.")
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="TOML file with settings, such as RUN/config.toml. Explicit options override it.",
    ),
]
Budget = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Stop after about this time, such as 90min or 2h. Repeat the command to resume.",
    ),
]
Pruner = Annotated[
    str,
    typer.Option(
        metavar="none|median|hyperband|halving",
        help="Give up trials whose validation curve is behind.",
    ),
]
Workers = Annotated[
    int,
    typer.Option(
        metavar="N", min=1, help="Processes that share the runs, each with its share of threads."
    ),
]
Storage = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Database that keeps the books, such as postgresql://host/name. "
        "Default: a file in the directory.",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Number of processor threads. Default: torch decides."),
]
ACROSS = "Several processes"
NumberOfProcesses = Annotated[
    int | None,
    typer.Option(
        "--processes",
        metavar="N",
        min=1,
        help="Work in N processes on this machine, started by torchrun.",
        rich_help_panel=ACROSS,
    ),
]
# Taken so that it can be refused with a better answer than that there is no such option.
NoProcesses = Annotated[int | None, typer.Option("--processes", metavar="N", hidden=True)]
ShardItems = Annotated[
    bool,
    typer.Option(
        "--shard-items",
        help="Divide the item table among the processes, too.",
        rich_help_panel=ACROSS,
    ),
]
Timeout = Annotated[
    float,
    typer.Option(
        metavar="SECONDS",
        help="Give up a process that does not answer for this long.",
        rich_help_panel=ACROSS,
    ),
]
Restarts = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=0,
        help="With --processes and --out: how often all processes start again from the last "
        "checkpoint after one was lost.",
        rich_help_panel=ACROSS,
    ),
]

Device = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Where to train: cpu, cuda, cuda:1, mps, or auto for the first there is. Default: cpu.",
    ),
]


def use_threads(n_threads: int | None) -> None:
    """Compute with this many threads; `None` leaves the number to torch."""
    if n_threads is not None:
        # Imported here so that help pages do not wait for torch.
        import torch

        torch.set_num_threads(n_threads)
