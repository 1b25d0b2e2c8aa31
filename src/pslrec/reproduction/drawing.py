"""Charts as files of their own: SVG always, PNG beside it where the extra `plots` is installed."""

import textwrap
from importlib.util import find_spec
from pathlib import Path

from markupsafe import Markup

from pslrec.files import write_bytes, write_text
from pslrec.reporting import Chart, element

MARGIN, TITLE_HEIGHT, LEGEND_HEIGHT = 12.0, 24.0, 18.0
HEADING_LINE, MOST_LETTERS = 17.0, 50
LETTER_WIDTH, SWATCH_WIDTH = 6.3, 48.0
PNG_SCALE = 2.0
# As in reports on a light ground; readers of SVG files know no variables, so every colour is written out.
COLOURS = ("#0072b2", "#d55e00", "#00876a", "#b8568c", "#b27b00", "#3d95c9", "#5f6670", "#7a4a1e")
RULES = (
    "text { font: 11.5px Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif; fill: #1c2330; }",
    ".heading { font-size: 14px; font-weight: bold; }",
    ".tick { font-size: 11px; fill: #596273; }",
    ".value { font-size: 10.5px; }",
    ".end { text-anchor: end; }",
    ".middle { text-anchor: middle; }",
    ".grid { stroke: #d9dde4; fill: none; }",
    ".axis { stroke: #596273; fill: none; }",
)
STYLE, COLOUR = "STYLE", "COLOUR"
SERIES_RULES = (
    "STYLE .line { stroke: COLOUR; stroke-width: 1.8; fill: none; stroke-linejoin: round; stroke-linecap: round; }",
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
    drawing = standalone_svg(chart)
    written = [path.with_name(f"{path.name}.svg")]
    write_text(written[0], drawing)
    if find_spec("vl_convert") is not None:
        import vl_convert

        written.append(path.with_name(f"{path.name}.png"))
        write_bytes(written[1], vl_convert.svg_to_png(drawing, scale=PNG_SCALE))
    return written


def standalone_svg(chart: Chart) -> str:
    """The chart with its title, legend and colours in one SVG document."""
    width = chart.size[0] + 2 * MARGIN
    heading = textwrap.wrap(chart.title, MOST_LETTERS)
    under_heading = MARGIN + TITLE_HEIGHT + HEADING_LINE * (len(heading) - 1)
    legend, legend_height = _legend(chart, width, under_heading)
    top = under_heading + legend_height
    height = top + chart.size[1] + MARGIN / 2
    parts = [
        element("title", chart.title),
        element("desc", chart.description),
        Markup("<style>{}</style>").format(Markup(_style())),
        element("rect", x=0, y=0, width=width, height=height, fill="#ffffff"),
        *(
            element("text", line, x=MARGIN, y=MARGIN + 12 + HEADING_LINE * place, class_="heading")
            for place, line in enumerate(heading)
        ),
        legend,
        element("g", chart.body or Markup(""), transform=f"translate({MARGIN:g} {top:g})"),
    ]
    size = {"viewBox": f"0 0 {width:g} {height:g}", "width": width, "height": height}
    return (
        str(element("svg", *parts, xmlns="http://www.w3.org/2000/svg", role="img", **size)) + "\n"
    )


def _legend(chart: Chart, width: float, top: float) -> tuple[Markup, float]:
    x, y = MARGIN, top
    parts: list[Markup] = []
    for entry in chart.legend:
        needed = SWATCH_WIDTH + LETTER_WIDTH * len(entry.label)
        if x > MARGIN and x + needed > width:
            x, y = MARGIN, y + LEGEND_HEIGHT
        parts.append(element("g", entry.swatch, transform=f"translate({x:g} {y - 4:g})"))
        parts.append(element("text", entry.label, x=x + 32, y=y + 7))
        x += needed
    height = y + LEGEND_HEIGHT - top if chart.legend else 0.0
    return Markup("").join(parts), height


def _style() -> str:
    coloured = [
        rule.replace(COLOUR, colour).replace(STYLE, f".s{style}")
        for style, colour in enumerate(COLOURS)
        for rule in SERIES_RULES
    ]
    return "\n".join([*RULES, *coloured])
