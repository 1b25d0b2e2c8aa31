"""A data set at a glance: counts, and histograms drawn with characters."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pslrec.cli._telling import tell
from pslrec.data import (
    Dataset,
    Description,
    Interactions,
    Measure,
    PartCheck,
    describe,
    exchangeability_record,
)

BAR_WIDTH = 40
EIGHTHS = " ▏▎▍▌▋▊▉█"


def show(
    data: Interactions | Dataset,
    console: Console,
    title: str,
    checks: Mapping[str, PartCheck] | None = None,
) -> None:
    """Print counts, history lengths, the popularity tail and what was found about the split."""
    description = describe(_whole(data))
    # As Text: a file name may hold brackets, which rich would take for markup.
    console.print(Text(title, style="bold"), soft_wrap=True)
    console.print(_counts(description, data))
    console.print(_histogram("items per user", description.history_lengths, "user"))
    console.print(_histogram("users per item", description.item_popularity, "item"))
    for check in (checks or {}).values():
        console.print(_comparison(check))
        tell(console, check.sentence())


def as_record(data: Interactions | Dataset, checks: Mapping[str, PartCheck] | None = None) -> str:
    """The counts, and what was found about the split, as one line of JSON."""
    found = describe(_whole(data))
    record: dict[str, Any] = {
        "users": found.n_users,
        "items": found.n_items,
        "interactions": found.n_interactions,
        "pairs": found.n_pairs,
        "density": found.density,
        "median_history": float(np.median(found.history_lengths)),
        "head_share": found.head_share,
        "gini": found.gini,
    }
    if isinstance(data, Dataset):
        for name, part in data.parts().items():
            record[name] = len(part)
    if checks:
        record["exchangeability"] = exchangeability_record(checks)
    return json.dumps(record)


def _whole(data: Interactions | Dataset) -> Interactions:
    if isinstance(data, Dataset):
        return data.whole()
    return data


def _counts(found: Description, data: Interactions | Dataset) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_row("users", f"{found.n_users:,}")
    table.add_row("items", f"{found.n_items:,}")
    table.add_row("interactions", f"{found.n_interactions:,}")
    if isinstance(data, Dataset):
        for name, part in data.parts().items():
            table.add_row(f"  {name}", f"{len(part):,}")
    n_repeated = found.n_interactions - found.n_pairs
    if n_repeated:
        table.add_row("  repeated, which all below counts once", f"{n_repeated:,}")
    table.add_row("density", f"{found.density:.3%}")
    table.add_row("items per user, median (min to max)", _spread(found.history_lengths))
    table.add_row("users per item, median (min to max)", _spread(found.item_popularity))
    table.add_row("interactions with the top 10 % of items", f"{found.head_share:.1%}")
    table.add_row("Gini coefficient of item popularity", f"{found.gini:.3f}")
    table.add_row("least popular items that make up 20 % of interactions", f"{found.tail_items:,}")
    return table


def _comparison(check: PartCheck) -> Table:
    table = Table(
        box=None,
        title=f"\n{check.part} pairs and pairs held out at random",
        title_justify="left",
        title_style="bold",
        pad_edge=False,
    )
    table.add_column("")
    for heading in (check.part, "random", "difference", "effect", "p (Holm)"):
        table.add_column(heading, justify="right")
    for measure in check.measures:
        table.add_row(
            measure.name,
            _value(measure, measure.held_out),
            _value(measure, measure.random),
            _signed(f"{100 * measure.difference:+.1f} %"),
            _signed(f"{measure.effect:+.2f}"),
            f"{measure.adjusted_p:.3g}",
        )
    return table


def _value(measure: Measure, value: float) -> str:
    if measure.is_share:
        return f"{value:.2%}"
    return f"{value:.3g}"


def _signed(text: str) -> str:
    # A number that rounds to nothing has no sign.
    if set(text) <= set("+-0. %"):
        return text[1:]
    return text


def _spread(values: np.ndarray) -> str:
    return f"{np.median(values):g} ({values.min()} to {values.max():,})"


def _histogram(title: str, values: np.ndarray, unit: str) -> Table:
    # Bins that double in width: both histories and popularity span several orders of magnitude.
    edges = [1]
    while edges[-1] * 2 <= values.max():
        edges.append(edges[-1] * 2)
    counts = np.histogram(values, bins=[*edges, np.inf])[0]
    table = Table(
        box=None,
        title=f"\n{title}",
        title_justify="left",
        title_style="bold",
        show_header=False,
        pad_edge=False,
    )
    table.add_column(justify="right")
    table.add_column(width=BAR_WIDTH, no_wrap=True)
    table.add_column(justify="right")
    first, last = np.flatnonzero(counts)[[0, -1]]
    for place in range(first, last + 1):
        lowest = edges[place]
        # The last bin ends at the largest value rather than at the next power of two.
        highest = int(values.max())
        if place + 1 < len(edges):
            highest = edges[place + 1] - 1
        label = f"{lowest}"
        if highest > lowest:
            label = f"{lowest}-{highest}"
        count = counts[place]
        plural = "" if count == 1 else "s"
        table.add_row(label, _bar(count / counts.max()), f"{count:,} {unit}{plural}")
    return table


def _bar(share: float) -> str:
    # A bin that is not empty gets at least an eighth of a character.
    eighths = max(round(share * BAR_WIDTH * 8), int(share > 0))
    whole, rest = divmod(eighths, 8)
    return "█" * whole + EIGHTHS[rest].strip()
