"""Pictures of studies: what a search has tried, and who is ahead in a comparison."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from pslrec.reporting._axes import Axis, scale_for
from pslrec.reporting._charts import WIDTH, Series, bar_chart, line_chart
from pslrec.reporting._document import Chart, Table, number, words
from pslrec.reporting._svg import element, group, shape, style_class, text

# Values that span more than this factor are shown by order of magnitude.
LOG_FROM = 8
LETTER = 6.4
ROW, BAR_GAP = 17.0, 9.0
SHOWN_CURVES = 8


def slice_chart(name: str, trials: Sequence[Mapping[str, Any]], *, metric: str) -> Chart:
    """The value of every trial over one setting.

    Args:
        name: of the setting.
        trials: with `settings`, `value` and `state`, best first; all have a value.
        metric: what the value is.
    """
    values = [trial["settings"][name] for trial in trials]
    axis = _axis_for(name.rpartition(".")[2], values)
    points: dict[str, list[tuple[float, float]]] = {}
    for value, trial in zip(values, trials, strict=True):
        place = value
        if axis.categories is not None:
            place = axis.categories.index(str(value))
        label = "given up" if trial["state"] == "pruned" else trial["state"]
        if label == "finished" and "best" not in points:
            label = "best"
        points.setdefault(label, []).append((float(place), float(trial["value"])))
    series = []
    for label, those in points.items():
        ring = those[0][0] if label == "best" else None
        is_other = label not in ("best", "finished")
        series.append(
            Series(label, those, is_connected=False, is_reference=is_other, highlight=ring)
        )
    says = f"Every mark is a trial with its value of {name}; the ring is around the best one."
    title = f"{metric} over {name}"
    return line_chart(title, says, series, x=axis, y=Axis(f"validation {metric}"))


def _axis_for(label: str, values: Sequence[Any]) -> Axis:
    numbers = [value for value in values if isinstance(value, int | float)]
    if len(numbers) < len(values) or any(isinstance(value, bool) for value in values):
        return Axis(label, categories=sorted({str(value) for value in values}))
    smallest, largest = min(numbers), max(numbers)
    if smallest > 0 and largest / smallest >= LOG_FROM:
        return Axis(label, is_log=True)
    # Zero has no place on a logarithmic axis, and crowds the others on a linear one.
    if smallest == 0 and largest < 0.1:
        return Axis(label, categories=[str(value) for value in sorted(set(numbers))])
    return Axis(label)


def importance_chart(importances: Mapping[str, float]) -> Chart:
    """How much each setting matters for being among the better trials."""
    bars = sorted(importances.items(), key=lambda pair: -pair[1])
    says = (
        "PED-ANOVA: how differently the better trials are spread over the values of a setting than "
        "all trials are; shares of the whole."
    )
    return bar_chart(
        "What matters", says, bars, axis=Axis("share of the importance"), pattern=".2f"
    )


def curve_chart(trials: Sequence[Mapping[str, Any]], *, metric: str) -> Chart:
    """Values on validation by epoch, of the best trials."""
    series: list[Series] = []
    for trial in trials:
        curve = {int(epoch): float(value) for epoch, value in trial["curve"].items()}
        if len(curve) > 1 and len(series) < SHOWN_CURVES:
            points = [(float(epoch), curve[epoch]) for epoch in sorted(curve)]
            series.append(Series(f"trial {trial['trial']}", points))
    says = "The best trials, as training went on."
    axis = Axis("epoch", is_whole=True)
    return line_chart("Learning curves", says, series, x=axis, y=Axis(f"validation {metric}"))


def quality_chart(contestants: Sequence[Mapping[str, Any]], *, metric: str, title: str) -> Chart:
    """Quality against the seconds that one training takes."""
    series = []
    for one in contestants:
        deviation = one[f"{metric}_deviation"] or 0.0
        point = (max(float(one["seconds"]), 1e-3), float(one[metric]))
        series.append(Series(one["name"], [point], is_connected=False, errors=[deviation]))
    says = "Up and to the left is better. Bars are the standard deviation over seeds."
    x = Axis("seconds of one training", is_log=True)
    return line_chart(title, says, series, x=x, y=Axis(f"test {metric}"))


def critical_difference_chart(
    ranks: Mapping[str, float], critical: float, groups: Sequence[Sequence[str]], *, title: str
) -> Chart:
    """Mean ranks on a line; a thick bar joins those that cannot be told apart.

    Args:
        ranks: by name, best first.
        critical: the smallest difference of mean ranks that tells two apart.
        groups: names that are joined.
        title: above the picture.
    """
    names = list(ranks)
    n_left = (len(names) + 1) // 2
    # Names stand on both sides; lines lead from them to their places.
    room = LETTER * max(len(name) for name in names) + 10
    across = scale_for(
        [1.0, float(len(names))],
        Axis("mean rank", is_whole=True, limits=(1.0, float(len(names)))),
        (min(room, 120.0), WIDTH - min(room, 120.0)),
        is_tight=True,
    )
    level = 48.0
    parts = [shape(f"M{across.start:.1f} {level:g}H{across.end:.1f}", "axis")]
    for value, label in across.ticks:
        parts.append(shape(f"M{across(value):.1f} {level:g}v-5", "axis"))
        parts.append(text(label, across(value), level - 9, "tick middle"))
    width = across(1.0 + critical) - across(1.0)
    bar = element("rect", x=across.start, y=12.0, width=max(width, 0.8), height=4.0, class_="bar")
    parts.append(element("g", bar, class_=style_class(1)))
    caption = f"critical difference {critical:.3g}"
    parts.append(text(caption, across.start + width + 6, 18.0, "value"))

    foot = level + 10
    for members in groups:
        left, right = across(ranks[members[0]]) - 3, across(ranks[members[-1]]) + 3
        thick = element("rect", x=left, y=foot, width=right - left, height=4.0, class_="bar")
        parts.append(element("g", thick, class_=style_class(0)))
        foot += BAR_GAP
    parts += _labels(names, ranks, across, level, foot + 12, n_left)
    rows = [[words(name), number(ranks[name], ".3f")] for name in names]
    n_rows = max(n_left, len(names) - n_left)
    says = (
        "Ranks of the contestants for each user, averaged (1 is best). Those joined by a bar "
        "cannot be told apart (Nemenyi's test at 0.05)."
    )
    data = Table(title, ["contestant", "mean rank"], rows)
    return Chart(title, says, data, group(parts), (WIDTH, foot + 18 + ROW * n_rows))


def _labels(
    names: Sequence[str],
    ranks: Mapping[str, float],
    across: Any,
    level: float,
    top: float,
    n_left: int,
) -> list[Markup]:
    parts = []
    for place, name in enumerate(names):
        x = across(ranks[name])
        if place < n_left:
            row = place
            parts.append(text(name, across.start - 6, top + ROW * row + 4, "label end"))
            end = across.start - 3
        else:
            row = len(names) - 1 - place
            parts.append(text(name, across.end + 6, top + ROW * row + 4, "label"))
            end = across.end + 3
        parts.append(shape(f"M{end:.1f} {top + ROW * row:.1f}H{x:.1f}V{level:g}", "axis"))
    return parts
