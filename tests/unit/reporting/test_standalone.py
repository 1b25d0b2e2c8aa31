"""Charts as files of their own: everything inside, nothing that only a page of ours knows."""

import itertools
import re
import sys
import xml.etree.ElementTree as ElementTree
from importlib.machinery import ModuleSpec
from importlib.resources import files
from pathlib import Path
from types import ModuleType

import pytest

from pslrec.reporting import Axis, Chart, Series, line_chart, standalone_svg, write_chart
from pslrec.reporting._standalone import COLOURS

SPACE = "{http://www.w3.org/2000/svg}"


def chart(title: str = "Loss", *, n_series: int = 2, label: str = "series") -> Chart:
    series = []
    for place in range(n_series):
        series.append(Series(f"{label} {place}", [(1, 1.0 + place), (2, 2.0 + place)]))
    return line_chart(title, "It falls.", series, x=Axis("epoch"), y=Axis("loss"))


def box(drawing: ElementTree.Element) -> tuple[float, float]:
    _, _, width, height = map(float, str(drawing.get("viewBox")).split())
    return width, height


def test_picture_holds_title_description_legend_and_a_white_ground():
    drawing = ElementTree.fromstring(standalone_svg(chart()))
    written = {element.text for element in drawing.iter()}
    assert {"Loss", "It falls.", "series 0", "series 1", "epoch", "loss"} <= written
    width, height = box(drawing)
    (ground,) = (rect for rect in drawing.findall(f"{SPACE}rect"))
    assert ground.get("fill") == "#ffffff"
    assert (float(str(ground.get("width"))), float(str(ground.get("height")))) == (width, height)
    assert (drawing.get("width"), drawing.get("height")) == (f"{width:g}", f"{height:g}")


def test_colours_are_those_of_reports_and_written_out():
    page = files("pslrec.reporting").joinpath("page.css").read_text(encoding="utf-8")
    light = page[: page.index("@media")]
    assert re.findall(r"--c\d: (#\w+);", light) == list(COLOURS)
    assert "var(" not in standalone_svg(chart())


@pytest.mark.parametrize("n_series", [2, 5, 10])
@pytest.mark.parametrize("label", ["a", "series of a name that is long"])
def test_entries_of_a_legend_stay_inside_and_do_not_overlap(n_series, label):
    drawing = ElementTree.fromstring(standalone_svg(chart(n_series=n_series, label=label)))
    entries = [text for text in drawing.iter(f"{SPACE}text") if label in str(text.text)]
    assert len(entries) == n_series
    width, _ = box(drawing)
    rows: dict[float, list[tuple[float, float]]] = {}
    for entry in entries:
        left = float(str(entry.get("x")))
        # No usual font has letters that are wider than this on average.
        right = left + 6.3 * len(str(entry.text))
        assert right <= width
        rows.setdefault(float(str(entry.get("y"))), []).append((left, right))
    for places in rows.values():
        places.sort()
        for (_, right), (left, _) in itertools.pairwise(places):
            assert right + 32 <= left


def test_several_charts_share_one_legend():
    charts = [chart(title) for title in ("one", "two", "three")]
    drawing = standalone_svg(*charts, title="All", description="Three.", columns=2)
    parsed = ElementTree.fromstring(drawing)
    written = [element.text for element in parsed.iter(f"{SPACE}text")]
    assert written.count("series 0") == 1
    assert {"All", "one", "two", "three"} <= set(written)
    width, height = box(parsed)
    assert width == 2 * 400 + 24
    assert height > 2 * 250


def test_labels_are_escaped():
    drawing = standalone_svg(chart("<script>", label="<b>"))
    assert "<script>" not in drawing
    assert "<b>" not in drawing


def test_svg_is_written_alone_where_no_png_can_be_made(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("pslrec.reporting._standalone.find_spec", lambda name: None)
    (written,) = write_chart(chart(), tmp_path / "one.two")
    assert written == tmp_path / "one.two.svg"
    assert written.read_text().startswith("<svg")
    empty = line_chart("t", "d", [Series("a", [])], x=Axis("x"), y=Axis("y"))
    assert write_chart(empty, tmp_path / "empty") == []


def test_png_is_written_beside_the_svg_where_it_can_be_made(tmp_path: Path, monkeypatch):
    converter = ModuleType("vl_convert")
    converter.__spec__ = ModuleSpec("vl_convert", None)
    converter.svg_to_png = lambda drawing, scale: f"{scale} {drawing[:4]}".encode()
    monkeypatch.setitem(sys.modules, "vl_convert", converter)
    _, picture = write_chart(chart(), tmp_path / "one")
    assert picture == tmp_path / "one.png"
    assert picture.read_bytes() == b"2.0 <svg"
