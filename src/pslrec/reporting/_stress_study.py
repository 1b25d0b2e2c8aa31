"""The report of a stress test: curves of losses, and what each gains over the first one."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from pslrec.reporting._axes import Axis
from pslrec.reporting._charts import Series, line_chart
from pslrec.reporting._document import (
    Block,
    Chart,
    Charts,
    Document,
    Section,
    Table,
    Text,
    plus_minus,
    words,
)
from pslrec.reporting._noise import improvement_area
from pslrec.reporting._results import Gain
from pslrec.reporting._text_table import TextTable

TITLES = {"shift": "Shift of popularity", "noise": "False negatives"}
AXES = {"shift": "strength of the shift", "noise": "probability p of a false negative"}
LEVELS = {"shift": "strength", "noise": "p"}
SAYS = {
    "shift": (
        "Test pairs are drawn with a weight of popularity to the power -strength: at 0 the test "
        "part is like the training part, at 1 all items are about equally frequent in it."
    ),
    "noise": (
        "A tenth of the training pairs are taken out of the positives, and a negative is one of "
        "them with probability p. The row p = 0 is trained on all pairs, so it is no point of the "
        "curve."
    ),
}
METRICS = ("ndcg@20", "recall@20")


def stress_document(summary: pl.DataFrame, name: str) -> Document:
    """The report of a stress test.

    Args:
        summary: a row for every test, level and loss; the first loss is what others are compared
            with.
        name: of the data.
    """
    base = str(summary["loss"][0])
    sections = []
    for test, table in stress_tables(summary, base).items():
        chart = stress_chart(summary, test, base=base, name=name)
        rows = [list(map(words, cells)) for cells in table.rows]
        blocks: list[Block] = [Charts([chart]), Table(table.title, list(table.header), rows)]
        blocks += [Text(note, "note") for note in table.notes]
        sections.append(Section(TITLES[test], blocks))
    losses = summary["loss"].unique(maintain_order=True).to_list()
    return Document(f"Stress tests of losses: {name}", ", ".join(losses), sections)


def stress_chart(summary: pl.DataFrame, test: str, *, base: str, name: str) -> Chart:
    """The curves of one test, with the area between the base and the best other loss.

    Args:
        summary: as above.
        test: `shift` or `noise`.
        base: the loss that the others are compared with.
        name: of the data.
    """
    rows = summary.filter(pl.col("test") == test)
    if test == "noise":
        rows = rows.filter(pl.col("level") > 0)
    levels = rows["level"].unique().sort().to_list()
    curves: dict[str, list[tuple[float, float]]] = {}
    errors: dict[str, list[float]] = {}
    for row in rows.sort("level", maintain_order=True).iter_rows(named=True):
        # Levels at equal distances, as in figures of papers.
        point = (float(levels.index(row["level"])), row["ndcg@20"])
        curves.setdefault(row["loss"], []).append(point)
        errors.setdefault(row["loss"], []).append(row["ndcg@20_deviation"] or 0.0)
    series = []
    for loss, points in curves.items():
        is_base = loss == base
        series.append(Series(loss, points, errors=errors[loss], is_reference=is_base))
    others = [loss for loss in curves if loss != base]
    area = improvement_area(curves, list(curves), Gain(others, base))
    says = SAYS[test]
    if area is not None:
        says += f" The area is the gain of {area.label}."
    axis = Axis(AXES[test], categories=[f"{level:g}" for level in levels])
    return line_chart(f"{TITLES[test]}: {name}", says, series, x=axis, y=Axis("NDCG@20"), area=area)


def stress_tables(summary: pl.DataFrame, base: str) -> dict[str, TextTable]:
    """The values of every test, and the gains over the base.

    Args:
        summary: as above.
        base: the loss that the others are compared with.
    """
    tables = {}
    for test in summary["test"].unique(maintain_order=True).to_list():
        rows = []
        for row in summary.filter(pl.col("test") == test).iter_rows(named=True):
            rows.append(_shown(row, base))
        header = [LEVELS[test], "loss", "NDCG@20", "Recall@20", "gain in NDCG", "in Recall"]
        title = f"{TITLES[test]}: test part, gains over {base}"
        note = "± is the standard deviation over seeds."
        if summary["n_seeds"].max() == 1:
            note = "One seed."
        tables[test] = TextTable(title, header, rows, [note], labels=2)
    return tables


def _shown(row: Mapping[str, Any], base: str) -> list[str]:
    cells = [f"{row['level']:g}", row["loss"]]
    for name in METRICS:
        cells.append(plus_minus(row[name], row[f"{name}_deviation"]))
    for name in METRICS:
        gain = row[f"{name}_improvement"]
        text = ""
        if gain is not None and row["loss"] != base:
            text = f"{100 * gain:+.1f} %"
        cells.append(text)
    return cells
