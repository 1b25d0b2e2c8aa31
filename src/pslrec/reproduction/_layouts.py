"""How results are laid out: losses down, ways to make them across, published numbers beside."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pslrec.reporting import (
    ENOUGH_SEEDS,
    Gain,
    Result,
    Sheet,
    TextTable,
    best_gain,
    grouped,
    metric_title,
    plus_minus,
    position,
)
from pslrec.reproduction._cells import DISTINCT
from pslrec.reproduction._grid import Grid
from pslrec.reproduction._published import Row

VARIANT_TITLES = {
    "sampled": "sampled",
    "distinct": "sampled without replacement",
    "catalog": "whole catalogue",
    "shared": "shared subsets",
}
# What names a row of a table.
LINE = ("backbone", "loss", "form")
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
# The way that what was printed was made: a column of its own beside ours.
PUBLISHED: Variant = ("published", "")
# A row of a table: what was printed, which names it and has no runs, and our runs.
Line = Mapping[Variant, Result]
# Data set, backbone and setting of a table; no backbone where all are in one.
Place = tuple[str, str, str]


class Layout:
    """Makes the tables of text of one table of a paper.

    Args:
        grid: knows the order of data sets, backbones and losses.
        name: of the table.
        significance: rows of `significance.csv`.
    """

    def __init__(self, grid: Grid, name: str, significance: Sequence[Row] = ()) -> None:
        self._grid = grid
        self._table = grid.paper.tables[name]
        self._gain = self._table.improvement or grid.paper.improvement
        self._significance = significance
        self._metrics = grid.metrics

    def tables(self, cells: Iterable[Result]) -> list[TextTable]:
        """The tables of some cells."""
        if self._table.across:
            return self._across(cells)
        places = grouped(cells, self._place)
        unrun = grouped(self._unrun(), self._place)
        order = sorted({*places, *unrun}, key=self._place_order)
        # A table that has one setting only does not name it.
        settings = {setting.partition(",")[0] for _, _, setting in order}
        found = []
        for place in order:
            title = _title(*place, has_settings=len(settings) > 1)
            found.append(self._plain(title, places.get(place, []), unrun.get(place, [])))
        return found

    def _place(self, cell: Result) -> Place:
        backbone = cell["backbone"]
        if self._table.one_table:
            backbone = ""
        return cell["dataset"], backbone, cell["setting"]

    def _place_order(self, place: Place) -> tuple[int, int, Place]:
        paper = self._grid.paper
        return position(place[0], paper.datasets), position(place[1], paper.backbones), place

    def _unrun(self) -> list[Result]:
        """What was printed, if the table shows it without runs."""
        if not self._table.show_unrun:
            return []
        found = []
        for part in self._table.parts:
            for file in part.published:
                for row in self._grid.published.rows(file):
                    if row["dataset"] in part.datasets:
                        published = {m: float(row[m]) for m in self._metrics if row[m]}
                        found.append(Result(row | {"setting": part.setting}, {}, published))
        return found

    def _lines(self, cells: Sequence[Result], unrun: Sequence[Result]) -> list[Line]:
        printed: dict[tuple[str, ...], Result] = {}
        for one in unrun:
            printed.setdefault(one.named(LINE), one)
        lines = []
        for name, members in grouped(cells, lambda cell: cell.named(LINE)).items():
            # What was printed without a form is of the form that the loss has by itself.
            rows = [printed.pop(key, None) for key in (name, (*name[:2], ""))]
            known = [each.published for each in (*rows, *members) if each is not None]
            published = next(filter(None, known), {})
            line = {PUBLISHED: Result(members[0].key, {}, published)}
            for cell in members:
                line.setdefault(variant_of(cell), replace(cell, published=published))
            lines.append(line)
        lines += [{PUBLISHED: one} for one in printed.values()]
        return sorted(lines, key=self._line_order)

    def _line_order(self, line: Line) -> tuple[object, ...]:
        printed = line[PUBLISHED]
        backbone, loss, form = printed.named(LINE)
        place = (position(loss, self._grid.paper.losses), loss, form)
        if not self._table.one_table:
            return place
        # A leaderboard: the best first; what was not printed comes last.
        return -printed.published.get(self._metrics[-1], 0.0), backbone, *place

    def _plain(self, title: str, cells: list[Result], unrun: Sequence[Result]) -> TextTable:
        lines = self._lines(cells, unrun)
        variants = sorted({variant_of(cell) for cell in cells}, key=_variant_order)
        headings = []
        for variant in (PUBLISHED, *variants):
            headings += [_heading(metric, variant) for metric in self._metrics]
        sheet = Sheet(headings)
        has_forms = len({line[PUBLISHED].named(LINE[:2]) for line in lines}) < len(lines)
        for line in lines:
            label = self._label(line, has_forms)
            for variant, cell in line.items():
                shown = _printed if variant == PUBLISHED else compared_value
                for metric in self._metrics:
                    sheet.put(label, _heading(metric, variant), shown(cell, metric))
        if self._gain is not None and not self._table.one_table and not has_forms:
            self._put_gains(sheet, self._gain, lines, variants)
        notes = self._notes(cells, lines)
        return TextTable(title, ["loss", *headings], sheet.rows(), notes)

    def _label(self, line: Line, has_forms: bool) -> str:
        backbone, loss, form = line[PUBLISHED].named(LINE)
        parts = [loss]
        if self._table.one_table:
            parts.insert(0, backbone)
        if has_forms and form:
            parts.append(form)
        return ", ".join(parts)

    def _notes(self, cells: list[Result], lines: Iterable[Line]) -> list[str]:
        notes = []
        if cells:
            notes.append(seeds_note(cells))
        for cell in cells:
            if cell.n_runs >= ENOUGH_SEEDS and cell.published:
                notes[0] += INSIDE
                break
        if any(cell.is_selected_on_test for cell in cells):
            notes.append(ON_TEST)
        if any(line.keys() == {PUBLISHED} for line in lines):
            notes.append(UNRUN)
        return notes

    def _put_gains(
        self, sheet: Sheet, gain: Gain, lines: Sequence[Line], variants: Sequence[Variant]
    ) -> None:
        """The gain below a table, with the tests of it."""
        metric = self._metrics[-1]
        name = f"**Imp. %** of {gain.title}"
        for variant in (PUBLISHED, *variants):
            column = _heading(metric, variant)
            cells = {line[variant]["loss"]: line[variant] for line in lines if variant in line}
            is_published = variant == PUBLISHED
            members = list(cells.values())
            share, best = best_gain(members, metric, gain, is_published=is_published)
            if is_published:
                sheet.put(name, column, percent(share))
            elif share is not None:
                sheet.put(name, column, percent(share) + _which(best, gain))
                test = self._tested(cells[best], metric)
                for kind in ("users", "seeds"):
                    row = f"p of Imp., paired t-test over {kind}"
                    sheet.put(row, column, test.get(f"{kind}_t_test", ""))

    def _tested(self, cell: Result, metric: str) -> Row:
        for row in self._significance:
            if (row["metric"], row["second"]) != (metric, cell["loss"]):
                continue
            if all(row[name] == cell[name] for name in TESTED):
                return row
        return {}

    def _across(self, cells: Iterable[Result]) -> list[TextTable]:
        """A table per data set, backbone, way to make it, and metric."""
        ways = grouped(cells, lambda cell: (cell["dataset"], cell["backbone"], variant_of(cell)))

        def order(way: tuple[str, str, Variant]) -> tuple[object, ...]:
            return position(way[0], self._grid.paper.datasets), way[1:]

        found = []
        for way in sorted(ways, key=order):
            dataset, backbone, (kind, protocol) = way
            title = f"{dataset}, {backbone}, {VARIANT_TITLES[kind]}, {protocol}"
            for metric in reversed(self._metrics):
                found.append(self._curve(title, ways[way], metric))
        return found

    def _curve(self, title: str, cells: Sequence[Result], metric: str) -> TextTable:
        across = self._table.across
        levels = sorted({float(cell[across]) for cell in cells})
        sheet = Sheet([f"{level:g}" for level in levels])
        losses = self._grid.paper.losses
        by_loss = sorted(cells, key=lambda cell: (position(cell["loss"], losses), cell["setting"]))
        for cell in by_loss:
            text = " / ".join(filter(None, (value_of(cell, metric), _printed(cell, metric))))
            label = cell["loss"] + _unusual(cell["setting"])
            sheet.put(label, f"{float(cell[across]):g}", text)
        if self._gain is not None:
            places = grouped(cells, lambda cell: (cell["setting"], float(cell[across])))
            for setting, level in sorted(places):
                members = places[setting, level]
                ours, _ = best_gain(members, metric, self._gain)
                printed, _ = best_gain(members, metric, self._gain, is_published=True)
                if ours is not None:
                    texts = (percent(ours), percent(printed))
                    row = f"**Imp. %** of {self._gain.title}{_unusual(setting)}"
                    sheet.put(row, f"{level:g}", " / ".join(filter(None, texts)))
        note = seeds_note(cells)
        if any(cell.published for cell in cells):
            note = f"Ours, then the published value. {note}"
        header = [self._table.across_title or across, *sheet.columns]
        return TextTable(f"{metric_title(metric)}: {title}", header, sheet.rows(), [note])


def _heading(metric: str, variant: Variant) -> str:
    if variant == PUBLISHED:
        return f"published {metric_title(metric)}"
    kind, protocol = variant
    return f"{metric_title(metric)}, {VARIANT_TITLES[kind]}, {protocol}"


def _printed(cell: Result, metric: str) -> str:
    if metric not in cell.published:
        return ""
    return f"{cell.published[metric]:.4f}"


def _which(loss: str, gain: Gain) -> str:
    """Which of several losses is the best, without what all their names begin with."""
    if len(gain.of) == 1:
        return ""
    shared = gain.of[0].partition("-")[0] + "-"
    if all(name.startswith(shared) for name in gain.of):
        loss = loss.removeprefix(shared)
    return f" ({loss})"


def _unusual(setting: str) -> str:
    """What differs from the paper in a setting, in brackets."""
    _, comma, rest = setting.partition(", ")
    return f" ({rest})" if comma else ""


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


def variant_of(cell: Result) -> tuple[str, str]:
    """How it was made: negatives (`sampled`, `distinct`, `catalog`) and protocol."""
    kind = cell["mode"]
    if cell["negatives"].endswith(DISTINCT):
        kind = "distinct"
    return kind, cell["protocol"]


def value_of(cell: Result, metric: str) -> str:
    """Mean and deviation.

    >>> value_of(Result({}, {"ndcg20": {"1": 0.1, "2": 0.11, "3": 0.12}}, {}), "ndcg20")
    '0.1100 ± 0.0100'
    """
    return plus_minus(cell.mean(metric), cell.deviation(metric))


def compared_value(cell: Result, metric: str) -> str:
    """The same, with the difference to the printed value, and whether that lies in the noise.

    >>> ours = {"ndcg20": {"1": 0.1, "2": 0.11, "3": 0.12}}
    >>> compared_value(Result({}, ours, {"ndcg20": 0.121}), "ndcg20")
    '0.1100 ± 0.0100, -9.1 %, inside'
    """
    text = value_of(cell, metric)
    difference = cell.difference(metric)
    if difference is None:
        return text
    text += f", {percent(difference)}"
    is_inside = cell.is_inside_noise(metric)
    if is_inside is not None:
        text += ", inside" if is_inside else ", outside"
    return text


def percent(share: float | None) -> str:
    """With sign and one decimal; nothing where it is not known.

    >>> percent(0.0234), percent(None)
    ('+2.3 %', '')
    """
    if share is None:
        return ""
    # Adding 0 takes the sign off a negative zero.
    return f"{round(100 * share, 1) + 0.0:+.1f} %"
