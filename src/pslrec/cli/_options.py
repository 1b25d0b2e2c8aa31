"""Options that several commands take, declared once."""

from pathlib import Path
from typing import Annotated

import typer

DATA_HELP = "A file, directory, zip, or name; see `pslrec data describe`."
Data = Annotated[str, typer.Argument(metavar="DATA", help=DATA_HELP)]
DataIfAny = Annotated[str | None, typer.Argument(metavar="DATA", help=DATA_HELP)]
FinishedRun = Annotated[Path, typer.Argument(metavar="RUN", help="Directory of a finished run.")]
Backbone = Annotated[
    str | None, typer.Option(help="mf, lightgcn, xsimgcl; see `pslrec backbones`.")
]
Loss = Annotated[str | None, typer.Option(help="psl-relu, sl, bpr, ...; see `pslrec losses`.")]
Preset = Annotated[
    str | None,
    typer.Option(help="Settings that belong together: fast, best; what is given beside it wins."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "-s",
        metavar="SECTION.KEY=VALUE",
        help="Any setting, such as loss.temperature=0.1; repeatable.",
    ),
]
Protocol = Annotated[
    str | None, typer.Option(help="strict, or paper to compare with published numbers.")
]
Seed = Annotated[int | None, typer.Option(help="Of everything random in training.")]
ConfigFile = Annotated[
    Path | None,
    typer.Option(help="A TOML file with settings, such as RUN/config.toml or best.toml."),
]
Budget = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="Stop after about that time, such as 90min or 2h; all of it is kept."
    ),
]
Threads = Annotated[int | None, typer.Option(min=1, help="Processor threads to use.")]


def use_threads(n_threads: int | None) -> None:
    """Compute with this many threads; as many as torch finds best if not given."""
    if n_threads is not None:
        import torch

        torch.set_num_threads(n_threads)
