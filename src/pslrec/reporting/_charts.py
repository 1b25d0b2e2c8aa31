"""Charts as SVG together with their data: lines and points, histograms, bars.

A series is told from the others by the shape of its marks as well as by its colour, and what the
others are compared with is dashed, so that a chart can be read without colour and on paper.
"""

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from pslrec.reporting._axes import Axis, Scale, scale_for
from pslrec.reporting._document import MISSING, Cell, Chart, LegendEntry, Table, number, words
from pslrec.reporting._svg import (
    Point,
    Sample,
    element,
    group,
    marker,
    marker_of,
    path,
    shape,
    style_class,
    swatch,
    text,
)

# Small enough for a phone, which would shrink a wider picture beyond reading; wide pages set charts
# side by side.
WIDTH, HEIGHT = 400.0, 250.0
# Room around the plane of the lines, for ticks and labels.
LEFT, TOP, BESIDE, BELOW = 50.0, 26.0, 12.0, 42.0
RIGHT, BOTTOM = WIDTH - BESIDE, HEIGHT - BELOW
# How far ticks lie apart, about.
TICK_WIDTH, TICK_HEIGHT = 67.0, 36.0
# How much of a long curve is kept, to keep the page small: points per series, and cells in the
# table of all series.
MOST_POINTS, MOST_CELLS = 200, 4000
# More marks than this would hide the line that joins them.
MOST_MARKS = 30
# On logarithmic axes points crowd towards the end, so marks keep at least this distance.
MARK_DISTANCE = 10.0
# How many letters of a bar's name fit on one line; on a phone, letters are larger.
MOST_LETTERS = 50
NAME_HEIGHT, BAR_HEIGHT = 14.0, 16.0
DIGITS = ".4g"


@dataclass(frozen=True)
class Series:
    """Points that belong together.

    Args:
        label: the name in the legend.
        points: pairs of x and y; points that are not finite leave a gap.
        style: number of the colour and mark; the place among the series if it is not given.
        mark: number of the mark where it is not that of the style: series of one colour are then
            told apart by their marks.
        is_reference: draw dashed, as what the others are compared with.
        is_connected: join the points by a line.
        errors: half lengths of error bars, one per point.
        highlight: draw a ring around the point with this x.
        has_marks: mark the points.
    """

    label: str
    points: Sequence[Point]
    style: int | None = None
    is_reference: bool = False
    is_connected: bool = True
    errors: Sequence[float] | None = None
    highlight: float | None = None
    has_marks: bool = True
    mark: int | None = None


@dataclass(frozen=True)
class Area:
    """A filled area between two lines with the same x.

    Args:
        label: the name in the legend.
        lower: one of the lines.
        upper: the other one.
        style: number of the colour.
        notes: texts to write above points of the upper line, by x.
    """

    label: str
    lower: Sequence[Point]
    upper: Sequence[Point]
    style: int = 0
    notes: Mapping[float, str] | None = None


def line_chart(
    title: str,
    description: str,
    series: Sequence[Series],
    *,
    x: Axis,
    y: Axis,
    area: Area | None = None,
    size: Point = (WIDTH, HEIGHT),
    is_thinned: bool = True,
) -> Chart:
    """Draw lines or points over a common axis.

    Args:
        title: a few words above the picture.
        description: what the picture shows.
        series: at least one.
        x: the common axis; with categories, x of a point is the number of its category.
        y: the axis of the values.
        area: drawn below the lines.
        size: width and height of the picture, axes and their labels included.
        is_thinned: leave out points of long series, at the same x in all of them, which keeps the
            table of a page small; a picture without a table can show every point.

    >>> falling = Series("sl", [(1, 2.0), (2, 1.5)])
    >>> chart = line_chart("Loss", "It falls.", [falling], x=Axis("epoch"), y=Axis("loss"))
    >>> chart.data.columns
    ['epoch', 'sl']
    """
    shown = _styled(series)
    if is_thinned:
        shown = _thinned(shown)
    data = _data_table(title, shown, x)

    xs, ys = _to_enclose(shown, x, y)
    if not xs:
        return Chart(title, description, data)
    width, height = size
    right = width - BESIDE
    bottom = height - BELOW
    # Larger pictures have more ticks, at the distances of the usual size.
    columns = max(3, round((right - LEFT) / TICK_WIDTH))
    rows = max(3, round((bottom - TOP) / TICK_HEIGHT))
    # Marks at the outermost points would reach beyond the frame without a little room.
    across = scale_for(xs, x, (LEFT + 8, right - 8), count=columns, is_tight=True)
    up = scale_for(ys, y, (bottom, TOP), count=rows)

    parts = []
    notes = []
    if area is not None:
        parts.append(_filled(area, across, up))
        notes = _notes(area, across, up)
    for place, one in enumerate(shown):
        beside = across
        if x.categories:
            # Error bars of several series in one category lie beside each other, the closer the
            # more there are, so that all stay within the category.
            shift = (place - (len(shown) - 1) / 2) * min(5.0, 30.0 / len(shown))
            beside = replace(across, start=across.start + shift, end=across.end + shift)
        parts.append(_drawn(one, beside, up, x))
    drawn = group(parts)
    if y.ceiling is not None or y.floor is not None:
        drawn = _cut_off(parts, size, y)

    legend = [LegendEntry(one.label, _swatch(one)) for one in shown]
    if area is not None:
        legend.append(LegendEntry(area.label, swatch(area.style, "area")))
    # A single line needs no legend: the title says what it is.
    if len(legend) == 1:
        legend = []
    body = group([_frame(across, up, x, y, size), drawn, *notes])
    return Chart(title, description, data, body, size, legend)


def histogram(
    title: str,
    description: str,
    edges: Sequence[float],
    shares: Mapping[str, Sequence[float]],
    *,
    x: Axis,
) -> Chart:
    """Draw the shares of several groups in the same bins, as outlines.

    Args:
        title: a few words above the picture.
        description: what the picture shows.
        edges: the bounds of the bins, one more than there are bins.
        shares: for each group, its share in every bin.
        x: the axis of the bins.
    """
    every_share: list[float] = []
    for values in shares.values():
        every_share.extend(values)
    across = scale_for(edges, x, (LEFT, RIGHT), is_tight=True)
    up = scale_for(every_share, Axis("", from_zero=True), (BOTTOM, TOP))

    parts = [_frame(across, up, x, Axis("share of the group"), (WIDTH, HEIGHT))]
    legend = []
    for style, (label, values) in enumerate(shares.items()):
        # The outline climbs from 0 to the first bin, and falls back to 0 after the last.
        outline = [(across(edges[0]), up(0.0))]
        for place, share in enumerate(values):
            outline.append((across(edges[place]), up(share)))
            outline.append((across(edges[place + 1]), up(share)))
        outline.append((across(edges[-1]), up(0.0)))
        commands = path(outline)
        filled = shape(commands, "area")
        line = shape(commands, "line")
        # All groups but the first are dashed, so that outlines differ in more than their colour.
        kind = style_class(style, is_reference=style > 0)
        parts.append(element("g", filled, line, class_=kind))
        legend.append(LegendEntry(label, swatch(style, "area")))

    rows = []
    for place in range(len(edges) - 1):
        row = [number(edges[place], ".3f"), number(edges[place + 1], ".3f")]
        row.extend(number(values[place]) for values in shares.values())
        rows.append(row)
    data = Table(title, ["from", "to", *shares], rows)
    return Chart(title, description, data, group(parts), (WIDTH, HEIGHT), legend)


def bar_chart(
    title: str,
    description: str,
    bars: Sequence[tuple[str, float]],
    *,
    axis: Axis,
    pattern: str = ".4g",
) -> Chart:
    """Draw bars to the right (and left) of zero, each below its name and with its value at its end.

    Args:
        title: a few words above the picture.
        description: what the picture shows.
        bars: names and values; values that are not finite are left out of the picture.
        axis: the axis of the values.
        pattern: how values are written, in the language of `format`.
    """
    rows = []
    shown = []
    values = []
    for name, value in bars:
        rows.append([words(name), number(value, pattern)])
        if math.isfinite(value):
            shown.append((name, value))
            values.append(value)
    data = Table(title, ["", axis.label], rows)
    if not shown:
        return Chart(title, description, data)

    # Room on either side for the values at the ends of the bars.
    across = scale_for(values, replace(axis, from_zero=True), (46.0, RIGHT - 40.0))
    top = 8.0
    foot = top
    parts = []
    for name, value in shown:
        # An empty name takes its line all the same.
        for line in textwrap.wrap(name, MOST_LETTERS) or [""]:
            parts.append(text(line, 6.0, foot + 11, "name"))
            foot += NAME_HEIGHT
        foot += BAR_HEIGHT
        parts.extend(_bar(name, value, across, foot, pattern))
    # The grid lies below the bars, but its length is known only when all of them are laid out.
    grid = _vertical_grid(across, top, foot, axis)
    return Chart(title, description, data, group([grid, *parts]), (WIDTH, foot + 42.0))


def _bar(name: str, value: float, across: Scale, foot: float, pattern: str) -> list[Markup]:
    left, right = sorted((across(0.0), across(value)))
    style = 0
    end = right + 5
    side = "value"
    if value < 0:
        style = 1
        end = left - 5
        side = "value end"
    written = f"{value:{pattern}}"
    tip = element("title", f"{name}: {written}")
    # A bar of no length at all could not be pointed at.
    width = max(right - left, 0.8)
    bar = element("rect", tip, x=left, y=foot - 14, width=width, height=8, class_="bar")
    return [
        element("g", bar, class_=style_class(style)),
        text(written, end, foot - 6.5, side),
    ]


def _frame(across: Scale, up: Scale, x: Axis, y: Axis, size: Point) -> Markup:
    width, height = size
    right = width - BESIDE
    bottom = height - BELOW
    parts = []
    for value, label in up.ticks:
        level = up(value)
        # Text stands on its baseline: moved down a little, its middle is level with the line.
        parts.append(shape(f"M{LEFT:g} {level:.1f}H{right:g}", "grid"))
        parts.append(text(label, LEFT - 6, level + 4, "tick end"))
    for value, label in across.ticks:
        place = across(value)
        parts.append(shape(f"M{place:.1f} {bottom:g}v4", "axis"))
        parts.append(text(label, place, bottom + 17, "tick middle"))
    middle = (LEFT + right) / 2
    parts.append(shape(f"M{LEFT:g} {bottom:g}H{right:g}", "axis"))
    # Above the axis and lying flat: letters turned by 90 degrees are hard to read.
    parts.append(text(y.label, 4, 12, "label"))
    parts.append(text(x.label, middle, height - 8, "label middle"))
    return group(parts)


def _vertical_grid(across: Scale, top: float, bottom: float, axis: Axis) -> Markup:
    parts = []
    for value, label in across.ticks:
        kind = "grid"
        if value == 0:
            kind = "axis"
        place = across(value)
        line = f"M{place:.1f} {top:g}V{bottom + 2:.1f}"
        parts.append(shape(line, kind))
        parts.append(text(label, place, bottom + 16, "tick middle"))
    middle = (across.start + across.end) / 2
    parts.append(text(axis.label, middle, bottom + 34, "label middle"))
    return group(parts)


def _drawn(one: Series, across: Scale, up: Scale, x: Axis) -> Markup:
    places = []
    for a, b in one.points:
        place = (math.nan, math.nan)
        # One test for two: a sum is finite only if both parts are.
        if math.isfinite(a + b):
            place = (across(a), up(b))
        places.append(place)

    # Later shapes cover earlier ones: the line, error bars, the ring, and the marks on top.
    parts = []
    if one.is_connected and len(places) > 1:
        parts.append(shape(path(places), "line"))
    for (_, b), (left, top), error in zip(one.points, places, one.errors or (), strict=False):
        if math.isfinite(left + top + error) and error > 0:
            # On a logarithmic axis, a bar that reaches 0 has no lower end: it stops at the axis.
            low = max(b - error, up.low)
            bar = f"M{left:.1f} {up(low):.1f}V{up(b + error):.1f}"
            parts.append(shape(bar, "error"))
    for (a, _), (left, top) in zip(one.points, places, strict=True):
        if a == one.highlight and math.isfinite(left + top):
            parts.append(element("circle", cx=left, cy=top, r=6.5, class_="ring"))
    if one.has_marks:
        parts.extend(_marks(one, places, x))
    kind = style_class(one.style or 0, is_reference=one.is_reference)
    return element("g", *parts, class_=kind)


def _marks(one: Series, places: Sequence[Point], x: Axis) -> list[Markup]:
    mark = marker_of(_mark(one))
    every = 1
    if one.is_connected and not x.is_log:
        every = max(1, math.ceil(len(places) / MOST_MARKS))
    is_crowded = one.is_connected and x.is_log
    last = (-math.inf, -math.inf)
    marks = []
    for place in range(0, len(places), every):
        left, top = places[place]
        if is_crowded and math.dist((left, top), last) < MARK_DISTANCE:
            continue
        if math.isfinite(left + top):
            last = (left, top)
            a, b = one.points[place]
            tip = f"{one.label}, {x.label} {_x_text(a, x)}: {b:{DIGITS}}"
            marks.append(marker(mark, left, top, title=tip, is_hollow=one.is_reference))
    return marks


def _swatch(one: Series) -> Markup:
    sample: Sample = "both"
    if not one.has_marks:
        sample = "line"
    elif not one.is_connected:
        sample = "mark"
    style = one.style or 0
    return swatch(style, sample, is_reference=one.is_reference, mark=_mark(one))


def _mark(one: Series) -> int:
    if one.mark is not None:
        return one.mark
    return one.style or 0


def _cut_off(parts: Sequence[Markup], size: Point, axis: Axis) -> Markup:
    # An SVG inside an SVG shows nothing outside of itself, and needs no id as a clip path would.
    y = TOP - 4
    width = size[0] - BESIDE - LEFT
    height = size[1] - y
    if axis.floor is not None:
        height -= BELOW
    box = f"{LEFT:g} {y:g} {width:g} {height:g}"
    return element("svg", *parts, x=LEFT, y=y, width=width, height=height, viewBox=box)


def _filled(area: Area, across: Scale, up: Scale) -> Markup:
    # Out along one line and back along the other.
    outline = [*area.lower, *reversed(area.upper)]
    commands = path([(across(a), up(b)) for a, b in outline], is_closed=True)
    filled = shape(commands, "area")
    return element("g", filled, class_=style_class(area.style))


def _notes(area: Area, across: Scale, up: Scale) -> list[Markup]:
    texts = area.notes or {}
    written = []
    for place, (a, b) in enumerate(area.upper):
        note = texts.get(a)
        if not note or not math.isfinite(up(b)):
            continue
        left = across(a)
        side = "middle"
        # The outer ones lean inwards, away from the axis and the edge.
        if place == 0:
            side = "start"
            left += 6
        elif place == len(area.upper) - 1:
            side = "end"
        written.append(text(note, left, up(b) - 7, f"value {side}"))
    return written


def _to_enclose(series: Sequence[Series], x: Axis, y: Axis) -> tuple[list[float], list[float]]:
    xs = []
    ys = []
    for one in series:
        for a, b in one.points:
            if x.can_show(a) and y.can_show(b):
                xs.append(a)
                ys.append(b)
        for (_, b), error in zip(one.points, one.errors or (), strict=False):
            if not y.can_show(b):
                continue
            for end in (b - error, b + error):
                if y.can_show(end):
                    ys.append(end)
    return xs, ys


def _styled(series: Sequence[Series]) -> list[Series]:
    styled = []
    for place, one in enumerate(series):
        if one.style is None:
            styled.append(replace(one, style=place))
        else:
            styled.append(one)
    return styled


def _thinned(series: Sequence[Series]) -> list[Series]:
    every_x = _every_x(series)
    # With many series each keeps fewer points, but never so few that its shape is lost.
    limit = max(20, min(MOST_POINTS, MOST_CELLS // max(len(series), 1)))
    if len(every_x) <= limit:
        return list(series)
    # The same x of all series, at even distances, so that rows of the table stay complete. The ends
    # and highlighted points are always kept.
    last = len(every_x) - 1
    kept = {every_x[round(place * last / (limit - 1))] for place in range(limit)}
    for one in series:
        if one.highlight is not None:
            kept.add(one.highlight)
    thinned = []
    for one in series:
        points = [point for point in one.points if point[0] in kept]
        # Error bars belong to charts of few points, which are never thinned.
        thinned.append(replace(one, points=points, errors=None))
    return thinned


def _every_x(series: Sequence[Series]) -> list[float]:
    found = set()
    for one in series:
        for a, _ in one.points:
            if math.isfinite(a):
                found.add(a)
    return sorted(found)


def _data_table(title: str, series: Sequence[Series], x: Axis) -> Table:
    columns = [x.label]
    by_x = []
    for one in series:
        columns.append(one.label)
        by_x.append(dict(one.points))
    rows = []
    for a in _every_x(series):
        row = [Cell(_x_text(a, x), a)]
        for values in by_x:
            if a in values:
                row.append(number(values[a], DIGITS))
            else:
                row.append(Cell(MISSING))
        rows.append(row)
    return Table(title, columns, rows)


def _x_text(value: float, x: Axis) -> str:
    if x.categories is None:
        return f"{value:.6g}"
    return x.categories[int(value)]
