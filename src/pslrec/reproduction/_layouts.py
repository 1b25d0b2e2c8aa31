"""How results are laid out: losses down, ways to make them across, published numbers beside."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pslrec.reporting import ENOUGH_SEEDS, Result, TextTable, metric_title
from pslrec.reproduction._gains import best_gain, gains_across, unusual, which
from pslrec.reproduction._grid import Grid
from pslrec.reproduction._paper import Table
from pslrec.reproduction._published import Row
from pslrec.reproduction._summaries import compared_value, value_of, variant_of

VARIANT_TITLES = {
    "sampled": "sampled",
    "distinct": "sampled without replacement",
    "catalog": "whole catalogue",
    "shared": "shared subsets",
}
# What rows of one significance test have in common.
TESTED = ("table", "dataset", "backbone", "setting", "noise", "mode", "protocol", "negatives")
ON_TEST = (
    "Where the protocol is `paper`, the epoch was chosen on the test part: the published way "
    "without a validation part."
)
INSIDE = (
    " Of three seeds or more, `inside` says that the printed number lies in the 95 % prediction "
    "interval of one more run."
)
UNRUN = "Rows without a number of ours have not been run."
Variant = tuple[str, str]
# Data set, backbone and setting of a table; no backbone where all are in one.
Place = tuple[str, str, str]


@dataclass
class Line:
    """A row of a table: what was printed, and our runs by the way they were made."""

    published: Mapping[str, float]
    cells: dict[Variant, Result] = field(default_factory=dict)


class Layout:
    """Makes the tables of text of one table of a paper.

    Args:
        grid: knows the order of data sets, backbones and losses.
        name: of the table.
        significance: rows of `significance.csv`.
    """

    def __init__(self, grid: Grid, name: str, significance: Sequence[Row] = ()) -> None:
        self._grid = grid
        self._table: Table = grid.paper.tables[name]
        self._improvement = self._table.improvement or grid.paper.improvement
        self._significance = significance
        self._metrics = grid.metrics

    def tables(self, summaries: Iterable[Result]) -> list[TextTable]:
        """The tables of some cells."""
        groups: dict[Place, list[Result]] = {}
        for summary in summaries:
            groups.setdefault(self._place(summary.key), []).append(summary)
        if self._table.across:
            return self._across(groups)
        unrun = self._unrun()
        places = sorted({*groups, *unrun}, key=self._place_order)
        # A table that has one setting only does not name it.
        settings = {setting.partition(",")[0] for _, _, setting in places}
        found = []
        for place in places:
            title = _title(*place, has_settings=len(settings) > 1)
            found.append(self._plain(title, groups.get(place, []), unrun.get(place, {})))
        return found

    def _place(self, row: Mapping[str, str]) -> Place:
        backbone = row["backbone"]
        if self._table.one_table:
            backbone = ""
        return row["dataset"], backbone, row["setting"]

    def _place_order(self, place: Place) -> tuple[int, int, Place]:
        paper = self._grid.paper
        return position(place[0], paper.datasets), position(place[1], paper.backbones), place

    def _unrun(self) -> dict[Place, dict[tuple[str, ...], Line]]:
        """What was printed, by place and name of the row, if the table shows it without runs."""
        found: dict[Place, dict[tuple[str, ...], Line]] = {}
        if not self._table.show_unrun:
            return found
        for part in self._table.parts:
            for file in part.published:
                for row in self._grid.published.rows(file):
                    if row["dataset"] not in part.datasets:
                        continue
                    place = self._place(row | {"setting": part.setting})
                    published = {m: float(row[m]) for m in self._metrics if row[m]}
                    name = (row["backbone"], row["loss"], row.get("form", ""))
                    found.setdefault(place, {}).setdefault(name, Line(published))
        return found

    def _lines(
        self, cells: Sequence[Result], unrun: Mapping[tuple[str, ...], Line]
    ) -> dict[tuple[str, ...], Line]:
        lines = {}
        for name, line in unrun.items():
            lines[name] = Line(line.published)
        for cell in cells:
            name = (cell["backbone"], cell["loss"], cell["form"])
            # What was printed without a form is of the form that the loss has by itself.
            plain = lines.pop((*name[:2], ""), None)
            line = lines.setdefault(name, plain or Line(cell.published))
            line.published = line.published or cell.published
            line.cells.setdefault(variant_of(cell), cell)
        return dict(sorted(lines.items(), key=self._line_order))

    def _line_order(self, item: tuple[tuple[str, ...], Line]) -> tuple[object, ...]:
        (backbone, loss, form), line = item
        place = (position(loss, self._grid.paper.losses), loss, form)
        if not self._table.one_table:
            return place
        # A leaderboard: the best first; what was not printed comes last.
        return -line.published.get(self._metrics[-1], 0.0), backbone, *place

    def _plain(
        self, title: str, cells: list[Result], unrun: Mapping[tuple[str, ...], Line]
    ) -> TextTable:
        lines = self._lines(cells, unrun)
        variants = sorted({variant_of(cell) for cell in cells}, key=_variant_order)
        has_forms = len({name[:2] for name in lines}) < len(lines)
        rows = []
        for name, line in lines.items():
            rows.append([self._label(name, has_forms), *self._numbers(line, variants)])
        header = ["loss"]
        for metric in self._metrics:
            header.append(f"published {metric_title(metric)}")
        for kind, protocol in variants:
            for metric in self._metrics:
                header.append(f"{metric_title(metric)}, {VARIANT_TITLES[kind]}, {protocol}")
        is_compared = self._improvement is not None and not self._table.one_table
        if is_compared and not has_forms:
            rows += self._gains(lines, variants)
        return TextTable(title, header, rows, self._notes(cells, lines))

    def _label(self, name: tuple[str, ...], has_forms: bool) -> str:
        backbone, loss, form = name
        parts = [loss]
        if self._table.one_table:
            parts.insert(0, backbone)
        if has_forms and form:
            parts.append(form)
        return ", ".join(parts)

    def _numbers(self, line: Line, variants: Sequence[Variant]) -> list[str]:
        texts = []
        for metric in self._metrics:
            text = ""
            if metric in line.published:
                text = f"{line.published[metric]:.4f}"
            texts.append(text)
        for variant in variants:
            for metric in self._metrics:
                text = ""
                if variant in line.cells:
                    cell = replace(line.cells[variant], published=line.published)
                    text = compared_value(cell, metric)
                texts.append(text)
        return texts

    def _notes(self, cells: list[Result], lines: Mapping[tuple[str, ...], Line]) -> list[str]:
        notes = []
        if cells:
            notes.append(seeds_note(cells))
        for cell in cells:
            if cell.n_runs >= ENOUGH_SEEDS and cell.published:
                notes[0] += INSIDE
                break
        if any(cell.is_selected_on_test for cell in cells):
            notes.append(ON_TEST)
        if not all(line.cells for line in lines.values()):
            notes.append(UNRUN)
        return notes

    def _gains(
        self, lines: Mapping[tuple[str, ...], Line], variants: Sequence[Variant]
    ) -> list[list[str]]:
        """The gain below a table, with the tests of it; rows without any number are left out."""
        assert self._improvement is not None
        metric = self._metrics[-1]
        before = [""] * (len(self._metrics) - 1)
        printed = {}
        for (_, loss, _), line in lines.items():
            if metric in line.published:
                printed[loss] = {"": line.published[metric]}
        gain, _ = best_gain(printed, self._improvement)
        gains = [f"**Imp. %** of {self._improvement.title}", *before, gain]
        users = ["p of Imp., paired t-test over users", *before, ""]
        seeds = ["p of Imp., paired t-test over seeds", *before, ""]
        for variant in variants:
            cells = {}
            for (_, loss, _), line in lines.items():
                if variant in line.cells:
                    cells[loss] = line.cells[variant]
            ours = {loss: cell.ours[metric] for loss, cell in cells.items()}
            gain, best = best_gain(ours, self._improvement)
            test: Mapping[str, str] = {}
            if gain:
                gain += which(best, self._improvement)
                test = self._tested(cells[best], metric)
            gains += [*before, gain]
            users += [*before, test.get("users_t_test", "")]
            seeds += [*before, test.get("seeds_t_test", "")]
        return [row for row in (gains, users, seeds) if any(row[1:])]

    def _tested(self, cell: Result, metric: str) -> Row:
        for row in self._significance:
            if (row["metric"], row["second"]) != (metric, cell["loss"]):
                continue
            if all(row[name] == cell[name] for name in TESTED):
                return row
        return {}

    def _across(self, groups: Mapping[Place, Sequence[Result]]) -> list[TextTable]:
        """A table per data set, backbone, way to make it, and metric."""
        by_way: dict[tuple[str, str, Variant], list[Result]] = {}
        for cells in groups.values():
            for cell in cells:
                way = (cell["dataset"], cell["backbone"], variant_of(cell))
                by_way.setdefault(way, []).append(cell)

        def order(way: tuple[str, str, Variant]) -> tuple[object, ...]:
            return position(way[0], self._grid.paper.datasets), way[1:]

        found = []
        for way in sorted(by_way, key=order):
            for metric in reversed(self._metrics):
                found.append(self._curve(way, by_way[way], metric))
        return found

    def _curve(
        self, way: tuple[str, str, Variant], cells: Sequence[Result], metric: str
    ) -> TextTable:
        dataset, backbone, (kind, protocol) = way
        levels = sorted({float(cell[self._table.across]) for cell in cells})
        found: dict[tuple[str, str], dict[float, Result]] = {}
        for cell in cells:
            name = (cell["setting"], cell["loss"])
            found.setdefault(name, {})[float(cell[self._table.across])] = cell
        losses = self._grid.paper.losses
        rows = []
        for setting, loss in sorted(found, key=lambda name: (position(name[1], losses), name)):
            row = [loss + unusual(setting)]
            for level in levels:
                row.append(_pair(found[setting, loss].get(level), metric))
            rows.append(row)
        if self._improvement is not None:
            rows += gains_across(found, levels, metric, self._improvement)
        printed = ""
        if any(cell.published for cell in cells):
            printed = "Ours, then the published value. "
        heads = [self._table.across_title or self._table.across, *(f"{p:g}" for p in levels)]
        way_title = f"{dataset}, {backbone}, {VARIANT_TITLES[kind]}, {protocol}"
        title = f"{metric_title(metric)}: {way_title}"
        return TextTable(title, heads, rows, [printed + seeds_note(cells)])


def _title(dataset: str, backbone: str, setting: str, *, has_settings: bool) -> str:
    title = ", ".join(filter(None, (dataset, backbone)))
    name, _, rest = setting.partition(",")
    if rest:
        return f"{title} ({setting})"
    if has_settings:
        return f"{title} ({name.upper()})"
    return title


def _variant_order(variant: Variant) -> tuple[int, Variant]:
    return list(VARIANT_TITLES).index(variant[0]), variant


def seeds_note(cells: Sequence[Result]) -> str:
    """How many seeds there are."""
    counts = sorted({cell.n_runs for cell in cells})
    fewest, most = counts[0], counts[-1]
    if most == 1:
        return "One seed."
    said = "± is the standard deviation from seed to seed."
    if fewest == most:
        return f"{most} seeds; {said}"
    return f"{fewest} to {most} seeds; {said} Imp. is of the seeds that both have."


def position(name: str, order: Iterable[str]) -> int:
    """Where a name stands; names that are not listed come last."""
    listed = list(order)
    if name in listed:
        return listed.index(name)
    return len(listed)


def _pair(cell: Result | None, metric: str) -> str:
    if cell is None:
        return ""
    text = value_of(cell, metric)
    if metric in cell.published:
        text += f" / {cell.published[metric]:.4f}"
    return text
