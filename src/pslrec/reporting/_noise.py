"""Noise curves: a metric by the probability of drawing a false negative, and a gain."""

import statistics
from collections.abc import Iterable, Mapping, Sequence

from pslrec.reporting._axes import Axis
from pslrec.reporting._charts import Area, Series, line_chart
from pslrec.reporting._document import Chart, Charts, Section, Text
from pslrec.reporting._grouping import grouped
from pslrec.reporting._measures import K
from pslrec.reporting._results import Gain
from pslrec.reporting._run_record import RunRecord

Curve = Sequence[tuple[float, float]]
# What runs of pslrec's own losses are compared with, unless somebody says otherwise.
BASE, FAMILY = "sl", "psl"
SAYS = (
    "A share of the training pairs is declared false negatives, and each negative is drawn from "
    "among them with probability p. Runs without noise train on all pairs, so these curves have "
    "no point at p = 0."
)


def noise_section(records: Sequence[RunRecord]) -> Section:
    """Draw a chart for each group of runs that differ in noise, loss and seed only.

    Args:
        records: the runs; groups in which no loss has two noise levels are left out.
    """
    noisy = []
    for record in records:
        is_noisy = record.settings.get("sampling.noise.probability")
        if is_noisy and record.metric(f"ndcg@{K}") is not None:
            noisy.append(record)
    charts = []
    for (source, *_, backbone, _), members in grouped(noisy, _alike).items():
        curves = mean_curves(map(_point, members))
        # Noise at a single level is an ordinary comparison, which other sections show.
        if max(map(len, curves.values())) > 1:
            title = f"{backbone} on {source}"
            of = [loss for loss in curves if loss.startswith(FAMILY)]
            chart = noise_chart(title, curves, metric=f"NDCG@{K}", gain=Gain(of, BASE))
            charts.append(chart)
    if not charts:
        return Section("Noise")
    return Section("Noise", [Text(SAYS), Charts(charts)])


def _alike(record: RunRecord) -> tuple[str, ...]:
    backbone = str(record.settings.get("backbone.name"))
    negatives = str(record.settings.get("sampling.negatives"))
    return (*record.data_key, backbone, negatives)


def _point(record: RunRecord) -> tuple[str, float, float]:
    loss = str(record.settings.get("loss.name"))
    value = record.metric(f"ndcg@{K}")
    assert value is not None
    return loss, float(record.settings["sampling.noise.probability"]), value


def mean_curves(points: Iterable[tuple[str, float, float]]) -> dict[str, Curve]:
    """Average the seeds of every loss and noise level; levels come out in order.

    Args:
        points: loss, noise level and value of every run.

    >>> mean_curves([("sl", 0.5, 0.1), ("sl", 0.1, 0.4), ("sl", 0.5, 0.3)])
    {'sl': [(0.1, 0.4), (0.5, 0.2)]}
    """
    curves: dict[str, Curve] = {}
    for loss, those in grouped(points, lambda point: point[0]).items():
        levels = grouped(those, lambda point: point[1])
        curve = []
        for level in sorted(levels):
            curve.append((level, statistics.fmean(value for _, _, value in levels[level])))
        curves[loss] = curve
    return curves


def noise_chart(
    title: str,
    curves: Mapping[str, Curve],
    *,
    metric: str,
    gain: Gain | None = None,
    losses: Sequence[str] = (),
    limits: tuple[float, float] | None = None,
) -> Chart:
    """Draw a line per loss, and the area of the best gain with its value at each point.

    Args:
        title: what the curves are of.
        curves: noise level and value, by loss.
        metric: name of the value.
        gain: which losses are compared.
        losses: all losses of several charts, so that a loss looks the same in each of them.
        limits: range of the values in several charts, so that all have the same axis.
    """
    order = list(losses) or sorted(curves, key=str.lower)
    series = []
    for style, loss in enumerate(order):
        if loss in curves:
            series.append(Series(loss, curves[loss], style))
    says = f"{metric} by the probability p that a negative is a false negative."
    area = None
    if gain is not None:
        area = improvement_area(curves, order, gain)
    if area is not None and area.notes:
        gains = [f"{note} at p = {p:g}" for p, note in area.notes.items()]
        says += f" {area.label}: {', '.join(gains)}."
    return line_chart(title, says, series, x=Axis("p"), y=Axis(metric, limits=limits), area=area)


def improvement_area(curves: Mapping[str, Curve], order: Sequence[str], gain: Gain) -> Area | None:
    """Find what the best loss gains over another, at the noise levels that both have.

    Args:
        curves: noise level and value, by loss.
        order: the losses in the order of their styles.
        gain: which losses are compared.
    """
    base = dict(curves.get(gain.over, ()))
    best = ""
    best_ratio = 0.0
    for loss, curve in curves.items():
        ratios = _ratios(curve, base)
        # An area needs two points at least.
        if loss not in gain.of or len(ratios) < 2:
            continue
        ratio = statistics.fmean(ratios.values())
        if not best or ratio > best_ratio:
            best = loss
            best_ratio = ratio
    if not best:
        return None

    values = dict(curves[best])
    lower = []
    upper = []
    notes = {}
    for p, ratio in _ratios(curves[best], base).items():
        lower.append((p, base[p]))
        upper.append((p, values[p]))
        notes[p] = f"{100 * (ratio - 1):+.1f} %"
    return Area(f"{best} over {gain.over}", lower, upper, list(order).index(best), notes)


def _ratios(curve: Curve, base: Mapping[float, float]) -> dict[float, float]:
    ratios = {}
    for p, value in curve:
        below = base.get(p, 0.0)
        # The other may have no value at this level, or find nothing at all.
        if below > 0:
            ratios[p] = value / below
    return ratios
