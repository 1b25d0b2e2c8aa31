"""`pslrec export`: a trained model for other systems."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from pslrec.cli._options import FinishedRun
from pslrec.cli._telling import tell


def export_command(
    run: FinishedRun,
    to: Annotated[
        str, typer.Option(metavar="FORMAT", help="safetensors, npz, parquet, onnx or faiss.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIRECTORY", help="Where to write. Default: RUN-FORMAT."
        ),
    ] = None,
    index: Annotated[
        Literal["flat", "ivf", "hnsw"],
        typer.Option(metavar="flat|ivf|hnsw", help="Kind of faiss index."),
    ] = "flat",
    k: Annotated[
        int,
        typer.Option(
            "-k",
            "--k",
            metavar="K",
            min=1,
            help="Length of the lists that an ONNX graph returns or an index is measured on.",
        ),
    ] = 20,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what was written as JSON.")
    ] = False,
) -> None:
    """Write user and item vectors, an ONNX graph, or a faiss index with its measured recall."""
    from pslrec.inference import TrainedModel
    from pslrec.recommender.exports import EXPORTS, ExportOptions, export

    # Looked up before the model is read, so that a misspelt format fails at once.
    EXPORTS[to]
    if out is None:
        # Resolved, as a RUN of `.` or `..` has no name of its own.
        out = run.with_name(f"{run.resolve().name}-{to}")
    found = export(TrainedModel.load(run), to, out, ExportOptions(k=k, index=index))
    if as_json:
        typer.echo(json.dumps(found))
        return
    console = Console()
    tell(console, f"wrote {', '.join(found['files'])} and export.json to {out}")
    if "recall" in found:
        tell(
            console,
            f"the {index} index finds {found['recall']:.1%} of the exact top {found['k']} "
            f"({found['judged_users']:,} users, {found['microseconds']:.0f} microseconds each)",
        )
