"""The report of a reproduction: published numbers, ours, and the difference, from the tidy tables of results."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from pslrec.artifacts import ArtifactError
from pslrec.reporting._axes import Axis
from pslrec.reporting._charts import bar_chart
from pslrec.reporting._claims import claims_blocks
from pslrec.reporting._document import (
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
from pslrec.reporting._noise import mean_curves, noise_chart
from pslrec.reporting._results import (
    HYPER,
    LOSS_ORDER,
    METRICS,
    NAMED,
    NEEDED,
    TITLES,
    Result,
    Row,
    number_in,
    read_results,
    results_of,
)
from pslrec.reporting._runs import write_report
from pslrec.reporting._surrogates import surrogate_section

CLOSE = 0.02
# Of two levels of noise, which make no curves.
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
    "forms": "Inside and outside temperature",
    "forms-search": "Settings tried for the inside temperature",
    "cutoffs": "Other list lengths",
}
# A table longer than this is shown in part; the CSV file has all of it.
MOST_ROWS = 300
# One longer than this is folded up.
LONG = 15
# A chart of more differences is left out; there are curves where there are so many.
MOST_BARS = 40


def reproduction_report(results_directory: Path, out: Path, *, title: str = "Reproduction") -> Path:
    """Write the report of a reproduction.

    Args:
        results_directory: holds a CSV file per table, a row per run.
        out: the HTML file; an older one is replaced.
        title: of the page.
    """
    files = sorted(results_directory.glob("*.csv"))
    if not files:
        raise ArtifactError(
            f"`results_directory` must hold CSV files of results, found none in {results_directory}"
        )
    return write_report(
        reproduction_document({file.stem: read_results(file) for file in files}, title), out
    )


def reproduction_document(
    tables: Mapping[str, Sequence[Row]], title: str = "Reproduction"
) -> Document:
    """The report before it is rendered.

    Args:
        tables: rows of each table, by name; a table without the columns of results is shown as it stands.
        title: of the page.
    """
    known = {
        name: rows
        for name, rows in tables.items()
        if rows and all(column in rows[0] for column in NEEDED)
    }
    results = {name: results_of(rows) for name, rows in known.items()}
    rows = _distinct(known)
    sections = [Section("Summary", _summary(rows))]
    for name in sorted(
        tables, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name)
    ):
        heading = TABLE_TITLES.get(name, name.replace("_", " ").capitalize())
        if name in known:
            curves = [] if name == INTERPRETATIONS else _noise_blocks(known[name])
            blocks = [*curves, *_table_blocks(results[name]), _runs_fold(known[name])]
            sections.append(Section(heading, blocks))
        elif tables[name]:
            blocks = (claims_blocks(tables[name]) if name == "claims" else []) or [
                _other_table(name, tables[name])
            ]
            sections.append(Section(heading, blocks))
    sections.append(surrogate_section())
    return Document(title, f"{len(rows)} runs beside the published numbers", sections)


def _distinct(tables: Mapping[str, Sequence[Row]]) -> list[Row]:
    """The runs of all tables; one that several tables show is counted once."""
    found = {
        tuple(item for item in row.items() if item[0] != "table"): row
        for rows in tables.values()
        for row in rows
    }
    return list(found.values())


def _summary(rows: Sequence[Row]) -> list[Block]:
    if not rows:
        return [Text("No table holds runs with the columns of results.", "warning")]
    every = results_of(rows)
    # After a comma a setting says what is unusual about it, such as a reading of the paper that does not fit it.
    usual = [result for result in every if "," not in result.key["setting"]]
    differences = [d for result in usual if (d := result.difference("ndcg20")) is not None]
    tiles = [Tile("Runs", f"{len(rows):,}", f"{len(every)} cells")]
    if differences:
        close = sum(abs(d) <= CLOSE for d in differences)
        tiles.append(
            Tile(
                f"Within {CLOSE:.0%} of NDCG@20",
                f"{close} of {len(differences)}",
                "published cells, as printed",
            )
        )
        tiles.append(
            Tile(
                "Median difference", f"{100 * statistics.median(differences):+.1f} %", "of NDCG@20"
            )
        )
    seconds = [value for row in rows if (value := number_in(row.get("seconds"))) is not None]
    if seconds:
        tiles.append(Tile("Training", f"{sum(seconds) / 3600:.1f} h", "all runs together"))
    commits = sorted({row.get("commit", "") for row in rows} - {""})
    blocks: list[Block] = [Tiles(tiles)]
    if commits:
        blocks.append(
            Text(
                f"Made at {'commit' if len(commits) == 1 else 'commits'} {', '.join(commits[:12])}.",
                "note",
            )
        )
    on_test = sum(row.get("selected_on_test", "").lower() == "true" for row in rows)
    if on_test:
        blocks.append(
            Text(
                f"In {on_test} of the runs the epoch was chosen on the test part, as in the paper where there is no validation.",
                "note",
            )
        )
    return blocks


def _table_blocks(results: Sequence[Result]) -> list[Block]:
    places: dict[str, list[Result]] = {}
    for result in sorted(
        results, key=lambda each: LOSS_ORDER.get(each.key["loss"], len(LOSS_ORDER))
    ):
        places.setdefault(f"{result.key['backbone']} on {result.key['dataset']}", []).append(result)
    # Data sets in the order of their names, as in the file.
    ordered = dict(sorted(places.items(), key=lambda place: place[0].split(" on ")[::-1]))
    charts = [
        chart
        for place, members in ordered.items()
        if (chart := _difference_chart(place, members)) is not None
    ]
    # Charts of one height side by side leave no holes in the page.
    charts.sort(key=lambda chart: -chart.size[1])
    tables = [_place_table(place, members) for place, members in ordered.items()]
    return [*tables, *improvement_blocks(results), *([Charts(charts)] if charts else [])]


def _columns_of(results: Sequence[Result]) -> list[str]:
    """The loss, and what else tells the cells of one data set and backbone apart."""
    columns = [
        "loss",
        *(name for name in NAMED[3:] if len({result.key[name] for result in results} - {""}) > 1),
    ]
    keys = [tuple(result.key[name] for name in NAMED) for result in results]
    if len(set(keys)) < len(keys):
        columns += [name for name in HYPER if len({result.key[name] for result in results}) > 1]
    return columns


def _place_table(place: str, results: Sequence[Result]) -> Table:
    columns = _columns_of(results)
    heads = [part for m in METRICS for part in (TITLES[m], "published", "difference")]
    rows = [
        [
            *(words(result.key[name]) for name in columns),
            number(float(len(result.ours["ndcg20"])), ".0f"),
            *_result_cells(result),
            _noise_cell(result),
        ]
        for result in results
    ]
    same = [
        f"{name} {results[0].key[name]}"
        for name in NAMED[3:]
        if name not in columns and results[0].key[name] not in ("", "0.0")
    ]
    caption = f"{place}: ours (mean over seeds ± standard deviation), published, and the relative difference"
    return Table(
        caption + (f"; {', '.join(same)}" if same else ""),
        [*columns, "seeds", *heads, "inside noise"],
        rows,
    )


def _difference_chart(place: str, results: Sequence[Result]) -> Chart | None:
    columns = _columns_of(results)
    bars = [
        (" · ".join(result.key[name] for name in columns if result.key[name]), 100 * difference)
        for result in results
        if (difference := result.difference("ndcg20")) is not None
    ]
    if not 0 < len(bars) <= MOST_BARS:
        return None
    says = "Relative difference of our mean to the published NDCG@20, in percent."
    axis = Axis("difference of NDCG@20 in %")
    return bar_chart(f"{place}: ours against published", says, bars, axis=axis, pattern="+.1f")


def _result_cells(result: Result) -> list[Cell]:
    cells = []
    for metric in METRICS:
        mean, deviation = result.mean(metric), result.deviation(metric)
        ours = number(mean)
        if mean is not None and deviation is not None:
            ours = Cell(f"{mean:.4f} ± {deviation:.4f}", mean)
        cells += [ours, number(result.published.get(metric)), percent(result.difference(metric))]
    return cells


def _noise_cell(result: Result) -> Cell:
    inside = [result.is_inside_noise(metric) for metric in METRICS]
    if None in inside:
        return words("too few seeds" if result.published else None, "muted")
    return words(
        "yes"
        if all(inside)
        else "no"
        if not any(inside)
        else f"{TITLES[METRICS[inside.index(True)]]} only"
    )


def _noise_blocks(rows: Sequence[Row]) -> list[Block]:
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if number_in(row.get("noise")):
            key = tuple(
                row.get(name) or ""
                for name in ("backbone", "dataset", "setting", "mode", "protocol")
            )
            groups.setdefault(key, []).append(row)
    blocks: list[Block] = []
    for key, members in groups.items():
        for metric in METRICS:
            charts = _noise_pair(
                f"{key[0]} on {key[1]}, {', '.join(part for part in key[2:] if part)}",
                members,
                metric,
            )
            blocks += [Charts(charts)] if charts else []
    return blocks


def _noise_pair(title: str, rows: Sequence[Row], metric: str) -> list[Chart]:
    found: dict[str, dict[str, dict[float, list[float]]]] = {"ours": {}, "published": {}}
    for row in rows:
        p = number_in(row.get("noise")) or 0.0
        for source, curves in found.items():
            value = number_in(row.get(f"{source}_{metric}"))
            if value is not None:
                curves.setdefault(row["loss"], {}).setdefault(p, []).append(value)
    losses = sorted({row["loss"] for row in rows}, key=str.lower)
    curves_of = {source: mean_curves(curves) for source, curves in found.items()}
    values = [v for curves in curves_of.values() for curve in curves.values() for _, v in curve]
    return [
        noise_chart(
            f"{title}: {source}",
            curves,
            metric=TITLES[metric],
            losses=losses,
            limits=(min(values), max(values)),
        )
        for source, curves in curves_of.items()
        if any(len(curve) > 1 for curve in curves.values())
    ]


def _runs_fold(rows: Sequence[Row]) -> Block:
    return Fold(f"Every run ({len(rows)})", [_plain_table("A row per run", rows)])


def _other_table(name: str, rows: Sequence[Row]) -> Block:
    table = _plain_table(f"{name}.csv", rows)
    return table if len(rows) <= LONG else Fold(f"All {len(rows)} rows of {name}.csv", [table])


def _plain_table(caption: str, rows: Sequence[Row]) -> Table:
    columns = list(rows[0])
    if len(rows) > MOST_ROWS:
        caption += f"; the first {MOST_ROWS} of {len(rows)}"
    cells = [[_plain_cell(row.get(name, "")) for name in columns] for row in rows[:MOST_ROWS]]
    return Table(caption, columns, cells)


def _plain_cell(text: str) -> Cell:
    value = number_in(text)
    return words(text) if value is None else Cell(text, value)
