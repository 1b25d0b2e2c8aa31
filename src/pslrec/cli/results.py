"""Metrics as a table."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table


def metrics_table(metrics: Mapping[str, Any]) -> Table:
    """One row per metric, one column per part of the data."""
    parts = [part for part in ("validation", "test") if part in metrics]
    note = f"protocol {metrics['protocol']}, epoch {metrics['best_epoch']}"
    if metrics.get("selected_on_test"):
        note += ", [bold]chosen on the test part[/]"
    table = Table(title=note, title_justify="left", box=None, pad_edge=False)
    table.add_column("metric")
    for part in parts:
        table.add_column(part, justify="right")
    for name in metrics["test"]:
        table.add_row(name, *(f"{metrics[part][name]:.4f}" for part in parts))
    return table
