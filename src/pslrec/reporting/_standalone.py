"""Charts as files of their own: SVG always, PNG beside it where the extra `plots` is installed."""

import textwrap
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from markupsafe import Markup

from pslrec.files import write_bytes, write_text
from pslrec.reporting._document import Chart, LegendEntry
from pslrec.reporting._svg import Point, element, group, text

MARGIN = 12.0
HEADING_HEIGHT, LEGEND_HEIGHT = 17.0, 18.0
# How wide a letter is, about: an SVG cannot measure its text. Headings are larger, and bold.
LETTER_WIDTH, HEADING_LETTER_WIDTH = 6.3, 8.0
SWATCH_WIDTH, SWATCH_GAP = 32.0, 16.0
PNG_SCALE = 2.0
# As in reports on a light ground. Many programs that show SVG files know no variables, so every
# colour is written out; the ground is white, since pages have a dark scheme as well.
COLOURS = ("#0072b2", "#d55e00", "#00876a", "#b8568c", "#b27b00", "#5f6670", "#3d95c9", "#7a4a1e")
FONTS = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"
RULES = (
    f"text {{ font: 11.5px {FONTS}; fill: #1c2330; }}",
    ".heading { font-size: 14px; font-weight: bold; }",
    ".panel { font-size: 12.5px; font-weight: bold; }",
    ".tick { font-size: 11px; fill: #596273; }",
    ".value { font-size: 10.5px; }",
    ".end { text-anchor: end; }",
    ".middle { text-anchor: middle; }",
    ".grid { stroke: #d9dde4; fill: none; }",
    ".axis { stroke: #596273; fill: none; }",
)
STYLE, COLOUR = "STYLE", "COLOUR"
LINE = "stroke: COLOUR; stroke-width: 1.8; stroke-linejoin: round; stroke-linecap: round"
SERIES_RULES = (
    f"STYLE .line {{ {LINE}; fill: none; }}",
    "STYLE.reference .line { stroke-dasharray: 5 3.5; stroke-width: 1.5; }",
    "STYLE .solid { fill: COLOUR; stroke: #ffffff; stroke-width: .6; }",
    "STYLE .hollow { fill: #ffffff; stroke: COLOUR; stroke-width: 1.4; }",
    "STYLE .ring { fill: none; stroke: COLOUR; stroke-width: 1.4; }",
    "STYLE .error { stroke: COLOUR; stroke-width: 1.2; }",
    "STYLE .bar { fill: COLOUR; }",
    "STYLE .area { fill: COLOUR; fill-opacity: .2; stroke: none; }",
)


def write_chart(chart: Chart, path: Path) -> list[Path]:
    """Write a chart as `path` with the endings `.svg` and, where it can be made, `.png`.

    Args:
        chart: what to draw; one without a picture is not written.
        path: without ending.
    """
    if chart.body is None:
        return []
    return write_svg(standalone_svg(chart), path)


def write_svg(drawing: str, path: Path) -> list[Path]:
    """Write an SVG document and, where vl-convert is installed, the same picture as PNG.

    Args:
        drawing: the document.
        path: without ending.
    """
    written = [path.with_name(f"{path.name}.svg")]
    write_text(written[0], drawing)
    if find_spec("vl_convert") is not None:
        import vl_convert

        written.append(path.with_name(f"{path.name}.png"))
        write_bytes(written[1], vl_convert.svg_to_png(drawing, scale=PNG_SCALE))
    return written


def standalone_svg(*charts: Chart, title: str = "", description: str = "", columns: int = 1) -> str:
    """Charts with their titles, legend and colours as one SVG document on a white ground.

    Args:
        charts: at least one. Several must have the same size and the same legend, which is written
            once, above all of them.
        title: what several charts have in common; a single chart has its own.
        description: what the picture shows, for readers who cannot see it; a single chart has its
            own.
        columns: how many charts are side by side.
    """
    first = charts[0]
    is_alone = len(charts) == 1
    if is_alone:
        title = first.title
        description = first.description
    width = columns * first.size[0] + 2 * MARGIN

    parts = []
    top = MARGIN
    for line in textwrap.wrap(title, int((width - 2 * MARGIN) / HEADING_LETTER_WIDTH)):
        parts.append(text(line, MARGIN, top + 12, "heading"))
        top += HEADING_HEIGHT
    if title:
        top += 7
    legend, legend_height = _legend(first.legend, width, top)
    parts.append(legend)
    top += legend_height

    for start in range(0, len(charts), columns):
        row = charts[start : start + columns]
        if not is_alone:
            top += 8
            for place, chart in enumerate(row):
                parts.append(text(chart.title, MARGIN + place * chart.size[0], top + 10, "panel"))
            top += HEADING_HEIGHT
        for place, chart in enumerate(row):
            parts.append(_moved(chart.body or Markup(""), (MARGIN + place * chart.size[0], top)))
        top += first.size[1]

    height = top + MARGIN / 2
    return (
        str(
            element(
                "svg",
                element("title", title),
                element("desc", description),
                Markup("<style>{}</style>").format(Markup(_style())),
                element("rect", x=0, y=0, width=width, height=height, fill="#ffffff"),
                *parts,
                xmlns="http://www.w3.org/2000/svg",
                role="img",
                viewBox=f"0 0 {width:g} {height:g}",
                width=width,
                height=height,
            )
        )
        + "\n"
    )


def _moved(drawn: Markup, place: Point) -> Markup:
    return element("g", drawn, transform=f"translate({place[0]:g} {place[1]:g})")


def _legend(entries: Sequence[LegendEntry], width: float, top: float) -> tuple[Markup, float]:
    if not entries:
        return Markup(""), 0.0
    widths = []
    for entry in entries:
        widths.append(SWATCH_WIDTH + LETTER_WIDTH * len(entry.label) + SWATCH_GAP)
    room = width - MARGIN
    is_one_row = sum(widths) <= room
    # Entries of several rows stand in columns, where the eye finds them faster.
    n_columns = max(1, int(room / max(widths)))
    n_rows = -(-len(entries) // n_columns)
    if is_one_row:
        n_rows = 1

    parts = []
    x = MARGIN
    for place, entry in enumerate(entries):
        # Down the columns, so that neighbours of the series stay neighbours of the legend.
        column, row = divmod(place, n_rows)
        if not is_one_row:
            x = MARGIN + column * max(widths)
        y = top + row * LEGEND_HEIGHT
        parts.append(_moved(entry.swatch, (x, y - 4)))
        parts.append(element("text", entry.label, x=x + SWATCH_WIDTH, y=y + 7))
        x += widths[place]
    return group(parts), n_rows * LEGEND_HEIGHT


def _style() -> str:
    rules = list(RULES)
    for style, colour in enumerate(COLOURS):
        for rule in SERIES_RULES:
            rules.append(rule.replace(COLOUR, colour).replace(STYLE, f".s{style}"))
    return "\n".join(rules)
