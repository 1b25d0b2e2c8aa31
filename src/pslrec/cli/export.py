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
    to: Annotated[str, typer.Option(help="safetensors, npz, parquet, onnx or faiss.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Directory; RUN-FORMAT if not given.")
    ] = None,
    index: Annotated[
        Literal["flat", "ivf", "hnsw"], typer.Option(help="Kind of the faiss index.")
    ] = "flat",
    k: Annotated[
        int,
        typer.Option(
            "-k", "--k", min=1, help="Length of ONNX lists, and of those an index is judged by."
        ),
    ] = 20,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what was written as JSON.")
    ] = False,
) -> None:
    """Write the vectors of users and items, an ONNX graph, or an index with its measured recall."""
    from pslrec.inference import TrainedModel
    from pslrec.recommender.exports import EXPORTS, ExportOptions, export

    EXPORTS[to]
    target = out if out is not None else run.with_name(f"{run.resolve().name}-{to}")
    found = export(TrainedModel.load(run), to, target, ExportOptions(k=k, index=index))
    if as_json:
        typer.echo(json.dumps(found))
        return
    console = Console()
    tell(console, f"{', '.join(found['files'])} and export.json are in {target}")
    if "recall" in found:
        tell(
            console,
            f"the {index} index finds {found['recall']:.1%} of the exact top {found['k']} "
            f"({found['judged_users']:,} users, {found['microseconds']:.0f} microseconds each)",
        )
