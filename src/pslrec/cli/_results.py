"""Metrics as a table."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from pslrec.cli._telling import tell
from pslrec.evaluation import Evaluated

# The metrics that papers report come first; all others follow in alphabetical order.
FIRST = ("recall", "ndcg", "precision", "hit_rate", "mrr", "map")


def show_metrics(metrics: Mapping[str, Any], console: Console) -> None:
    """Print what was evaluated and how, then the table."""
    # Runs of earlier versions did not record the counts.
    counts = metrics.get("evaluated", {}).get("test")
    if counts is not None and not counts["of_pairs"]:
        _show_without_test(metrics, console)
        return
    console.print(metrics_note(metrics), highlight=False, soft_wrap=True)
    if counts is not None:
        console.print(Evaluated(**counts).sentence("test"), highlight=False, soft_wrap=True)
    for check in metrics.get("exchangeability", {}).values():
        # As a user would read on past "all is well", only shifts are told.
        if check["verdict"] == "shifted":
            tell(console, f"note: {check['sentence']}")
    console.print(metrics_table(metrics))


def _show_without_test(metrics: Mapping[str, Any], console: Console) -> None:
    """What there is of a model that was trained on everything: how it did on validation."""
    note = f"no test part; epoch {metrics['best_epoch']}"
    if not metrics["validation"]:
        console.print(note, highlight=False, soft_wrap=True)
        return
    note += f", which was chosen on the validation part (protocol {metrics['protocol']}):"
    console.print(note, highlight=False, soft_wrap=True)
    console.print(metrics_table(metrics, part="validation"))


def metrics_note(metrics: Mapping[str, Any]) -> str:
    """Which part, which protocol, which epoch and how it was chosen."""
    note = f"test part, protocol {metrics['protocol']}, epoch {metrics['best_epoch']}"
    if metrics.get("selected_on_test"):
        note += ", [bold]which was chosen on the test part[/]"
    chosen = metrics.get("validation", {}).get("ndcg@20")
    if chosen is None:
        return note
    return f"{note} (NDCG@20 {chosen:.4f} on validation)"


def metrics_table(metrics: Mapping[str, Any], part: str = "test") -> Table:
    """One row per metric of a part, one column per list length."""
    values = {}
    for label, value in metrics[part].items():
        name, _, k = label.partition("@")
        values[name, k] = value
    # Some metrics have no list length; a table of those alone has one column without a heading.
    lengths = sorted({k for _, k in values if k}, key=int) or [""]
    names = sorted({name for name, _ in values}, key=_place)
    table = Table(box=None, pad_edge=False)
    table.add_column("metric")
    for k in lengths:
        table.add_column(f"@{k}" if k else "", justify="right")
    for name in names:
        cells = []
        for k in lengths:
            # A metric without a list length, such as auc, is the same in every column.
            value = values.get((name, k), values.get((name, "")))
            cells.append("" if value is None else f"{value:.4f}")
        table.add_row(name, *cells)
    return table


def _place(name: str) -> tuple[int, str]:
    if name in FIRST:
        return FIRST.index(name), name
    return len(FIRST), name
