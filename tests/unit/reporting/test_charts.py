"""Axes and charts: where ticks and lines lie, what happens to values that can not be drawn."""

import itertools
import math
import re
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pslrec.reporting._axes import (
    Axis,
    log_tick_labels,
    log_ticks,
    nice_ticks,
    scale_for,
    tick_labels,
)
from pslrec.reporting._charts import (
    BOTTOM,
    MARK_DISTANCE,
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
LOG = Axis("seconds", is_log=True)


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


positive = st.floats(1e-12, 1e12, allow_nan=False)


@given(st.tuples(positive, positive), st.integers(3, 12))
def test_ticks_of_a_logarithmic_axis_enclose_the_values_and_are_few(ends, count):
    low, high = sorted(ends)
    ticks = log_ticks(low, high, count=count)
    assert 0 < ticks[0] <= low * (1 + 1e-6)
    assert ticks[-1] >= high * (1 - 1e-6)
    assert 2 <= len(ticks) <= 2 * count + 4
    assert ticks == sorted(set(ticks))
    assert len(set(log_tick_labels(ticks))) == len(ticks)


@given(st.lists(positive, min_size=1, max_size=20), st.booleans())
def test_every_value_lies_inside_its_logarithmic_scale(values, is_tight):
    scale = scale_for(values, LOG, (200.0, 20.0), is_tight=is_tight)
    assert all(20 - 1e-6 <= scale(value) <= 200 + 1e-6 for value in values)


def test_equal_ratios_take_equal_room_on_a_logarithmic_scale():
    scale = scale_for([1.0, 100.0], LOG, (0.0, 200.0))
    assert [scale(value) for value in (1.0, 10.0, 100.0)] == pytest.approx([0.0, 100.0, 200.0])
    assert [text for _, text in scale.ticks] == ["1", "2", "5", "10", "20", "50", "100"]
    assert math.isnan(scale(0.0))


def test_long_logarithmic_axes_have_ticks_at_powers_of_ten():
    assert log_ticks(10, 10_000) == [10.0, 100.0, 1_000.0, 10_000.0]
    assert log_ticks(2e-10, 1.0) == [1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1.0]
    assert log_tick_labels([1e-10, 1.0]) == ["10⁻¹⁰", "10⁰"]


@pytest.mark.parametrize(
    "wrong", [{"from_zero": True}, {"categories": ["a"]}, {"limits": (0.0, 1.0)}, {"floor": -1.0}]
)
def test_a_logarithmic_axis_refuses_to_show_zero(wrong):
    with pytest.raises(ValueError, match="logarithmic"):
        Axis("seconds", is_log=True, **wrong)


def test_values_without_a_logarithm_leave_a_gap():
    points = [(0, 1.0), (1, 10.0), (2, 0.0), (3, -1.0), (4, 1000.0), (5, 500.0)]
    chart = line_chart("t", "d", [Series("a", points, errors=[20.0] * 6)], x=LOG, y=LOG)
    assert "nan" not in str(chart.body)
    assert lines(chart)[0].count("M") == 2
    assert len(list(drawing(chart).iter("circle"))) == 3
    # The bar of the first point that is shown would reach below 0, and ends at the axis.
    bars = [path for path in drawing(chart).iter("path") if path.get("class") == "error"]
    assert len(bars) == 3
    assert line_chart("t", "d", [Series("a", [(1, 0.0)])], x=X, y=LOG).body is None


def test_marks_do_not_crowd_on_a_logarithmic_axis():
    points = [(float(x), 1.0) for x in range(1, 200)]
    chart = line_chart("t", "d", [Series("a", points)], x=LOG, y=Y)
    places = [float(str(mark.get("cx"))) for mark in drawing(chart).iter("circle")]
    assert min(b - a for a, b in itertools.pairwise(places)) >= MARK_DISTANCE - 0.01
    assert len(places) > 10


def test_what_lies_below_the_floor_is_cut_off():
    series = Series("a", [(1, 0.1), (2, 0.5), (3, 0.6)])
    chart = line_chart("t", "d", [series], x=X, y=Axis("y", floor=0.4))
    ticks = [mark.text for mark in drawing(chart).iter("text") if mark.get("class") == "tick end"]
    assert ticks[0] == "0.40"
    assert ticks[-1] == "0.60"
    (window,) = drawing(chart).findall("svg")
    assert float(str(window.get("y"))) + float(str(window.get("height"))) == BOTTOM


def test_a_larger_chart_fills_its_size_with_more_ticks():
    series = [Series("a", [(1, 0.0), (9, 1.0)])]
    small = line_chart("t", "d", series, x=X, y=Y)
    large = line_chart("t", "d", series, x=X, y=Y, size=(800.0, 500.0))
    assert large.size == (800.0, 500.0)
    n_ticks = [str(chart.body).count("tick end") for chart in (small, large)]
    assert n_ticks[0] < n_ticks[1]
    assert "H788" in str(large.body)


def test_series_of_one_colour_differ_in_their_marks():
    points = [(1, 1.0), (2, 2.0)]
    series = [Series("a", points, style=3, mark=0), Series("b", points, style=3, mark=1)]
    chart = line_chart("t", "d", series, x=X, y=Y)
    assert "circle" in chart.legend[0].swatch
    assert "circle" not in chart.legend[1].swatch
    assert all("s3" in entry.swatch for entry in chart.legend)


def test_a_chart_that_is_not_thinned_keeps_every_point():
    series = [Series("a", [(x, 1.0) for x in range(500)]), Series("b", [(250.5, 2.0)])]
    chart = line_chart("t", "d", series, x=X, y=Y, is_thinned=False)
    assert len(chart.data.rows) == 501


def test_tick_labels_have_equal_decimals():
    assert tick_labels([0.0, 0.25, 0.5]) == ["0.00", "0.25", "0.50"]
    assert tick_labels([0.0, 2e6]) == ["0", "2e+06"]


def test_large_ticks_that_differ_late_have_labels_that_differ():
    assert tick_labels([5.005e8, 5.01e8]) == ["5.005e+08", "5.01e+08"]


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
