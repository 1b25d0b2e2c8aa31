"""The report of a reproduction: published numbers, ours, and the difference between them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pslrec.artifacts import ArtifactError
from pslrec.reporting._agreement import Agreement, agreement_chart, agreement_of
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
    plus_minus,
    words,
)
from pslrec.reporting._grouping import grouped
from pslrec.reporting._improvement import improvement_blocks
from pslrec.reporting._noise import mean_curves, noise_chart
from pslrec.reporting._results import (
    HYPER,
    NAMED,
    NEEDED,
    Presentation,
    Result,
    Row,
    columns_of,
    differing_columns,
    is_selected_on_test,
    metric_title,
    metrics_of,
    number_in,
    position,
    read_results,
    results_of,
)
from pslrec.reporting._runs import write_report

# Files that any paper may have.
TITLES = {
    "claims": "Claims of the paper",
    "datasets": "Data sets",
    "cutoffs": "Other list lengths",
    "significance": "Significance",
}
# What else than data set, backbone and loss may tell cells apart.
EXTRA = NAMED[3:]
# Fewer levels make no curve.
FEWEST_LEVELS = 3
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


def reproduction_report(
    results_directory: Path, out: Path, *, presentation: Presentation | None = None
) -> Path:
    """Write the report of a reproduction.

    Args:
        results_directory: holds a CSV file per table, with a row per run.
        out: the HTML file to write; an older one is replaced.
        presentation: how the paper wants its results shown.

    Returns:
        The file written.
    """
    files = sorted(results_directory.glob("*.csv"))
    if not files:
        raise ArtifactError(
            f"`results_directory` must hold CSV files of results, found none in {results_directory}"
        )
    tables = {file.stem: read_results(file) for file in files}
    return write_report(reproduction_document(tables, presentation), out)


def reproduction_document(
    tables: Mapping[str, Sequence[Row]], presentation: Presentation | None = None
) -> Document:
    """Put the report of a reproduction together, before it is rendered.

    Args:
        tables: rows of each table, by name; a table without the columns of results is shown as it
            is.
        presentation: how the paper wants its results shown.
    """
    shown = presentation or Presentation()
    of_results = {name: rows for name, rows in tables.items() if _has_results(rows)}
    runs = _distinct(of_results)
    sections = [Section("Summary", _summary(runs, shown))]
    order = ["claims", *shown.tables]
    for name in sorted(tables, key=lambda name: (name not in order, name)):
        if name not in order:
            order.append(name)
    for name in order:
        rows = tables.get(name, [])
        titles = {**TITLES, **shown.tables}
        heading = titles.get(name, name.replace("_", " ").capitalize())
        if name in of_results:
            sections.append(Section(heading, _results_blocks(rows, shown)))
        elif rows:
            sections.append(Section(heading, _other_blocks(name, rows, shown)))
    return Document(shown.title, f"{len(runs)} runs compared with the published numbers", sections)


def _has_results(rows: Sequence[Row]) -> bool:
    return len(rows) > 0 and set(NEEDED) <= rows[0].keys() and bool(metrics_of(rows))


def _distinct(tables: Mapping[str, Sequence[Row]]) -> list[Row]:
    """The runs of all tables; a run that several tables show is counted once."""
    found = {}
    for rows in tables.values():
        for row in rows:
            without_table = dict(row)
            without_table.pop("table", None)
            found[tuple(without_table.items())] = row
    return list(found.values())


def _summary(runs: Sequence[Row], shown: Presentation) -> list[Block]:
    if not runs:
        return [Text("No table holds runs: none has the columns of results.", "warning")]
    commits = set()
    n_on_test = 0
    for row in runs:
        if row.get("commit"):
            commits.add(row["commit"])
        n_on_test += is_selected_on_test(row)
    agreement = agreement_of(runs, shown)
    blocks: list[Block] = [Tiles(_summary_tiles(runs, agreement))]
    if agreement.cells:
        blocks.append(Charts([agreement_chart(agreement)]))
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


def _summary_tiles(runs: Sequence[Row], agreement: Agreement) -> list[Tile]:
    tiles = [Tile("Runs", f"{len(runs):,}", f"{len(results_of(runs))} cells")]
    if agreement.cells:
        n_close = len(agreement.cells) - len(agreement.far)
        close = f"{n_close} of {len(agreement.cells)}"
        title = metric_title(agreement.metric)
        label = f"{title} within {100 * agreement.tolerance:g} %"
        tiles.append(Tile(label, close, "cells with a published value"))
        median = f"{100 * agreement.median:+.1f} %"
        tiles.append(Tile("Median difference", median, f"in {title}"))
    seconds = 0.0
    for row in runs:
        seconds += number_in(row.get("seconds")) or 0.0
    if seconds:
        tiles.append(Tile("Training", f"{seconds / 3600:.1f} h", "all runs together"))
    return tiles


def _results_blocks(rows: Sequence[Row], shown: Presentation) -> list[Block]:
    """The tables and charts of one table of results."""
    results = results_of(rows)
    by_loss = sorted(results, key=lambda result: position(result["loss"], shown.losses))
    places = grouped(by_loss, lambda result: (result["dataset"], result["backbone"]))
    blocks = _noise_blocks(rows, shown)
    charts = []
    for dataset, backbone in sorted(places):
        title = f"{backbone} on {dataset}"
        members = places[dataset, backbone]
        blocks.append(_place_table(title, members))
        chart = _difference_chart(title, members)
        if chart is not None:
            charts.append(chart)
    blocks += improvement_blocks(results, shown.gain)
    if charts:
        # Charts of one height side by side leave no holes in the page.
        charts.sort(key=lambda chart: -chart.size[1])
        blocks.append(Charts(charts))
    every_run = _plain_table("A row per run", rows)
    blocks.append(Fold(f"All runs ({len(rows)})", [every_run]))
    return blocks


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
        row.append(number(float(result.n_runs), ".0f"))
        for metric in result.ours:
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
        value = results[0][name]
        if name not in columns and value not in ("", "0.0"):
            common.append(f"{name} {value}")
    if common:
        caption += f"; {', '.join(common)}"
    heads = [*columns, "seeds"]
    for metric in results[0].ours:
        heads += [metric_title(metric), "published", "difference"]
    return Table(caption, [*heads, "inside noise"], rows)


def _ours_cell(result: Result, metric: str) -> Cell:
    mean = result.mean(metric)
    return Cell(plus_minus(mean, result.deviation(metric)), mean)


def _noise_cell(result: Result) -> Cell:
    inside = []
    for metric in result.ours:
        is_inside = result.is_inside_noise(metric)
        if is_inside is None:
            if not result.published:
                return words(None, "muted")
            return words("too few seeds", "muted")
        if is_inside:
            inside.append(metric_title(metric))
    if not inside:
        return words("no")
    if len(inside) < len(result.ours):
        return words(f"{inside[0]} only")
    return words("yes")


def _difference_chart(title: str, results: Sequence[Result]) -> Chart | None:
    columns = _columns_of(results)
    metric = list(results[0].ours)[-1]
    bars = []
    for result in results:
        difference = result.difference(metric)
        if difference is not None:
            name = " · ".join(filter(None, result.named(columns)))
            bars.append((name, 100 * difference))
    if not 0 < len(bars) <= MOST_BARS:
        return None
    name = metric_title(metric)
    says = f"How far our mean {name} is above or below the published one, in percent of the latter."
    axis = Axis(f"difference in {name}, %")
    return bar_chart(f"{title}: ours against published", says, bars, axis=axis, pattern="+.1f")


def _noise_blocks(rows: Sequence[Row], shown: Presentation) -> list[Block]:
    # Nothing and 0 both mean a run without noise, which is no point of these curves.
    noisy = [row for row in rows if number_in(row.get("noise"))]
    groups = grouped(noisy, lambda row: columns_of(row, CURVES))
    blocks: list[Block] = []
    for (backbone, dataset, *others), members in groups.items():
        how = ", ".join(filter(None, others))
        title = f"{backbone} on {dataset}, {how}"
        for metric in metrics_of(rows):
            charts = _noise_pair(title, members, metric, shown)
            if charts:
                blocks.append(Charts(charts))
    return blocks


def _noise_pair(title: str, rows: Sequence[Row], metric: str, shown: Presentation) -> list[Chart]:
    """Our curves and the published ones, each where there are any, on the same axes."""
    pair = []
    values: list[float] = []
    for source in ("ours", "published"):
        points = []
        for row in rows:
            value = number_in(row.get(f"{source}_{metric}"))
            if value is not None:
                points.append((row["loss"], float(row["noise"]), value))
        curves = mean_curves(points)
        longest = 0
        for curve in curves.values():
            longest = max(longest, len(curve))
            for _, value in curve:
                values.append(value)
        # Few points make no curve, but still widen the axis.
        if longest >= FEWEST_LEVELS:
            pair.append((source, curves))

    every_loss = {row["loss"] for row in rows}
    losses = sorted(every_loss, key=str.lower)
    charts = []
    for source, curves in pair:
        chart = noise_chart(
            f"{title}: {source}",
            curves,
            metric=metric_title(metric),
            gain=shown.gain,
            losses=losses,
            limits=(min(values), max(values)),
        )
        charts.append(chart)
    return charts


def _other_blocks(name: str, rows: Sequence[Row], shown: Presentation) -> list[Block]:
    """A table that holds no runs: the claims, or anything else as it stands in its file."""
    if name == "claims":
        blocks = claims_blocks(rows, shown.other_reading)
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
