"""Metrics as a table."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from pslrec.evaluation import Evaluated

FIRST = ("recall", "ndcg", "precision", "hit_rate", "mrr", "map")


def show_metrics(metrics: Mapping[str, Any], console: Console) -> None:
    """Print what was evaluated and how, then the table."""
    console.print(metrics_note(metrics), highlight=False, soft_wrap=True)
    counts = metrics.get("evaluated", {}).get("test")
    if counts is not None and counts["of_pairs"]:
        console.print(Evaluated(**counts).sentence("test"), highlight=False, soft_wrap=True)
    console.print(metrics_table(metrics))


def metrics_note(metrics: Mapping[str, Any]) -> str:
    """Which part, which protocol, which epoch and how it was chosen."""
    note = f"test part, protocol {metrics['protocol']}, epoch {metrics['best_epoch']}"
    if metrics.get("selected_on_test"):
        note += ", [bold]which was chosen on the test part[/]"
    chosen = metrics.get("validation", {}).get("ndcg@20")
    return note if chosen is None else f"{note} (NDCG@20 {chosen:.4f} on validation)"


def metrics_table(metrics: Mapping[str, Any]) -> Table:
    """One row per metric of the test part, one column per list length."""
    values = {tuple(name.partition("@")[::2]): value for name, value in metrics["test"].items()}
    lengths = sorted({k for _, k in values if k}, key=int)
    names = sorted(
        {name for name, _ in values},
        key=lambda name: (name not in FIRST, (*FIRST, name).index(name), name),
    )
    table = Table(box=None, pad_edge=False)
    table.add_column("metric")
    for k in lengths or [""]:
        table.add_column(f"@{k}" if k else "", justify="right")
    for name in names:
        shown = [values.get((name, k), values.get((name, ""))) for k in lengths or [""]]
        table.add_row(name, *("" if value is None else f"{value:.4f}" for value in shown))
    return table
