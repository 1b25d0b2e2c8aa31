"""The few shapes that charts are drawn with; every text and attribute is escaped."""

import math
from collections.abc import Iterable, Sequence
from typing import Literal

from markupsafe import Markup, escape

Shape = Literal["line", "mark", "both", "area"]
N_STYLES = 8
MARKERS = ("circle", "square", "triangle", "diamond", "cross")


def element(tag: str, *content: object, **attributes: object) -> Markup:
    """An element; `class_` and `stroke_width` become `class` and `stroke-width`, numbers are rounded.

    >>> element("text", "a < b", x=1.23456, class_="tick")
    Markup('<text x="1.23" class="tick">a &lt; b</text>')
    """
    written = Markup("").join(
        Markup(' {}="{}"').format(name.rstrip("_").replace("_", "-"), _plain(value))
        for name, value in attributes.items()
        if value is not None
    )
    inside = Markup("").join(escape(part) for part in content)
    return Markup("<{0}{1}>{2}</{0}>" if content else "<{0}{1}/>").format(
        Markup(tag), written, inside
    )


def _plain(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def group(parts: Iterable[Markup]) -> Markup:
    """Elements one after the other."""
    return Markup("").join(parts)


def path(points: Sequence[tuple[float, float]], *, is_closed: bool = False) -> str:
    """The commands of a line through points; where a point is not finite the line has a gap.

    >>> path([(0, 0), (1.5, 2), (2, float("nan")), (3, 1)])
    'M0 0L1.5 2M3 1'
    """
    commands, is_new = [], True
    for x, y in points:
        if not (math.isfinite(x) and math.isfinite(y)):
            is_new = True
            continue
        commands.append(f"{'M' if is_new else 'L'}{_plain(float(x))} {_plain(float(y))}")
        is_new = False
    return "".join(commands) + ("Z" if is_closed else "")


def marker(
    shape: str, x: float, y: float, *, title: str = "", radius: float = 3.2, is_hollow: bool = False
) -> Markup:
    """A mark at a point, which tells its value when pointed at."""
    tip = [element("title", title)] if title else []
    fill = "hollow" if is_hollow else "solid"
    r = radius
    if shape == "circle":
        return element("circle", *tip, cx=x, cy=y, r=r, class_=fill)
    if shape == "cross":
        lines = path(
            [(x - r, y - r), (x + r, y + r), (math.nan, 0), (x - r, y + r), (x + r, y - r)]
        )
        return element("path", *tip, d=lines, class_="hollow")
    corners = {
        "square": [
            (x - r * 0.9, y - r * 0.9),
            (x + r * 0.9, y - r * 0.9),
            (x + r * 0.9, y + r * 0.9),
            (x - r * 0.9, y + r * 0.9),
        ],
        "triangle": [(x, y - r * 1.2), (x + r * 1.15, y + r * 0.9), (x - r * 1.15, y + r * 0.9)],
        "diamond": [(x, y - r * 1.3), (x + r * 1.3, y), (x, y + r * 1.3), (x - r * 1.3, y)],
    }[shape]
    return element("path", *tip, d=path(corners, is_closed=True), class_=fill)


def swatch(style: int, shape: Shape, *, is_reference: bool = False) -> Markup:
    """The sample that stands in a legend.

    Args:
        style: number of the colour and mark.
        shape: what is shown of it.
        is_reference: whether it is dashed.
    """
    mark = marker(MARKERS[style % len(MARKERS)], 13.0, 7.0, is_hollow=is_reference)
    line = element("path", d="M1 7L25 7", class_="line")
    area = element("rect", x=1, y=2, width=24, height=10, class_="area")
    parts = {"line": [line], "mark": [mark], "both": [line, mark], "area": [area]}[shape]
    kind = f"s{style % N_STYLES}" + (" reference" if is_reference else "")
    inside = element("g", *parts, class_=kind)
    return element(
        "svg", inside, viewBox="0 0 26 14", width=26, height=14, aria_hidden="true", class_="swatch"
    )
