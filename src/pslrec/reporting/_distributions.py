"""Who is served well: scores by kind of pair, the metric by length of history, hits by popularity of the item."""

from collections.abc import Mapping, Sequence

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


def score_section(records: Sequence[RunRecord], measured: Mapping[str, Measures]) -> Section:
    """Histograms of scores: positives, negatives, false negatives.

    Args:
        records: the runs.
        measured: scores of sampled pairs, by label.
    """
    labels = [record.label for record in records if record.label in measured]
    if not labels:
        return Section("Scores")
    charts = [score_histogram(label, measured[label]) for label in labels[:MOST_HISTOGRAMS]]
    says = (
        "Scores of random pairs under each model. Negatives are items the user has not touched. Items of the test part "
        "were negatives during training, too, although the user went on to them: they are false negatives of the natural "
        "kind. Planted ones are there in the noise setting only."
    )
    blocks: list[Block] = [Text(says), Charts(charts)]
    if len(labels) > MOST_HISTOGRAMS:
        blocks.append(
            Text(
                f"Left out, to keep the page short: {', '.join(labels[MOST_HISTOGRAMS:])}.", "note"
            )
        )
    return Section("Scores", blocks)


def score_histogram(label: str, measures: Measures) -> Chart:
    """One histogram, every kind of pair in it.

    Args:
        label: name of the run.
        measures: its scores.
    """
    everything = np.concatenate(list(measures.scores.values()))
    low, high = np.quantile(everything, [0.0005, 0.9995])
    if high <= low:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, BINS + 1)
    shares = {}
    for kind, scores in measures.scores.items():
        # What lies outside is counted in the outermost bins.
        counts, _ = np.histogram(np.clip(scores, edges[0], edges[-1]), edges)
        shares[kind] = (counts / max(len(scores), 1)).tolist()
    says = f"Up to {max(len(scores) for scores in measures.scores.values()):,} pairs of each kind. {_separation(measures.scores)}"
    axis = Axis(AXES.get(measures.similarity, "score"))
    return histogram(f"Scores of {label}", says, edges.tolist(), shares, x=axis)


def _separation(scores: Mapping[str, np.ndarray]) -> str:
    if "negatives" not in scores:
        return ""
    negatives = np.sort(scores["negatives"])
    parts = [
        f"{kind} {np.searchsorted(negatives, values).sum() / (len(values) * len(negatives)):.1%}"
        for kind, values in scores.items()
        if kind != "negatives"
    ]
    return f"Chance that a pair scores above a random negative: {', '.join(parts)}."


def groups_section(records: Sequence[RunRecord], measured: Mapping[str, Measures]) -> Section:
    """NDCG by length of history and hits by popularity of the item, a pair of charts per data set.

    Args:
        records: the runs.
        measured: values of users and pairs, by label.
    """
    by_data: dict[tuple[str, ...], list[tuple[int, str]]] = {}
    for style, record in enumerate(records):
        if record.label in measured:
            by_data.setdefault(record.data_key, []).append((style, record.label))
    charts = []
    for key, members in by_data.items():
        name = f" on {key[0]}" if len({other[0] for other in by_data}) > 1 else ""
        charts += _history_charts(members, measured, name) + _popularity_charts(
            members, measured, name
        )
    return Section("Users and items", [Charts(charts)] if charts else [])


def _history_charts(
    members: Sequence[tuple[int, str]], measured: Mapping[str, Measures], name: str
) -> list[Chart]:
    edges = group_edges(measured[members[0][1]].history)
    series = []
    for style, label in members:
        values = measured[label].test.per_user[f"ndcg@{K}"]
        series.append(_grouped(label, style, measured[label].history, values, edges))
    says = f"Mean NDCG@{K} of users grouped by their training interactions, about equally many in each; bars are 95 % intervals."
    axis = Axis("training interactions of the user", categories=group_names(edges))
    return [
        line_chart(
            f"NDCG@{K} by history{name}", says, series, x=axis, y=Axis(f"NDCG@{K}", from_zero=True)
        )
    ]


def _popularity_charts(
    members: Sequence[tuple[int, str]], measured: Mapping[str, Measures], name: str
) -> list[Chart]:
    edges = group_edges(measured[members[0][1]].popularity)
    if not len(edges):
        return []
    series = [
        _grouped(
            label,
            style,
            measured[label].popularity,
            measured[label].found.astype(np.float64),
            edges,
        )
        for style, label in members
    ]
    says = (
        f"Share of test pairs whose item is among the user's first {K}, by how often the item occurs in training; "
        "about equally many pairs in each group; bars are 95 % intervals."
    )
    axis = Axis("training interactions of the item", categories=group_names(edges))
    return [
        line_chart(
            f"Hits@{K} by popularity{name}",
            says,
            series,
            x=axis,
            y=Axis("share found", from_zero=True),
        )
    ]


def group_edges(values: np.ndarray, n_groups: int = GROUPS) -> np.ndarray:
    """Smallest value of each group, so that groups are about equally large; fewer groups where values repeat.

    >>> group_edges(np.arange(1, 11), 5)
    array([1, 3, 5, 7, 9])
    """
    if not len(values):
        return np.zeros(0, dtype=np.int64)
    ordered = np.sort(values)
    return np.unique(ordered[[place * len(ordered) // n_groups for place in range(n_groups)]])


def group_names(edges: np.ndarray) -> list[str]:
    """Names of groups of whole numbers.

    >>> group_names(np.array([1, 2, 5]))
    ['1', '2-4', '5+']
    """
    names = []
    for place, low in enumerate(edges):
        if place + 1 == len(edges):
            names.append(f"{low:,}+")
        else:
            high = edges[place + 1] - 1
            names.append(f"{low:,}" if high == low else f"{low:,}-{high:,}")
    return names


def _grouped(
    label: str, style: int, keys: np.ndarray, values: np.ndarray, edges: np.ndarray
) -> Series:
    places = np.clip(np.searchsorted(edges, keys, side="right") - 1, 0, None)
    points, errors = [], []
    for place in range(len(edges)):
        inside = values[places == place]
        if len(inside):
            points.append((float(place), float(inside.mean())))
            errors.append(float(1.96 * inside.std() / np.sqrt(len(inside))))
    # Several runs in one group are drawn beside each other by their shapes; the groups themselves stay in place.
    return Series(label, points, style, errors=errors)
