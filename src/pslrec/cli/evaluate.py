"""`pslrec evaluate`: judge a finished run again, at other list lengths or by the other protocol."""

import json
from typing import Annotated, Literal

import typer
from rich.console import Console

from pslrec.cli._options import FinishedRun, Threads, use_threads


def evaluate_command(
    run: FinishedRun,
    k: Annotated[str, typer.Option(help="List lengths, separated by commas.")] = "5,20,50",
    protocol: Annotated[
        Literal["strict", "paper"] | None, typer.Option(help="That of the run if not given.")
    ] = None,
    metrics: Annotated[
        str | None, typer.Option(help="Names separated by commas; most if not given.")
    ] = None,
    threads: Threads = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Rank the whole catalogue for every test user and print the metrics."""
    from pslrec.cli._results import show_metrics
    from pslrec.errors import ConfigError
    from pslrec.experiment import evaluate_run

    use_threads(threads)
    try:
        lengths = tuple(int(part) for part in k.split(","))
    except ValueError:
        raise ConfigError(f"--k takes whole numbers separated by commas, got `{k}`") from None
    names = None if metrics is None else [name.strip() for name in metrics.split(",")]
    record = evaluate_run(run, k=lengths, protocol=protocol, metrics=names)
    if as_json:
        typer.echo(json.dumps(record))
    else:
        show_metrics(record, Console())
