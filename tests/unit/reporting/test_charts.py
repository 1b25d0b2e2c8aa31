"""Axes and charts: where ticks and lines lie, what happens to values that can not be drawn."""

import math
import re
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pslrec.reporting._axes import Axis, nice_ticks, scale_for, tick_labels
from pslrec.reporting._charts import (
    MOST_LETTERS,
    MOST_POINTS,
    Area,
    Series,
    bar_chart,
    histogram,
    line_chart,
)
from pslrec.reporting._document import Chart

X, Y = Axis("epoch", is_whole=True), Axis("loss")


def drawing(chart: Chart) -> ElementTree.Element:
    """The content of a chart, parsed; it must be well-formed."""
    return ElementTree.fromstring(f"<svg>{chart.body}</svg>")


def lines(chart: Chart) -> list[str]:
    return [
        str(path.get("d")) for path in drawing(chart).iter("path") if path.get("class") == "line"
    ]


finite = st.floats(-1e9, 1e9, allow_nan=False)


@given(st.tuples(finite, finite), st.booleans())
def test_ticks_enclose_the_values_evenly_and_are_few(ends, is_whole):
    low, high = sorted(ends)
    ticks = nice_ticks(low, high, is_whole=is_whole)
    slack = 1e-6 * max(1.0, abs(low), abs(high))
    assert ticks[0] <= low + slack
    assert ticks[-1] >= high - slack
    assert 2 <= len(ticks) <= 12
    assert ticks == sorted(set(ticks))
    if is_whole:
        assert all(tick == round(tick) for tick in ticks)


@given(st.lists(finite, min_size=1, max_size=20))
def test_every_value_lies_inside_its_scale(values):
    scale = scale_for(values, Y, (200.0, 20.0))
    assert all(20 - 1e-6 <= scale(value) <= 200 + 1e-6 for value in values)
    assert len({text for _, text in scale.ticks}) == len(scale.ticks)


def test_tick_labels_have_equal_decimals():
    assert tick_labels([0.0, 0.25, 0.5]) == ["0.00", "0.25", "0.50"]
    assert tick_labels([0.0, 2e6]) == ["0", "2e+06"]


def test_line_has_a_gap_where_a_value_is_not_finite():
    chart = line_chart(
        "t", "d", [Series("a", [(1, 1.0), (2, math.nan), (3, math.inf), (4, 2.0)])], x=X, y=Y
    )
    assert lines(chart)[0].count("M") == 2
    assert [row[1].text for row in chart.data.rows] == ["1", "not a number", "inf", "2"]


def test_one_point_is_marked_without_a_line():
    chart = line_chart("t", "d", [Series("a", [(1, 5.0)])], x=X, y=Y)
    assert lines(chart) == []
    assert len(list(drawing(chart).iter("circle"))) == 1


@pytest.mark.parametrize("points", [[], [(1, math.nan)]], ids=["no points", "not a number"])
def test_nothing_to_draw_is_no_error(points):
    chart = line_chart("t", "d", [Series("a", points)], x=X, y=Y)
    assert chart.body is None
    assert bar_chart("t", "d", [("a", math.nan)], axis=Y).body is None


def test_long_series_are_thinned_but_keep_ends_and_the_ring():
    series = Series("a", [(epoch, 1.0 / epoch) for epoch in range(1, 10_001)], highlight=777)
    chart = line_chart("t", "d", [series], x=X, y=Y)
    shown = [row[0].value for row in chart.data.rows]
    assert len(shown) <= MOST_POINTS + 1
    assert (shown[0], shown[-1]) == (1, 10_000)
    assert 777 in shown
    assert any(circle.get("class") == "ring" for circle in drawing(chart).iter("circle"))


def test_labels_of_series_are_escaped():
    nasty = '<script>alert("1")</script>&'
    chart = line_chart("t", "d", [Series(nasty, [(1, 1.0), (2, 2.0)])], x=X, y=Y)
    assert "<script" not in str(chart.body)
    assert any(nasty in str(tip.text) for tip in drawing(chart).iter("title"))


def test_area_lies_between_its_lines_and_tells_the_gain():
    lower, upper = [(0.1, 1.0), (0.5, 0.5)], [(0.1, 1.1), (0.5, 1.0)]
    area = Area("gain", lower, upper, notes={0.5: "+100.0 %"})
    series = [Series("sl", lower), Series("psl", upper)]
    chart = line_chart("t", "d", series, x=Axis("p"), y=Y, area=area)
    assert "+100.0 %" in str(chart.body)
    assert [entry.label for entry in chart.legend] == ["sl", "psl", "gain"]
    shape = next(path for path in drawing(chart).iter("path") if path.get("class") == "area")
    assert len(re.findall("[ML]", str(shape.get("d")))) == 4


def test_histogram_tells_the_share_of_each_bin():
    chart = histogram(
        "t", "d", [0.0, 1.0, 2.0], {"a": [0.25, 0.75], "b": [1.0, 0.0]}, x=Axis("score")
    )
    assert [[cell.value for cell in row] for row in chart.data.rows] == [
        [0, 1, 0.25, 1.0],
        [1, 2, 0.75, 0.0],
    ]


def test_bars_of_negative_values_lie_left_of_zero():
    chart = bar_chart("t", "d", [("up", 1.0), ("down", -1.0)], axis=Axis("difference"))
    up, down = (bar for bar in drawing(chart).iter("rect"))
    assert float(str(down.get("x"))) < float(str(up.get("x")))
    assert float(str(down.get("x"))) + float(str(down.get("width"))) == pytest.approx(
        float(str(up.get("x"))), abs=0.1
    )


def test_a_long_name_of_a_bar_takes_several_lines():
    long = "SL · noise, removed, hidden at test · 0.05 · catalogue · paper · and one more word"
    chart = bar_chart("t", "d", [(long, 1.0), ("short", 2.0)], axis=Axis("difference"))
    named = [text for text in drawing(chart).iter("text") if text.get("class") == "name"]
    assert " ".join(str(text.text) for text in named) == f"{long} short"
    assert max(len(str(text.text)) for text in named) <= MOST_LETTERS
    first, second = (float(str(bar.get("y"))) for bar in drawing(chart).iter("rect"))
    heights = [float(str(text.get("y"))) for text in named]
    assert heights[0] < heights[1] < first < heights[2] < second
