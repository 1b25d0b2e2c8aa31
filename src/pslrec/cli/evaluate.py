"""`pslrec evaluate`: evaluate a finished run again, with other list lengths or metrics."""

import json
from typing import Annotated, Literal

import typer
from rich.console import Console

from pslrec.cli._options import FinishedRun, NumberOfProcesses, Threads, Timeout, use_threads
from pslrec.cli._processes import joined, start_workers


def evaluate_command(
    run: FinishedRun,
    k: Annotated[
        str, typer.Option(metavar="K,K,...", help="List lengths, separated by commas.")
    ] = "5,20,50",
    protocol: Annotated[
        Literal["strict", "paper"] | None,
        typer.Option(
            metavar="strict|paper", help="Evaluation protocol. Default: the one of the run."
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME,...",
            help="Metrics, such as ndcg,recall. Default: all but those of whole rankings (auc).",
        ),
    ] = None,
    threads: Threads = None,
    processes: NumberOfProcesses = None,
    timeout: Timeout = 600.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the metrics as JSON on standard output.")
    ] = False,
) -> None:
    """Rank the whole catalogue for every test user and print the metrics."""
    from pslrec.cli._results import show_metrics
    from pslrec.errors import ConfigError
    from pslrec.experiment import evaluate_run

    start_workers(processes, threads=threads)
    use_threads(threads)
    # Stricter than `listed`: an empty entry such as in `5,,20` is more likely a slip.
    try:
        lengths = tuple(int(part) for part in k.split(","))
    except ValueError:
        raise ConfigError(
            f"`--k` must be whole numbers separated by commas, such as 5,20, got `{k}`"
        ) from None
    names = None
    if metrics is not None:
        names = [name.strip() for name in metrics.split(",")]
    with joined(timeout) as group:
        record = evaluate_run(run, k=lengths, protocol=protocol, metrics=names, group=group)
    if not group.is_first:
        return
    if as_json:
        typer.echo(json.dumps(record))
    else:
        show_metrics(record, Console())
