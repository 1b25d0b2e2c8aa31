"""Noise curves: the metric by the probability of drawing a false negative, and what PSL gains over SL."""

import statistics
from collections.abc import Mapping, Sequence

from pslrec.reporting._axes import Axis
from pslrec.reporting._charts import Area, Series, line_chart
from pslrec.reporting._document import Block, Chart, Charts, Section, Text
from pslrec.reporting._measures import K
from pslrec.reporting._run_record import RunRecord

Curve = Sequence[tuple[float, float]]
BASE = "sl"


def noise_section(records: Sequence[RunRecord]) -> Section:
    """A chart for each group of runs that differ in noise, loss and seed.

    Args:
        records: the runs; groups in which no loss has two noise levels are left out.
    """
    groups: dict[tuple[str, ...], dict[str, dict[float, list[float]]]] = {}
    for record in records:
        value, p = (
            record.metric(f"ndcg@{K}"),
            record.settings.get("sampling.noise.probability", 0.0),
        )
        if value is None or not p:
            continue
        key = (
            *record.data_key,
            str(record.settings.get("backbone.name")),
            str(record.settings.get("sampling.negatives")),
        )
        curves = groups.setdefault(key, {})
        curves.setdefault(str(record.settings.get("loss.name")), {}).setdefault(
            float(p), []
        ).append(value)
    charts = []
    for key, found in groups.items():
        if max(len(points) for points in found.values()) > 1:
            curves_ = {loss: mean_curve(points) for loss, points in found.items()}
            charts.append(noise_chart(f"{key[-2]} on {key[0]}", curves_, metric=f"NDCG@{K}"))
    if not charts:
        return Section("Noise")
    says = (
        "A share of the training pairs is declared false negatives, and a negative is drawn among them with probability p. "
        "Runs without noise train on all pairs, so p = 0 is no point of these curves."
    )
    blocks: list[Block] = [Text(says), Charts(charts)]
    return Section("Noise", blocks)


def mean_curve(points: Mapping[float, Sequence[float]]) -> list[tuple[float, float]]:
    """Means by noise level, in order.

    >>> mean_curve({0.5: [0.1, 0.3], 0.1: [0.4]})
    [(0.1, 0.4), (0.5, 0.2)]
    """
    return [(p, statistics.fmean(values)) for p, values in sorted(points.items())]


def noise_chart(
    title: str,
    curves: Mapping[str, Curve],
    *,
    metric: str,
    losses: Sequence[str] = (),
    limits: tuple[float, float] | None = None,
) -> Chart:
    """One line per loss, and the area between SL and the best PSL, with the relative improvement at each point.

    Args:
        title: what the curves are of.
        curves: noise level and value, by loss.
        metric: name of the value.
        losses: which numbers of styles losses have, so that they look the same in several charts.
        limits: of the values, so that several charts have the same axis.
    """
    order = list(losses) or sorted(curves, key=str.lower)
    series = [Series(loss, curves[loss], order.index(loss)) for loss in order if loss in curves]
    area = improvement_area(curves, order)
    says = f"{metric} by the probability p that a negative is a false one."
    if area is not None and area.notes:
        says += (
            f" {area.label}: {', '.join(f'{note} at p = {p:g}' for p, note in area.notes.items())}."
        )
    return line_chart(title, says, series, x=Axis("p"), y=Axis(metric, limits=limits), area=area)


def improvement_area(curves: Mapping[str, Curve], order: Sequence[str]) -> Area | None:
    """What the best PSL gains over SL, where both have values.

    Args:
        curves: noise level and value, by loss.
        order: styles of the losses.
    """
    base = next((dict(curve) for loss, curve in curves.items() if loss.lower() == BASE), None)
    if base is None:
        return None
    best: tuple[float, str, list[float]] | None = None
    for loss, curve in curves.items():
        common = [p for p, _ in curve if base.get(p, 0.0) > 0]
        if not loss.lower().startswith("psl") or len(common) < 2:
            continue
        gain = statistics.fmean(dict(curve)[p] / base[p] for p in common)
        if best is None or gain > best[0]:
            best = (gain, loss, common)
    if best is None:
        return None
    _, loss, common = best
    upper = dict(curves[loss])
    notes = {p: f"{100 * (upper[p] / base[p] - 1):+.1f} %" for p in common}
    return Area(
        f"{loss} over SL",
        [(p, base[p]) for p in common],
        [(p, upper[p]) for p in common],
        list(order).index(loss),
        notes,
    )
