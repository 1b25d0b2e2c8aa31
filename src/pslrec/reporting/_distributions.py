"""Who is served well: scores by kind of pair, NDCG by history, hits by popularity of the item."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from pslrec.reporting._axes import Axis
from pslrec.reporting._charts import Series, histogram, line_chart
from pslrec.reporting._document import Block, Chart, Charts, Section, Text
from pslrec.reporting._measures import K, Measures
from pslrec.reporting._run_record import RunRecord

BINS = 40
GROUPS = 5
# More runs than this would make a page of histograms; the others are named.
MOST_HISTOGRAMS = 6
AXES = {"half-cosine": "score (half cosine)", "inner-product": "score (inner product)"}
SAYS = (
    "Scores of random pairs under each model. Negatives are items that the user never interacted "
    "with. Items of the test set were negatives during training as well, although the user did "
    "interact with them: they are natural false negatives. Planted false negatives exist in the "
    "noise setting only."
)
# The colour of a run, and its label.
Member = tuple[int, str]


def score_section(records: Sequence[RunRecord], measured: Mapping[str, Measures]) -> Section:
    """Draw histograms of the scores of positives, negatives and false negatives.

    Args:
        records: the runs.
        measured: scores of sampled pairs, by label of the run.
    """
    labels = [record.label for record in records if record.label in measured]
    if not labels:
        return Section("Scores")
    charts = [score_histogram(label, measured[label]) for label in labels[:MOST_HISTOGRAMS]]
    blocks: list[Block] = [Text(SAYS), Charts(charts)]
    left_out = labels[MOST_HISTOGRAMS:]
    if left_out:
        says = f"Left out to keep the page short: {', '.join(left_out)}."
        blocks.append(Text(says, "note"))
    return Section("Scores", blocks)


def score_histogram(label: str, measures: Measures) -> Chart:
    """Draw one histogram with every kind of pair in it.

    Args:
        label: name of the run.
        measures: its scores.
    """
    everything = np.concatenate(list(measures.scores.values()))
    # A few outliers would squeeze all other scores into the middle of the picture.
    low, high = np.quantile(everything, [0.0005, 0.9995])
    if high <= low:
        low = low - 0.5
        high = high + 0.5
    edges = np.linspace(low, high, BINS + 1)
    shares = {}
    most = 0
    for kind, scores in measures.scores.items():
        # What lies outside is counted in the outermost bins.
        counts, _ = np.histogram(np.clip(scores, edges[0], edges[-1]), edges)
        shares[kind] = (counts / max(len(scores), 1)).tolist()
        most = max(most, len(scores))
    says = f"Up to {most:,} pairs of each kind. {_separation(measures.scores)}"
    axis = Axis(AXES.get(measures.similarity, "score"))
    return histogram(f"Scores of {label}", says, edges.tolist(), shares, x=axis)


def _separation(scores: Mapping[str, np.ndarray]) -> str:
    if "negatives" not in scores:
        return ""
    negatives = np.sort(scores["negatives"])
    parts = []
    for kind, values in scores.items():
        if kind != "negatives":
            # In the sorted negatives, the place of a score is the number of negatives below it.
            n_above = np.searchsorted(negatives, values).sum()
            share = n_above / (len(values) * len(negatives))
            parts.append(f"{kind} {share:.1%}")
    return f"Chance that a pair scores above a random negative: {', '.join(parts)}."


def groups_section(records: Sequence[RunRecord], measured: Mapping[str, Measures]) -> Section:
    """Draw NDCG by length of history and hits by popularity of the item, for each data set.

    Args:
        records: the runs.
        measured: values of users and pairs, by label of the run.
    """
    by_data: dict[tuple[str, ...], list[Member]] = {}
    for style, record in enumerate(records):
        if record.label in measured:
            by_data.setdefault(record.data_key, []).append((style, record.label))
    # Runs on the same source may still differ in the split, and then need charts of their own.
    sources = {key[0] for key in by_data}
    charts = []
    for key, members in by_data.items():
        name = ""
        if len(sources) > 1:
            name = f" on {key[0]}"
        charts.append(_history_chart(members, measured, name))
        charts.extend(_popularity_charts(members, measured, name))
    if not charts:
        return Section("Users and items")
    return Section("Users and items", [Charts(charts)])


def _history_chart(members: Sequence[Member], measured: Mapping[str, Measures], name: str) -> Chart:
    _, first = members[0]
    edges = group_edges(measured[first].history)
    series = []
    for style, label in members:
        measures = measured[label]
        values = measures.test.per_user[f"ndcg@{K}"]
        series.append(_grouped(label, style, measures.history, values, edges))
    says = (
        f"Mean NDCG@{K} of users by their number of training interactions, in groups of about "
        "equal size. Bars are 95 % intervals."
    )
    x = Axis("training interactions of the user", categories=group_names(edges))
    y = Axis(f"NDCG@{K}", from_zero=True)
    return line_chart(f"NDCG@{K} by history{name}", says, series, x=x, y=y)


def _popularity_charts(
    members: Sequence[Member], measured: Mapping[str, Measures], name: str
) -> list[Chart]:
    _, first = members[0]
    edges = group_edges(measured[first].popularity)
    if not len(edges):
        return []
    series = []
    for style, label in members:
        measures = measured[label]
        found = measures.found.astype(np.float64)
        series.append(_grouped(label, style, measures.popularity, found, edges))
    says = (
        f"Share of test pairs whose item is among the user's first {K}, by how often the item "
        "occurs in training, in groups of about equal size. Bars are 95 % intervals."
    )
    x = Axis("training interactions of the item", categories=group_names(edges))
    y = Axis("share found", from_zero=True)
    return [line_chart(f"Hits@{K} by popularity{name}", says, series, x=x, y=y)]


def group_edges(values: np.ndarray, n_groups: int = GROUPS) -> np.ndarray:
    """Find the smallest value of each group, so that groups are about equally large.

    Args:
        values: what to group.
        n_groups: how many groups; there are fewer where values repeat.

    >>> group_edges(np.arange(1, 11), 5)
    array([1, 3, 5, 7, 9])
    """
    if not len(values):
        return np.zeros(0, dtype=np.int64)
    ordered = np.sort(values)
    places = np.arange(n_groups) * len(ordered) // n_groups
    return np.unique(ordered[places])


def group_names(edges: np.ndarray) -> list[str]:
    """Name groups of whole numbers.

    Args:
        edges: the smallest value of each group; the last group has no upper end.

    >>> group_names(np.array([1, 2, 5]))
    ['1', '2-4', '5+']
    """
    names = []
    for low, next_low in pairwise(edges):
        high = next_low - 1
        if high == low:
            names.append(f"{low:,}")
        else:
            names.append(f"{low:,}-{high:,}")
    if len(edges):
        names.append(f"{edges[-1]:,}+")
    return names


def _grouped(
    label: str, style: int, keys: np.ndarray, values: np.ndarray, edges: np.ndarray
) -> Series:
    # Edges are those of the first run; with another noise setting, a run may have smaller values.
    places = np.clip(np.searchsorted(edges, keys, side="right") - 1, 0, None)
    points = []
    errors = []
    for place in range(len(edges)):
        inside = values[places == place]
        if len(inside):
            points.append((float(place), float(inside.mean())))
            # Half the 95 % interval of a mean, by the normal approximation.
            errors.append(float(1.96 * inside.std() / np.sqrt(len(inside))))
    return Series(label, points, style, errors=errors)
