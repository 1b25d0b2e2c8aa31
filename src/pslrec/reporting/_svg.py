"""The few shapes that charts are drawn with; every text and attribute is escaped."""

import math
from collections.abc import Iterable, Sequence
from typing import Literal

from markupsafe import Markup

Sample = Literal["line", "mark", "both", "area"]
Point = tuple[float, float]

N_STYLES = 8
MARKERS = ("circle", "square", "triangle", "diamond", "cross")
# Corners of the marks around their centre, in radii; shapes of less area reach out further, so that
# all look equally large.
CORNERS = {
    "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    "triangle": ((0.0, -1.2), (1.15, 0.9), (-1.15, 0.9)),
    "diamond": ((0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)),
}


def element(tag: str, *content: object, **attributes: object) -> Markup:
    """Write an element.

    Args:
        tag: its name.
        content: texts, which are escaped, and other elements, which are not.
        attributes: `class_` becomes `class` and `stroke_width` becomes `stroke-width`; numbers are
            rounded to two decimals; an attribute that is `None` is left out.

    >>> element("text", "a < b", x=1.23456, class_="tick")
    Markup('<text x="1.23" class="tick">a &lt; b</text>')
    """
    name = Markup(tag)
    opening = Markup("<{}").format(name)
    for attribute, value in attributes.items():
        if value is not None:
            # `class` is a word of Python's own, and no argument can have a hyphen.
            written = attribute.rstrip("_").replace("_", "-")
            opening += Markup(' {}="{}"').format(written, _plain(value))
    if not content:
        return opening + Markup("/>")
    inside = Markup("").join(content)  # type: ignore[arg-type]  # escapes whatever is not Markup
    return Markup("{}>{}</{}>").format(opening, inside, name)


def _plain(value: object) -> str:
    if isinstance(value, float):
        # Finer than any screen shows; more decimals would only make the file larger.
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return str(value)


def shape(commands: str, kind: str) -> Markup:
    """A path of the given class; the class says whether it is a line, an area or a grid line."""
    return element("path", d=commands, class_=kind)


def text(content: str, x: float, y: float, kind: str) -> Markup:
    """A text with its baseline at y; the class says which end or middle of it is at x."""
    return element("text", content, x=x, y=y, class_=kind)


def group(parts: Iterable[Markup]) -> Markup:
    """Elements one after the other."""
    return Markup("").join(parts)


def style_class(style: int, *, is_reference: bool = False) -> str:
    """The class that gives a group of shapes its colour.

    Args:
        style: number of the colour; colours repeat after eight.
        is_reference: whether its lines are dashed.

    >>> style_class(9, is_reference=True)
    's1 reference'
    """
    name = f"s{style % N_STYLES}"
    if is_reference:
        name += " reference"
    return name


def path(points: Sequence[Point], *, is_closed: bool = False) -> str:
    """The commands of a line through points; a point that is not finite leaves a gap.

    >>> path([(0, 0), (1.5, 2), (2, float("nan")), (3, 1)])
    'M0 0L1.5 2M3 1'
    """
    commands = []
    command = "M"
    for x, y in points:
        if not (math.isfinite(x) and math.isfinite(y)):
            command = "M"
            continue
        commands.append(f"{command}{_plain(float(x))} {_plain(float(y))}")
        command = "L"
    if is_closed:
        commands.append("Z")
    return "".join(commands)


def marker_of(style: int) -> str:
    """The mark of a style."""
    # Five marks and eight colours: forty styles differ in one or the other.
    return MARKERS[style % len(MARKERS)]


def marker(
    mark: str, x: float, y: float, *, title: str = "", radius: float = 3.2, is_hollow: bool = False
) -> Markup:
    """A mark at a point.

    Args:
        mark: one of `MARKERS`.
        x: of its centre.
        y: of its centre.
        title: shown when the mark is pointed at.
        radius: half its size, about.
        is_hollow: drawn as an outline.
    """
    tip = []
    if title:
        tip.append(element("title", title))
    if mark == "cross":
        falling = [(x - radius, y - radius), (x + radius, y + radius)]
        rising = [(x - radius, y + radius), (x + radius, y - radius)]
        # Two strokes have no inside that could be filled.
        return element("path", *tip, d=path(falling) + path(rising), class_="hollow")

    fill = "solid"
    if is_hollow:
        fill = "hollow"
    if mark == "circle":
        return element("circle", *tip, cx=x, cy=y, r=radius, class_=fill)
    corners = [(x + radius * right, y + radius * down) for right, down in CORNERS[mark]]
    return element("path", *tip, d=path(corners, is_closed=True), class_=fill)


def swatch(
    style: int, sample: Sample, *, is_reference: bool = False, mark: int | None = None
) -> Markup:
    """The sample of a series or an area that stands in a legend.

    Args:
        style: number of the colour and mark.
        sample: which of them the chart draws.
        is_reference: whether it is dashed.
        mark: number of the mark where it is not that of the style.
    """
    if mark is None:
        mark = style
    parts = []
    if sample in ("line", "both"):
        parts.append(shape("M1 7L25 7", "line"))
    if sample in ("mark", "both"):
        parts.append(marker(marker_of(mark), 13.0, 7.0, is_hollow=is_reference))
    if sample == "area":
        parts.append(element("rect", x=1, y=2, width=24, height=10, class_="area"))
    inside = element("g", *parts, class_=style_class(style, is_reference=is_reference))
    return element(
        "svg",
        inside,
        viewBox="0 0 26 14",
        width=26,
        height=14,
        aria_hidden="true",
        class_="swatch",
    )
