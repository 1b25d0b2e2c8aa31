"""Charts as SVG with their data: lines and points, histograms, bars.

A series is told from the others by the shape of its marks as well as by its colour, and what it is compared with is
dashed, so that neither colour nor a screen is needed to read a chart.
"""

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from pslrec.reporting._axes import Axis, Scale, scale_for
from pslrec.reporting._document import MISSING, Cell, Chart, LegendEntry, Table, number, words
from pslrec.reporting._svg import MARKERS, N_STYLES, Shape, element, group, marker, path, swatch

WIDTH, HEIGHT = 400.0, 250.0
LEFT, RIGHT, TOP, BOTTOM = 50.0, 388.0, 26.0, 208.0
# What a chart shows at most of a series, and its table of all of them, to keep the page small.
MOST_POINTS, MOST_CELLS = 200, 4000
MOST_MARKS = 30
# Of a name in one line; on a phone letters are larger.
MOST_LETTERS = 50
DIGITS = ".4g"


@dataclass(frozen=True)
class Series:
    """Points that belong together.

    Args:
        label: its name in the legend.
        points: pairs of x and y; points that are not finite leave a gap.
        style: number of its colour and shape; its place among the series if not given.
        is_reference: dashed, for what the others are compared with.
        is_connected: whether a line joins the points.
        errors: half lengths of error bars, one per point.
        highlight: x of a point with a ring around it.
        has_marks: whether its points are marked.
    """

    label: str
    points: Sequence[tuple[float, float]]
    style: int | None = None
    is_reference: bool = False
    is_connected: bool = True
    errors: Sequence[float] | None = None
    highlight: float | None = None
    has_marks: bool = True

    @property
    def finite(self) -> list[tuple[float, float]]:
        """The points that can be drawn."""
        return [
            point for point in self.points if math.isfinite(point[0]) and math.isfinite(point[1])
        ]


@dataclass(frozen=True)
class Area:
    """A filled area between two lines with the same x.

    Args:
        label: its name in the legend.
        lower: one line.
        upper: the other.
        notes: texts above points of the upper line, by x.
    """

    label: str
    lower: Sequence[tuple[float, float]]
    upper: Sequence[tuple[float, float]]
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
) -> Chart:
    """Lines or points over a common axis.

    >>> chart = line_chart("Loss", "It falls.", [Series("sl", [(1, 2.0), (2, 1.5)])], x=Axis("epoch"), y=Axis("loss"))
    >>> chart.data.columns
    ['epoch', 'sl']
    """
    series = [
        replace(one, style=place if one.style is None else one.style)
        for place, one in enumerate(series)
    ]
    series = _thinned(series)
    data = _data_table(title, series, x)
    xs = [point[0] for one in series for point in one.finite]
    ys = [point[1] for one in series for point in one.finite] + [
        end for one in series for end in _error_ends(one)
    ]
    legend = [LegendEntry(one.label, _swatch(one)) for one in series]
    if area is not None:
        legend.append(LegendEntry(area.label, swatch(area.style, "area")))
    if not xs:
        return Chart(title, description, None, (WIDTH, HEIGHT), [], data)
    across = scale_for(xs, x, (LEFT + 8, RIGHT - 8), is_tight=True)
    up = scale_for(ys, y, (BOTTOM, TOP))
    parts = [] if area is None else [_area(area, across, up)]
    for place, one in enumerate(series):
        # Error bars of several series in one category lie beside each other.
        shift = (
            (place - (len(series) - 1) / 2) * min(5.0, 30.0 / len(series)) if x.categories else 0.0
        )
        parts.append(
            _drawn(one, replace(across, start=across.start + shift, end=across.end + shift), up, x)
        )
    drawn = group(parts) if y.ceiling is None else _cut_off(parts)
    notes = [] if area is None else _notes(area, across, up)
    return Chart(
        title,
        description,
        group([_frame(across, up, x, y), drawn, *notes]),
        (WIDTH, HEIGHT),
        legend if len(legend) > 1 else [],
        data,
    )


def histogram(
    title: str,
    description: str,
    edges: Sequence[float],
    shares: Mapping[str, Sequence[float]],
    *,
    x: Axis,
) -> Chart:
    """Shares of several groups in the same bins, as outlines.

    Args:
        title: short.
        description: what it shows.
        edges: of the bins, one more than there are shares.
        shares: for each group its share in every bin.
        x: what the bins are of.
    """
    across = scale_for(edges, x, (LEFT, RIGHT), is_tight=True)
    up = scale_for(
        [share for group_ in shares.values() for share in group_],
        Axis("", from_zero=True),
        (BOTTOM, TOP),
    )
    parts = [_frame(across, up, x, Axis("share of the group"))]
    legend = []
    for style, (label, values) in enumerate(shares.items()):
        steps = [
            (edge, share)
            for place, share in enumerate(values)
            for edge in (edges[place], edges[place + 1])
        ]
        outline = [(edges[0], 0.0), *steps, (edges[-1], 0.0)]
        line = path([(across(a), up(b)) for a, b in outline])
        shapes = (element("path", d=line, class_="area"), element("path", d=line, class_="line"))
        parts.append(
            element(
                "g", *shapes, class_=f"s{style % N_STYLES} {'reference' if style else ''}".strip()
            )
        )
        legend.append(LegendEntry(label, swatch(style, "area")))
    rows = [
        [
            number(edges[place], ".3f"),
            number(edges[place + 1], ".3f"),
            *(number(v[place]) for v in shares.values()),
        ]
        for place in range(len(edges) - 1)
    ]
    data = Table(title, ["from", "to", *shares], rows)
    return Chart(title, description, group(parts), (WIDTH, HEIGHT), legend, data)


def bar_chart(
    title: str,
    description: str,
    bars: Sequence[tuple[str, float]],
    *,
    axis: Axis,
    pattern: str = ".4g",
) -> Chart:
    """Bars to the right (and left) of zero, one below the other, each with its name above it and its value at its end.

    Args:
        title: short.
        description: what it shows.
        bars: names and values; those that are not finite are left out of the picture.
        axis: of the values.
        pattern: how values are written.
    """
    data = Table(
        title, ["", axis.label], [[words(name), number(value, pattern)] for name, value in bars]
    )
    shown = [(name, value) for name, value in bars if math.isfinite(value)]
    if not shown:
        return Chart(title, description, None, (WIDTH, HEIGHT), [], data)
    top = 8.0
    lines = [textwrap.wrap(name, MOST_LETTERS) or [""] for name, _ in shown]
    heights = [14.0 * len(parts) + 16.0 for parts in lines]
    bottom = top + sum(heights)
    across = scale_for(
        [value for _, value in shown], replace(axis, from_zero=True), (46.0, RIGHT - 40.0)
    )
    parts = [_vertical_grid(across, top, bottom, axis)]
    foot = top
    for (name, value), named, height in zip(shown, lines, heights, strict=True):
        parts += [
            element("text", line, x=6.0, y=foot + 11 + 14 * place, class_="name")
            for place, line in enumerate(named)
        ]
        foot += height
        left, right = sorted((across(0.0), across(value)))
        tip = element("title", f"{name}: {value:{pattern}}")
        bar = element(
            "rect", tip, x=left, y=foot - 14, width=max(right - left, 0.8), height=8, class_="bar"
        )
        parts.append(element("g", bar, class_="s0" if value >= 0 else "s1"))
        end, side = (right + 5, "value") if value >= 0 else (left - 5, "value end")
        parts.append(element("text", f"{value:{pattern}}", x=end, y=foot - 6.5, class_=side))
    return Chart(title, description, group(parts), (WIDTH, bottom + 42.0), [], data)


def _frame(across: Scale, up: Scale, x: Axis, y: Axis) -> Markup:
    parts = []
    for value, label in up.ticks:
        height = up(value)
        parts.append(element("path", d=f"M{LEFT:g} {height:.1f}H{RIGHT:g}", class_="grid"))
        parts.append(element("text", label, x=LEFT - 6, y=height + 4, class_="tick end"))
    for value, label in across.ticks:
        place = across(value)
        parts.append(element("path", d=f"M{place:.1f} {BOTTOM:g}v4", class_="axis"))
        parts.append(element("text", label, x=place, y=BOTTOM + 17, class_="tick middle"))
    parts.append(element("path", d=f"M{LEFT:g} {BOTTOM:g}H{RIGHT:g}", class_="axis"))
    parts.append(element("text", y.label, x=4, y=12, class_="label"))
    parts.append(
        element("text", x.label, x=(LEFT + RIGHT) / 2, y=HEIGHT - 8, class_="label middle")
    )
    return group(parts)


def _vertical_grid(across: Scale, top: float, bottom: float, axis: Axis) -> Markup:
    parts = []
    for value, label in across.ticks:
        kind = "axis" if value == 0 else "grid"
        parts.append(
            element("path", d=f"M{across(value):.1f} {top:g}V{bottom + 2:.1f}", class_=kind)
        )
        parts.append(element("text", label, x=across(value), y=bottom + 16, class_="tick middle"))
    parts.append(
        element(
            "text",
            axis.label,
            x=(across.start + across.end) / 2,
            y=bottom + 34,
            class_="label middle",
        )
    )
    return group(parts)


def _drawn(one: Series, across: Scale, up: Scale, x: Axis) -> Markup:
    places = [
        (across(a), up(b)) if math.isfinite(a + b) else (math.nan, math.nan) for a, b in one.points
    ]
    style = one.style or 0
    parts = (
        [element("path", d=path(places), class_="line")]
        if one.is_connected and len(places) > 1
        else []
    )
    for (a, b), error in zip(one.points, one.errors or (), strict=False):
        if math.isfinite(a + b + error) and error > 0:
            parts.append(
                element(
                    "path",
                    d=f"M{across(a):.1f} {up(b - error):.1f}V{up(b + error):.1f}",
                    class_="error",
                )
            )
    for (a, _), (left, top) in zip(one.points, places, strict=True):
        if a == one.highlight and math.isfinite(left + top):
            parts.append(element("circle", cx=left, cy=top, r=6.5, class_="ring"))
    every = max(1, math.ceil(len(one.points) / MOST_MARKS))
    for place, ((a, b), (left, top)) in enumerate(zip(one.points, places, strict=True)):
        if one.has_marks and place % every == 0 and math.isfinite(left + top):
            tip = f"{one.label}, {x.label} {_x_text(a, x)}: {b:{DIGITS}}"
            parts.append(
                marker(
                    MARKERS[style % len(MARKERS)], left, top, title=tip, is_hollow=one.is_reference
                )
            )
    kind = f"s{style % N_STYLES}" + (" reference" if one.is_reference else "")
    return element("g", *parts, class_=kind)


def _swatch(one: Series) -> Markup:
    shape: Shape = "line" if not one.has_marks else "both" if one.is_connected else "mark"
    return swatch(one.style or 0, shape, is_reference=one.is_reference)


def _cut_off(parts: Sequence[Markup]) -> Markup:
    # An inner picture shows nothing outside of itself.
    x, y, width, height = LEFT, TOP - 4, RIGHT - LEFT, HEIGHT - TOP + 4
    box = f"{x:g} {y:g} {width:g} {height:g}"
    return element("svg", *parts, x=x, y=y, width=width, height=height, viewBox=box)


def _area(area: Area, across: Scale, up: Scale) -> Markup:
    outline = [*area.lower, *reversed(area.upper)]
    shape = path([(across(a), up(b)) for a, b in outline], is_closed=True)
    return element("g", element("path", d=shape, class_="area"), class_=f"s{area.style % N_STYLES}")


def _notes(area: Area, across: Scale, up: Scale) -> list[Markup]:
    found = []
    for place, (a, b) in enumerate(area.upper):
        text = (area.notes or {}).get(a)
        if text and math.isfinite(b):
            # The outer ones lean inwards, away from the axis and the edge.
            side = "start" if place == 0 else "end" if place == len(area.upper) - 1 else "middle"
            found.append(
                element(
                    "text",
                    text,
                    x=across(a) + 6 * (side == "start"),
                    y=up(b) - 7,
                    class_=f"value {side}",
                )
            )
    return found


def _error_ends(one: Series) -> list[float]:
    errors = one.errors or ()
    ends = [
        end
        for (_, b), error in zip(one.points, errors, strict=False)
        for end in (b - error, b + error)
    ]
    return [end for end in ends if math.isfinite(end)]


def _thinned(series: Sequence[Series]) -> list[Series]:
    every_x = sorted(
        {point[0] for one in series for point in one.points if math.isfinite(point[0])}
    )
    limit = max(20, min(MOST_POINTS, MOST_CELLS // max(len(series), 1)))
    if len(every_x) <= limit:
        return list(series)
    kept = {every_x[round(place * (len(every_x) - 1) / (limit - 1))] for place in range(limit)}
    kept |= {one.highlight for one in series if one.highlight is not None}
    # Error bars belong to charts of few points, which are never thinned.
    return [
        replace(one, points=[p for p in one.points if p[0] in kept], errors=None) for one in series
    ]


def _data_table(title: str, series: Sequence[Series], x: Axis) -> Table:
    every_x = sorted(
        {point[0] for one in series for point in one.points if math.isfinite(point[0])}
    )
    found = [dict(one.points) for one in series]
    rows = [
        [
            Cell(_x_text(a, x), a),
            *(number(values[a], DIGITS) if a in values else Cell(MISSING) for values in found),
        ]
        for a in every_x
    ]
    return Table(title, [x.label, *(one.label for one in series)], rows)


def _x_text(value: float, x: Axis) -> str:
    return x.categories[int(value)] if x.categories is not None else f"{value:.6g}"
