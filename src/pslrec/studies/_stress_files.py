"""The files of a stress test: runs, summary, curves."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from pslrec.files import make_directory, write_text
from pslrec.reporting import Area, Axis, Chart, Series, line_chart, write_chart
from pslrec.studies._stress import summarize

TITLES = {"shift": "Shift of popularity", "noise": "False negatives"}
AXES = {"shift": "strength of the shift", "noise": "probability p of a false negative"}
SAYS = {
    "shift": (
        "Test pairs are drawn with a weight of popularity to the power -strength: at 0 the test part is like the training "
        "part, at 1 all items are about equally frequent in it."
    ),
    "noise": (
        "A tenth of the training pairs are taken out of the positives, and a negative is one of them with probability p. "
        "The row p = 0 is trained on all pairs, so it is no point of the curve."
    ),
}


def write_stress(runs: pl.DataFrame, out: Path, *, base: str, name: str = "data") -> list[Path]:
    """Write `runs.csv`, `summary.csv`, a curve per test, and `README.md`; give what was written.

    Args:
        runs: from `stress`.
        out: directory.
        base: the loss that the others are compared with.
        name: of the data, for titles.
    """
    make_directory(out)
    summary = summarize(runs, base)
    write_text(out / "runs.csv", runs.write_csv())
    write_text(out / "summary.csv", summary.write_csv())
    written = [out / "runs.csv", out / "summary.csv"]
    for test in summary["test"].unique(maintain_order=True).to_list():
        written += write_chart(stress_chart(summary, test, base=base, name=name), out / test)
    write_text(out / "README.md", _page(summary, base, name))
    return [*written, out / "README.md"]


def stress_chart(summary: pl.DataFrame, test: str, *, base: str, name: str) -> Chart:
    """The curves of one test, with the area between the base and the best other loss.

    Args:
        summary: from `summarize`.
        test: `shift` or `noise`.
        base: the loss that the others are compared with.
        name: of the data.
    """
    rows = summary.filter(pl.col("test") == test)
    if test == "noise":
        rows = rows.filter(pl.col("level") > 0)
    losses = rows["loss"].unique(maintain_order=True).to_list()
    levels = rows["level"].unique().sort().to_list()
    series = []
    for loss in losses:
        own = rows.filter(pl.col("loss") == loss).sort("level")
        errors = own["ndcg@20_deviation"].fill_null(0.0).to_list()
        points = [
            (float(levels.index(level)), value)
            for level, value in own.select("level", "ndcg@20").rows()
        ]
        series.append(Series(loss, points, errors=errors, is_reference=loss == base))
    area = _area(rows, losses, base)
    says = SAYS[test] if area is None else f"{SAYS[test]} The area is what {area.label}."
    # Levels at equal distances, as in the paper's figures.
    axis = Axis(AXES[test], categories=[f"{level:g}" for level in levels])
    return line_chart(f"{TITLES[test]}: {name}", says, series, x=axis, y=Axis("NDCG@20"), area=area)


def _area(rows: pl.DataFrame, losses: Sequence[str], base: str) -> Area | None:
    others = rows.filter(pl.col("loss") != base)
    if base not in losses or others.is_empty() or rows["level"].n_unique() < 2:
        return None
    means = others.group_by("loss", maintain_order=True).agg(pl.col("ndcg@20_improvement").mean())
    best = str(means.sort("ndcg@20_improvement", descending=True, nulls_last=True)["loss"][0])
    lower, upper = (rows.filter(pl.col("loss") == loss).sort("level") for loss in (base, best))
    notes = {
        float(place): f"{100 * gain:+.1f} %"
        for place, gain in enumerate(upper["ndcg@20_improvement"])
        if gain is not None
    }
    pairs = list(zip(lower["ndcg@20"], upper["ndcg@20"], strict=True))
    edges = [
        [(float(place), edge(pair)) for place, pair in enumerate(pairs)] for edge in (min, max)
    ]
    return Area(f"{best} gains over {base}", edges[0], edges[1], list(losses).index(best), notes)


def _page(summary: pl.DataFrame, base: str, name: str) -> str:
    lines = [f"# Stress tests of losses: {name}", ""]
    for test in summary["test"].unique(maintain_order=True).to_list():
        rows = summary.filter(pl.col("test") == test)
        deviation = " (± standard deviation over seeds)" if rows["n_seeds"].max() != 1 else ""
        lines += [f"## {TITLES[test]}", "", SAYS[test], "", f"![{TITLES[test]}]({test}.svg)", ""]
        lines += [f"Test part{deviation}; the last columns are relative to {base}.", ""]
        lines += [
            "| level | loss | NDCG@20 | Recall@20 | gain in NDCG@20 | gain in Recall@20 |",
            "| ---: | --- | ---: | ---: | ---: | ---: |",
        ]
        lines += [
            "| " + " | ".join(shown_row(row, base)) + " |" for row in rows.iter_rows(named=True)
        ]
        lines.append("")
    return "\n".join(lines)


def shown_row(row: dict[str, object], base: str) -> list[str]:
    """A row of the summary as text: level, loss, two values, two improvements.

    Args:
        row: of `summarize`, by name.
        base: the loss that the others are compared with.
    """
    cells = [f"{row['level']:g}", str(row["loss"])]
    for name in ("ndcg@20", "recall@20"):
        deviation = row[f"{name}_deviation"]
        cells.append(f"{row[name]:.4f}" + ("" if deviation is None else f" ± {deviation:.4f}"))
    for name in ("ndcg@20", "recall@20"):
        gain = row[f"{name}_improvement"]
        cells.append(
            "" if gain is None or row["loss"] == base else f"{100 * float(str(gain)):+.1f} %"
        )
    return cells
