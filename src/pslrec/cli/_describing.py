"""A data set as a person likes to see it: counts, and histograms drawn with characters."""

import json

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pslrec.data import Dataset, Description, Interactions, describe

BAR_WIDTH = 40
EIGHTHS = " ▏▎▍▌▋▊▉█"


def show(data: Interactions | Dataset, console: Console, title: str) -> None:
    """Print counts, history lengths and the popularity tail."""
    whole = data.whole() if isinstance(data, Dataset) else data
    description = describe(whole)
    # Not as markup: a file's name may have brackets in it.
    console.print(Text(title, style="bold"), soft_wrap=True)
    console.print(_counts(description, data))
    console.print(_histogram("items per user", description.history_lengths, "users"))
    console.print(_histogram("users per item", description.item_popularity, "items"))


def as_record(data: Interactions | Dataset) -> str:
    """The counts as one line of JSON."""
    whole = data.whole() if isinstance(data, Dataset) else data
    found = describe(whole)
    record = {
        "users": found.n_users,
        "items": found.n_items,
        "interactions": found.n_interactions,
        "density": found.density,
        "median_history": float(np.median(found.history_lengths)),
        "head_share": found.head_share,
        "gini": found.gini,
    }
    if isinstance(data, Dataset):
        record |= {name: len(part) for name, part in data.parts().items()}
    return json.dumps(record)


def _counts(found: Description, data: Interactions | Dataset) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(justify="right")
    rows = {
        "users": f"{found.n_users:,}",
        "items": f"{found.n_items:,}",
        "interactions": f"{found.n_interactions:,}",
    }
    if isinstance(data, Dataset):
        rows |= {f"  {name}": f"{len(part):,}" for name, part in data.parts().items()}
    lengths, popularity = found.history_lengths, found.item_popularity
    rows |= {
        "density": f"{found.density:.3%}",
        "items per user, median (least to most)": f"{np.median(lengths):g} ({lengths[0]} to {lengths[-1]:,})",
        "users per item, median (least to most)": f"{np.median(popularity):g} ({popularity[-1]} to {popularity[0]:,})",
        "interactions with the most popular 10 % of items": f"{found.head_share:.1%}",
        "Gini coefficient of item popularity": f"{found.gini:.3f}",
        "least popular items that share 20 % of interactions": f"{found.tail_items:,}",
    }
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def _histogram(title: str, values: np.ndarray, unit: str) -> Table:
    edges = _doubling_edges(int(values.max()))
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
    for low, above, count in list(
        zip(edges, [*edges[1:], int(values.max()) + 1], counts, strict=True)
    )[first : last + 1]:
        label = f"{low}" if above == low + 1 else f"{low}-{above - 1}"
        table.add_row(
            label,
            _bar(count / counts.max()),
            f"{count:,} {unit if count != 1 else unit.removesuffix('s')}",
        )
    return table


def _doubling_edges(highest: int) -> list[int]:
    edges = [1]
    while edges[-1] * 2 <= highest:
        edges.append(edges[-1] * 2)
    return edges


def _bar(share: float) -> str:
    # What is there shows, however little it is.
    eighths = max(round(share * BAR_WIDTH * 8), int(share > 0))
    return "█" * (eighths // 8) + (EIGHTHS[eighths % 8] if eighths % 8 else "")
