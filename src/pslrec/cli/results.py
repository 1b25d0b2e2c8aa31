"""Metrics as a table."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table

FIRST = ("recall", "ndcg", "precision", "hit_rate", "mrr", "map")


def metrics_table(metrics: Mapping[str, Any]) -> Table:
    """One row per metric of the test part, one column per list length; validation stands in the title."""
    note = f"test part, protocol {metrics['protocol']}, epoch {metrics['best_epoch']}"
    if metrics.get("selected_on_test"):
        note += ", [bold]which was chosen on the test part[/]"
    chosen = metrics.get("validation", {}).get("ndcg@20")
    if chosen is not None:
        note += f" (NDCG@20 {chosen:.4f} on validation)"
    values = {tuple(name.partition("@")[::2]): value for name, value in metrics["test"].items()}
    lengths = sorted({k for _, k in values if k}, key=int)
    names = sorted({name for name, _ in values}, key=lambda name: (name not in FIRST, (*FIRST, name).index(name), name))
    table = Table(title=note, title_justify="left", title_style="", box=None, pad_edge=False)
    table.add_column("metric")
    for k in lengths or [""]:
        table.add_column(f"@{k}" if k else "", justify="right")
    for name in names:
        shown = [values.get((name, k), values.get((name, ""))) for k in lengths or [""]]
        table.add_row(name, *("" if value is None else f"{value:.4f}" for value in shown))
    return table
