"""The report of a reproduction: published numbers, ours, and the difference between them."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from pslrec.artifacts import ArtifactError
from pslrec.reporting._axes import Axis
from pslrec.reporting._charts import bar_chart
from pslrec.reporting._claims import claims_blocks
from pslrec.reporting._document import (
    MISSING,
    Block,
    Cell,
    Chart,
    Charts,
    Document,
    Fold,
    Section,
    Table,
    Text,
    Tile,
    Tiles,
    number,
    percent,
    words,
)
from pslrec.reporting._improvement import improvement_blocks
from pslrec.reporting._noise import ByLoss, mean_curves, noise_chart
from pslrec.reporting._results import (
    HYPER,
    LOSS_ORDER,
    METRICS,
    NAMED,
    NEEDED,
    TITLES,
    Result,
    Row,
    columns_of,
    differing_columns,
    number_in,
    read_results,
    results_of,
)
from pslrec.reporting._runs import write_report
from pslrec.reporting._surrogates import surrogate_section

# A cell within this share of the published value counts as close to it.
CLOSE = 0.02
INTERPRETATIONS = "noise-interpretations"
ORDER = (
    "claims",
    "iid",
    "ood",
    "noise",
    INTERPRETATIONS,
    "softplus",
    "forms",
    "theory",
    "datasets",
)
TABLE_TITLES = {
    "claims": "Claims of the paper",
    "theory": "Theory",
    "datasets": "Data sets",
    "iid": "IID (Table 1)",
    "ood": "Popularity shift (Table 2)",
    "noise": "Noise (Figures 2 and C.1-C.8)",
    INTERPRETATIONS: "Readings of the noise setting",
    "softplus": "Softplus (C.2)",
    "forms": "Temperature inside and outside",
    "forms-search": "Settings tried for the inside temperature",
    "cutoffs": "Other list lengths",
}
# What else than data set, backbone and loss may tell cells apart.
EXTRA = NAMED[3:]
# What runs of one pair of noise charts have in common.
CURVES = ("backbone", "dataset", "setting", "mode", "protocol")
# Only the first rows of a longer table are shown; the CSV file has all of them.
MOST_ROWS = 300
# A longer table of another kind is folded.
LONG = 15
# A chart of more bars is left out; where there are so many, there are curves.
MOST_BARS = 40
# Long reproductions are made at dozens of commits; the column of all runs names each.
MOST_COMMITS = 12


def reproduction_report(results_directory: Path, out: Path, *, title: str = "Reproduction") -> Path:
    """Write the report of a reproduction.

    Args:
        results_directory: holds a CSV file per table, with a row per run.
        out: the HTML file to write; an older one is replaced.
        title: heading of the page.

    Returns:
        The file written.
    """
    files = sorted(results_directory.glob("*.csv"))
    if not files:
        raise ArtifactError(
            f"`results_directory` must hold CSV files of results, found none in {results_directory}"
        )
    tables = {file.stem: read_results(file) for file in files}
    return write_report(reproduction_document(tables, title), out)


def reproduction_document(
    tables: Mapping[str, Sequence[Row]], title: str = "Reproduction"
) -> Document:
    """Put the report of a reproduction together, before it is rendered.

    Args:
        tables: rows of each table, by name; a table without the columns of results is shown as it
            is.
        title: heading of the page.
    """
    of_results = {name: rows for name, rows in tables.items() if _has_results(rows)}
    runs = _distinct(of_results)
    sections = [Section("Summary", _summary(runs))]
    for name in sorted(tables, key=_order):
        rows = tables[name]
        heading = TABLE_TITLES.get(name, name.replace("_", " ").capitalize())
        if name in of_results:
            sections.append(Section(heading, _results_blocks(name, rows)))
        elif rows:
            sections.append(Section(heading, _other_blocks(name, rows)))
    # The same figures for every reproduction: they explain what the losses do, so they come last.
    sections.append(surrogate_section())
    return Document(title, f"{len(runs)} runs compared with the published numbers", sections)


def _has_results(rows: Sequence[Row]) -> bool:
    return len(rows) > 0 and set(NEEDED) <= rows[0].keys()


def _order(name: str) -> tuple[int, str]:
    if name in ORDER:
        return ORDER.index(name), name
    return len(ORDER), name


def _distinct(tables: Mapping[str, Sequence[Row]]) -> list[Row]:
    """The runs of all tables; a run that several tables show is counted once."""
    found = {}
    for rows in tables.values():
        for row in rows:
            without_table = dict(row)
            without_table.pop("table", None)
            found[tuple(without_table.items())] = row
    return list(found.values())


def _summary(runs: Sequence[Row]) -> list[Block]:
    if not runs:
        return [Text("No table holds runs: none has the columns of results.", "warning")]
    commits = set()
    n_on_test = 0
    for row in runs:
        if row.get("commit"):
            commits.add(row["commit"])
        # As Python writes it in our own files, or as others do.
        if row.get("selected_on_test", "").lower() == "true":
            n_on_test += 1
    blocks: list[Block] = [Tiles(_summary_tiles(runs))]
    if commits:
        noun = "commit"
        if len(commits) > 1:
            noun = "commits"
        named = ", ".join(sorted(commits)[:MOST_COMMITS])
        blocks.append(Text(f"Made at {noun} {named}.", "note"))
    if n_on_test:
        says = (
            f"In {n_on_test} of the runs, the epoch was chosen on the test set, "
            "as the paper does where there is no validation set."
        )
        blocks.append(Text(says, "note"))
    return blocks


def _summary_tiles(runs: Sequence[Row]) -> list[Tile]:
    cells = results_of(runs)
    differences = []
    n_close = 0
    for cell in cells:
        # After a comma, a setting says what is unusual about it, such as a reading of the paper
        # that does not fit it: such a cell is no attempt to come close.
        is_usual = "," not in cell.key["setting"]
        difference = cell.difference("ndcg20")
        if is_usual and difference is not None:
            differences.append(difference)
            if abs(difference) <= CLOSE:
                n_close += 1
    seconds = []
    for row in runs:
        value = number_in(row.get("seconds"))
        if value is not None:
            seconds.append(value)

    tiles = [Tile("Runs", f"{len(runs):,}", f"{len(cells)} cells")]
    if differences:
        close = f"{n_close} of {len(differences)}"
        median = f"{100 * statistics.median(differences):+.1f} %"
        label = f"NDCG@20 within {CLOSE:.0%}"
        tiles.append(Tile(label, close, "cells with a published value"))
        tiles.append(Tile("Median difference", median, "in NDCG@20"))
    if seconds:
        hours = f"{sum(seconds) / 3600:.1f} h"
        tiles.append(Tile("Training", hours, "all runs together"))
    return tiles


def _results_blocks(name: str, rows: Sequence[Row]) -> list[Block]:
    """The tables and charts of one table of results."""
    results = results_of(rows)
    by_loss = sorted(results, key=_loss_order)
    places: dict[tuple[str, str], list[Result]] = {}
    for result in by_loss:
        place = (result.key["dataset"], result.key["backbone"])
        places.setdefault(place, []).append(result)

    blocks: list[Block] = []
    # The readings of the noise setting were tried at two levels only, which make no curves.
    if name != INTERPRETATIONS:
        blocks += _noise_blocks(rows)
    charts = []
    for dataset, backbone in sorted(places):
        title = f"{backbone} on {dataset}"
        members = places[dataset, backbone]
        blocks.append(_place_table(title, members))
        chart = _difference_chart(title, members)
        if chart is not None:
            charts.append(chart)
    blocks += improvement_blocks(results)
    if charts:
        # Charts of one height side by side leave no holes in the page.
        charts.sort(key=lambda chart: -chart.size[1])
        blocks.append(Charts(charts))
    every_run = _plain_table("A row per run", rows)
    blocks.append(Fold(f"All runs ({len(rows)})", [every_run]))
    return blocks


def _loss_order(result: Result) -> int:
    return LOSS_ORDER.get(result.key["loss"], len(LOSS_ORDER))


def _columns_of(results: Sequence[Result]) -> list[str]:
    """The loss, and what else tells the cells of one data set and backbone apart."""
    columns = ["loss", *differing_columns(results, EXTRA, ignore_empty=True)]
    # Hyper-parameters are shown only if cells would look the same without them.
    keys = {result.named(NAMED) for result in results}
    if len(keys) < len(results):
        columns += differing_columns(results, HYPER)
    return columns


def _place_table(title: str, results: Sequence[Result]) -> Table:
    columns = _columns_of(results)
    rows = []
    for result in results:
        row = list(map(words, result.named(columns)))
        row.append(number(float(len(result.ours["ndcg20"])), ".0f"))
        for metric in METRICS:
            row.append(_ours_cell(result, metric))
            row.append(number(result.published.get(metric)))
            row.append(percent(result.difference(metric)))
        row.append(_noise_cell(result))
        rows.append(row)

    caption = (
        f"{title}: ours (mean over seeds ± standard deviation), published, "
        "and the relative difference"
    )
    # What all cells have in common is said once.
    common = []
    for name in EXTRA:
        value = results[0].key[name]
        if name not in columns and value not in ("", "0.0"):
            common.append(f"{name} {value}")
    if common:
        caption += f"; {', '.join(common)}"
    heads = [*columns, "seeds"]
    for metric in METRICS:
        heads += [TITLES[metric], "published", "difference"]
    return Table(caption, [*heads, "inside noise"], rows)


def _ours_cell(result: Result, metric: str) -> Cell:
    mean = result.mean(metric)
    deviation = result.deviation(metric)
    if mean is None or deviation is None:
        return number(mean)
    return Cell(f"{mean:.4f} ± {deviation:.4f}", mean)


def _noise_cell(result: Result) -> Cell:
    inside = []
    for metric in METRICS:
        is_inside = result.is_inside_noise(metric)
        if is_inside is None:
            if not result.published:
                return words(None, "muted")
            return words("too few seeds", "muted")
        if is_inside:
            inside.append(TITLES[metric])
    if not inside:
        return words("no")
    if len(inside) < len(METRICS):
        return words(f"{inside[0]} only")
    return words("yes")


def _difference_chart(title: str, results: Sequence[Result]) -> Chart | None:
    columns = _columns_of(results)
    bars = []
    for result in results:
        difference = result.difference("ndcg20")
        if difference is not None:
            name = " · ".join(filter(None, result.named(columns)))
            bars.append((name, 100 * difference))
    if not 0 < len(bars) <= MOST_BARS:
        return None
    says = "How far our mean NDCG@20 is above or below the published one, in percent of the latter."
    axis = Axis("difference in NDCG@20, %")
    return bar_chart(f"{title}: ours against published", says, bars, axis=axis, pattern="+.1f")


def _noise_blocks(rows: Sequence[Row]) -> list[Block]:
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        # Nothing and 0 both mean a run without noise, which is no point of these curves.
        if number_in(row.get("noise")):
            groups.setdefault(columns_of(row, CURVES), []).append(row)
    blocks: list[Block] = []
    for (backbone, dataset, *others), members in groups.items():
        how = ", ".join(filter(None, others))
        title = f"{backbone} on {dataset}, {how}"
        for metric in METRICS:
            charts = _noise_pair(title, members, metric)
            if charts:
                blocks.append(Charts(charts))
    return blocks


def _noise_pair(title: str, rows: Sequence[Row], metric: str) -> list[Chart]:
    """Our curves and the published ones, each where there are any, on the same axes."""
    pair = []
    values: list[float] = []
    for source in ("ours", "published"):
        by_loss: ByLoss = {}
        for row in rows:
            value = number_in(row.get(f"{source}_{metric}"))
            if value is not None:
                level = number_in(row.get("noise")) or 0.0
                by_loss.setdefault(row["loss"], {}).setdefault(level, []).append(value)
        curves = mean_curves(by_loss)
        longest = 0
        for curve in curves.values():
            longest = max(longest, len(curve))
            for _, value in curve:
                values.append(value)
        # Single points make no curve, but still widen the axis.
        if longest > 1:
            pair.append((source, curves))

    every_loss = {row["loss"] for row in rows}
    losses = sorted(every_loss, key=str.lower)
    charts = []
    for source, curves in pair:
        chart = noise_chart(
            f"{title}: {source}",
            curves,
            metric=TITLES[metric],
            losses=losses,
            limits=(min(values), max(values)),
        )
        charts.append(chart)
    return charts


def _other_blocks(name: str, rows: Sequence[Row]) -> list[Block]:
    """A table that holds no runs: the claims, or anything else as it stands in its file."""
    if name == "claims":
        blocks = claims_blocks(rows)
        if blocks:
            return blocks
    table = _plain_table(f"{name}.csv", rows)
    if len(rows) <= LONG:
        return [table]
    return [Fold(f"All {len(rows)} rows of {name}.csv", [table])]


def _plain_table(caption: str, rows: Sequence[Row]) -> Table:
    columns = list(rows[0])
    if len(rows) > MOST_ROWS:
        caption += f"; the first {MOST_ROWS} of {len(rows)}"
    shown = []
    for row in rows[:MOST_ROWS]:
        cells = []
        for name in columns:
            text = row.get(name, "")
            # Numbers keep the digits that they have in the file, and are sorted as numbers.
            cells.append(Cell(text or MISSING, number_in(text)))
        shown.append(cells)
    return Table(caption, columns, shown)
