"""Pictures of results: an SVG for the pages and a small PNG beside it, in `docs/images`.

A benchmark that has pictures defines `plots(record)`, which gives them by name. They are made from the kept record, so the
pictures of the pages can be drawn again without measuring.
"""

import io
import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from benchmarks._publish import REPOSITORY
from pslrec.files import make_directory, write_bytes, write_text

IMAGES = REPOSITORY / "docs" / "images"
# Told apart without colour as well: every series has a shape of its own.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7f6000", "#555555")
PNG_SCALE = 1.0
MOST_TICKS = 10
Chart = Any


def draw(
    benchmark: ModuleType,
    record: dict[str, Any],
    *,
    directory: Path = IMAGES,
    report: Callable[[str], object] = lambda _: None,
) -> list[Path]:
    """Write the pictures of a benchmark; gives the files.

    Args:
        benchmark: its module.
        record: what was kept of it.
        directory: where the pictures go.
        report: is told if they cannot be drawn.
    """
    if not hasattr(benchmark, "plots"):
        return []
    try:
        import altair  # noqa: F401
        import vl_convert  # noqa: F401
    except ImportError:
        report("pictures need `pip install 'pslrec[bench]'`; the old ones stay")
        return []
    written: list[Path] = []
    for name, chart in benchmark.plots(record).items():
        written += save(chart, directory / f"{name}.svg")
    return written


def save(chart: Chart, path: Path) -> list[Path]:
    """Write a chart as SVG and PNG; gives both files.

    Args:
        chart: of altair.
        path: of one of them; the other has the same name but for its ending.
    """
    make_directory(path.parent)
    drawing, picture = io.StringIO(), io.BytesIO()
    _finished(chart).save(drawing, format="svg")
    _finished(chart).save(picture, format="png", scale_factor=PNG_SCALE)
    write_text(path.with_suffix(".svg"), drawing.getvalue())
    write_bytes(path.with_suffix(".png"), picture.getvalue())
    return [path.with_suffix(".svg"), path.with_suffix(".png")]


class Axis(NamedTuple):
    """What an axis shows.

    Args:
        key: of the points.
        title: beside it.
        scale: `log` or `linear`.
        ends: lowest and highest value; those of the points if not given.
    """

    key: str
    title: str
    scale: str = "log"
    ends: tuple[float, float] | None = None


def lines(
    points: list[dict[str, Any]],
    *,
    x: Axis,
    y: Axis,
    series: str,
    shape: str | None = None,
    title: str = "",
    size: tuple[int, int] = (320, 240),
) -> Chart:
    """Marked lines, one per series.

    Args:
        points: one dictionary per point.
        x: the horizontal axis; its ticks stand at the points where these are few.
        y: the vertical axis.
        series: key by which points belong together.
        shape: key by which lines of one series, and of one colour, are told apart; there is one line per series if not given.
        title: above the chart.
        size: width and height of the plane.
    """
    import altair

    names = _in_order(points, series)
    shapes = _in_order(points, shape or series)
    return (
        altair.Chart(altair.Data(values=points), title=title, width=size[0], height=size[1])
        .mark_line(point=altair.OverlayMarkDef(size=45, filled=True), strokeWidth=1.6)
        .encode(
            x=altair.X(f"{x.key}:Q", title=x.title)
            .scale(**_scale(points, x))
            .axis(**_ticks(points, x)),
            y=altair.Y(f"{y.key}:Q", title=y.title)
            .scale(**_scale(points, y))
            .axis(**_decades(points, y)),
            color=altair.Color(f"{series}:N", title=None, sort=names).scale(
                domain=names, range=list(COLORS)
            ),
            shape=altair.Shape(f"{shape or series}:N", title=None, sort=shapes).scale(
                domain=shapes
            ),
            detail=[f"{series}:N", f"{shape or series}:N"],
        )
    )


def _in_order(points: list[dict[str, Any]], key: str) -> list[str]:
    return list(dict.fromkeys(point[key] for point in points))


def _scale(points: list[dict[str, Any]], axis: Axis) -> dict[str, Any]:
    if axis.ends is not None:
        return {"type": axis.scale, "domain": axis.ends, "nice": False}
    values = [point[axis.key] for point in points]
    if axis.scale == "linear":
        return {"type": "linear", "domain": (0, 1.05 * max(values))}
    return {"type": "log", "domain": (min(values) / 1.3, max(values) * 1.3), "nice": False}


def _ticks(points: list[dict[str, Any]], axis: Axis) -> dict[str, Any]:
    values = sorted({point[axis.key] for point in points})
    return (
        {"values": values, "format": ",~g"}
        if axis.scale == "log" and len(values) <= MOST_TICKS
        else {}
    )


def _decades(points: list[dict[str, Any]], axis: Axis) -> dict[str, Any]:
    """Powers of ten, which is all that a wide logarithmic axis needs."""
    if axis.scale != "log":
        return {}
    low, high = axis.ends or (
        min(point[axis.key] for point in points),
        max(point[axis.key] for point in points),
    )
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    if len(exponents) <= MOST_TICKS // 2:
        return {
            "values": [factor * 10.0**exponent for exponent in exponents for factor in (1, 2, 5)],
            "format": "~g",
        }
    return {
        "values": [10.0**exponent for exponent in exponents],
        "format": ",.0f" if low >= 1 else ".0e",
    }


def _finished(chart: Chart) -> Chart:
    # A white ground of its own: pages have a dark scheme as well.
    return (
        chart.configure(background="white", font="DejaVu Sans", padding=8)
        .configure_axis(
            gridColor="#e4e4e4", titleFontWeight="normal", labelFontSize=11, titleFontSize=12
        )
        .configure_title(fontSize=13, fontWeight="normal", anchor="start")
        .configure_legend(labelFontSize=12, labelLimit=0, symbolSize=80, orient="right")
        .configure_view(stroke="#cccccc")
    )
