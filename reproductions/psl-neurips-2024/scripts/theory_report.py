"""Curves and words for the measured theory."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import polars as pl
from model_scores import HELD_OUT, PLANTED, TRUTH
from theory_measures import ABOVE, HARDEST

from pslrec.reporting import Axis, Chart, Series, histogram, line_chart

FAMILY = ("SL", "PSL-tanh", "PSL-atan", "PSL-relu")
BINS = 40
# Shares below this are rounding, and a ratio of two of them means nothing.
NEGLIGIBLE = 0.001
GROUPS = {
    ABOVE: "negatives that score at least as high as the positive they are compared with",
    HARDEST: "the hundredth of a user's negatives with the highest scores",
    HELD_OUT: "items of the test part: negatives in training although the user went on to them",
    PLANTED: "positives declared negatives, the noise setting of the paper",
    TRUTH: "items the user is most likely to choose by the rule that made the data, but which are not in training",
}


def theory_charts(frames: Mapping[str, pl.DataFrame]) -> dict[str, Chart]:
    """The figures by name: gaps of the first run, gaps by temperature, shares of gradient weight, of the first run that has them.

    Args:
        frames: the tables `bounds`, `gaps`, `robustness` and `weights`.
    """
    run = str(frames["bounds"]["run"][0])
    charts = {"gaps": _gap_histogram(frames["bounds"].filter(pl.col("run") == run), run)}
    own = frames["gaps"].filter(pl.col("run") == run)
    reference = own.filter(pl.col("loss") == "SL").select(
        "temperature", pl.col("gap_median").alias("of_sl")
    )
    charts["gaps-by-temperature"] = _by_temperature(
        f"Gap to -log DCG beside that of SL, {run}",
        "How far each loss lies above -log DCG + log |P|, in the median over users, relative to SL. Lower is tighter.",
        own.join(reference, on="temperature").with_columns(
            value=100 * pl.col("gap_median") / pl.col("of_sl")
        ),
        "gap in % of SL's",
    )
    shares = frames["weights"]
    for group in shares["group"].unique(maintain_order=True).to_list():
        # Planted ones are in runs with noise only.
        rows = shares.filter(pl.col("group") == group)
        run = str(rows["run"][0])
        rows = rows.filter(pl.col("run") == run)
        by_number = float(rows["share_of_draws"][0])
        charts[_file_name(group)] = _by_temperature(
            f"Gradient weight on negatives: {group}, {run}",
            f"{GROUPS[group][0].upper()}{GROUPS[group][1:]}; {by_number:.2%} of all draws.",
            rows.with_columns(value=100 * pl.col("share_of_weight")),
            "share of weight in %",
        )
    return charts


def _gap_histogram(rows: pl.DataFrame, run: str) -> Chart:
    gaps = {name: (rows[name] - rows["dcg"]).to_numpy() for name in FAMILY}
    everything = np.concatenate(list(gaps.values()))
    edges = np.linspace(everything.min(), np.quantile(everything, 0.999), BINS + 1)
    shares = {
        name: (np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0] / len(values)).tolist()
        for name, values in gaps.items()
    }
    medians = ", ".join(f"{name} {np.median(values):.3f}" for name, values in gaps.items())
    tau = float(rows["temperature"][0])
    says = f"Gap of each user between the loss and -log DCG + log |P| at temperature {tau:g}. Medians: {medians}."
    return histogram(
        f"Gap between loss and -log DCG, {run}", says, edges.tolist(), shares, x=Axis("gap")
    )


def _by_temperature(title: str, says: str, rows: pl.DataFrame, label: str) -> Chart:
    series = []
    for style, name in enumerate(FAMILY):
        own = rows.filter(pl.col("loss") == name).sort("temperature")
        series.append(
            Series(
                name, own.select("temperature", "value").rows(), style, is_reference=name == "SL"
            )
        )
    return line_chart(title, says, series, x=Axis("temperature"), y=Axis(label))


def _file_name(group: str) -> str:
    return f"weight-{group.replace(' %', '').replace(' ', '-')}"


def theory_page(frames: Mapping[str, pl.DataFrame]) -> str:
    """What came out, in words and tables, as Markdown.

    Args:
        frames: the tables `bounds`, `gaps`, `robustness` and `weights`.
    """
    lines = ["# The theory, measured", ""]
    lines += [
        "Sums run over all items, as the paper prints them. Every number is in the CSV files beside this page.",
        "",
    ]
    lines += [
        *_bounds_part(frames),
        *_robustness_part(frames["robustness"]),
        *_weights_part(frames["weights"]),
    ]
    return "\n".join(lines)


def _bounds_part(frames: Mapping[str, pl.DataFrame]) -> list[str]:
    gaps = frames["gaps"]
    n_below = int(gaps["below_dcg"].sum())
    says = (
        "The losses bound -log DCG + log |P| from above (Eq. 3.2, Lemma 4.1); the gap says how loosely. "
        f"Of {int(gaps['users'].sum()):,} values (users x losses x temperatures) {n_below or 'none'} lies below the bound."
    )
    lines = ["## How tight the losses are", "", says, "", "![Gaps](theory-gaps.svg)", ""]
    lines += ["![By temperature](theory-gaps-by-temperature.svg)", ""]
    header = [
        "run",
        "temperature",
        "loss",
        "median gap",
        "5 %",
        "95 %",
        "users with a tighter value than SL",
    ]
    own = gaps.join(
        frames["bounds"].select("run", "temperature"), on=["run", "temperature"], how="semi"
    )
    rows = [
        [
            row["run"],
            f"{row['temperature']:g}",
            row["loss"],
            *(f"{row[name]:.3f}" for name in ("gap_median", "gap_5", "gap_95")),
            "" if row["loss"] == "SL" else f"{row['tighter_than_sl']:.1%}",
        ]
        for row in own.iter_rows(named=True)
    ]
    return [*lines, *_table(header, rows, n_words=3)]


def _robustness_part(frame: pl.DataFrame) -> list[str]:
    says = (
        "Theorem 4.2 reads PSL as the worst case of BPR over all distributions of negatives within a KL ball around the uniform "
        "one. The radius of that ball follows from the temperature and the scores. From the radius alone, a minimisation of "
        "the dual over all temperatures must come back to the temperature of the loss, and to the worst case."
    )
    header = [
        "run",
        "loss",
        "radius in nats",
        "lowest",
        "highest",
        "items in effect",
        "error of worst case",
        "error of τ",
    ]
    rows = [
        [
            row["run"],
            row["loss"],
            *(f"{row[name]:.3f}" for name in ("radius_median", "radius_lowest", "radius_highest")),
            f"{row['n_effective_median']:,.0f} of {row['n_items']:,}",
            f"{row['largest_error_of_worst_case']:.0e}",
            f"{row['largest_error_of_temperature']:.0e}",
        ]
        for row in frame.iter_rows(named=True)
    ]
    return ["## PSL as robust BPR", "", says, "", *_table(header, rows, n_words=2)]


def _weights_part(frame: pl.DataFrame) -> list[str]:
    says = (
        "A negative moves the model by its weight in the gradient. The share of a group in all weight, beside its share in the "
        "draws, says how much a loss turns to it, by run and temperature."
    )
    lines = ["## Who gets the gradient", "", says, "", *_comparison(frame), ""]
    for group in frame["group"].unique(maintain_order=True).to_list():
        rows = frame.filter(pl.col("group") == group)
        losses = rows["loss"].unique(maintain_order=True).to_list()
        header = ["run", "temperature", "of the draws", *losses]
        table = [
            [str(run), f"{tau:g}", f"{part['share_of_draws'][0]:.2%}", *_shares(part, losses)]
            for (run, tau), part in rows.group_by("run", "temperature", maintain_order=True)
        ]
        lines += [
            f"### {group[0].upper()}{group[1:]}: {GROUPS[group]}",
            "",
            f"![{group}](theory-{_file_name(group)}.svg)",
            "",
        ]
        lines += _table(header, table, n_words=1)
    return lines


def _comparison(frame: pl.DataFrame) -> list[str]:
    """A sentence per group: the share under PSL-relu beside SL, over all runs and temperatures."""
    lines = []
    for group in frame["group"].unique(maintain_order=True).to_list():
        rows = frame.filter(pl.col("group") == group)
        relu, softmax = (
            rows.filter(pl.col("loss") == name)["share_of_weight"] for name in ("PSL-relu", "SL")
        )
        ratios = [
            100 * (mine / theirs - 1)
            for mine, theirs in zip(relu, softmax, strict=True)
            if theirs > NEGLIGIBLE
        ]
        if ratios:
            span = f"{min(ratios):+.1f} % to {max(ratios):+.1f} %"
            lines.append(
                f"- {group}: beside SL, PSL-relu changes the share by {span}, over runs and temperatures."
            )
    return lines


def _shares(part: pl.DataFrame, losses: Iterable[str]) -> list[str]:
    values = dict(part.select("loss", "share_of_weight").rows())
    return [f"{values[loss]:.1%}" for loss in losses]


def _table(header: Sequence[str], rows: Iterable[Sequence[str]], *, n_words: int) -> list[str]:
    rule = ["---"] * n_words + ["---:"] * (len(header) - n_words)
    return [*("| " + " | ".join(cells) + " |" for cells in (header, rule, *rows)), ""]
