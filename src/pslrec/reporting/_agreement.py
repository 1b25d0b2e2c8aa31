"""How near our values come to the published ones: a point per cell, and what chance would do."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from pslrec.reporting._axes import Axis
from pslrec.reporting._charts import HEIGHT, WIDTH, Area, Series, line_chart
from pslrec.reporting._document import Chart, Table, number, percent, words
from pslrec.reporting._results import (
    Presentation,
    Result,
    Row,
    differing_columns,
    metric_title,
    metrics_of,
    results_of,
)
from pslrec.reporting._seed_noise import pair_noise
from pslrec.reporting._svg import Point

# Cells further off than so many tolerances are drawn at the edge: one of them would flatten the rest.
EDGE = 5.0


@dataclass(frozen=True)
class Agreement:
    """The cells with a published value, made as in the paper.

    Args:
        metric: by which they are compared, the last one of the paper.
        tolerance: a value within this share of the published one counts as close.
        cells: each with its runs.
        noise: how far apart two runs of ours may lie that differ in the seed alone, as a share;
            `None` if that is not known.
    """

    metric: str
    tolerance: float
    cells: Sequence[Result]
    noise: float | None

    def difference(self, cell: Result) -> float:
        """How far a cell is above its published value, as a share of it."""
        found = cell.difference(self.metric)
        assert found is not None
        return found

    @property
    def median(self) -> float:
        """Of the differences."""
        return median(map(self.difference, self.cells))

    def within(self, share: float) -> list[Result]:
        """The cells that lie no further from their published values."""
        return [cell for cell in self.cells if abs(self.difference(cell)) <= share]

    @property
    def far(self) -> list[Result]:
        """Those that are not close, the furthest first."""
        far = [cell for cell in self.cells if abs(self.difference(cell)) > self.tolerance]
        return sorted(far, key=lambda cell: -abs(self.difference(cell)))


def agreement_of(rows: Sequence[Row], shown: Presentation) -> Agreement:
    """Find the cells that can be compared.

    Args:
        rows: runs of all tables; a run may stand in several.
        shown: says what counts as close, and by which protocol the published values were made.
    """
    metric = ""
    for name in metrics_of(rows):
        metric = name
    cells = []
    samples = []
    for cell in results_of(rows):
        if shown.protocol in ("", cell["protocol"]):
            samples.append(cell.ours[metric].values())
            if cell.is_usual and cell.difference(metric) is not None:
                cells.append(cell)
    return Agreement(metric, shown.tolerance, cells, pair_noise(samples))


def agreement_chart(agreement: Agreement, size: Point = (WIDTH, HEIGHT)) -> Chart:
    """Draw every cell, over its published value.

    Args:
        agreement: at least one cell.
        size: width and height of the picture.
    """
    title = metric_title(agreement.metric)
    edge = EDGE * 100 * agreement.tolerance
    beyond = f"beyond ± {edge:g} %, at the edge"
    # Where a cell stands on the axis tells its data set; the colour tells what differs besides.
    told_apart = "setting"
    if not differing_columns(agreement.cells, [told_apart]):
        told_apart = "dataset"
    groups: dict[str, list[tuple[float, float]]] = {}
    outside: list[tuple[float, float]] = []
    for cell in agreement.cells:
        x = cell.published[agreement.metric]
        y = 100 * agreement.difference(cell)
        if abs(y) > edge:
            outside.append((x, math.copysign(edge, y)))
        else:
            groups.setdefault(cell[told_apart], []).append((x, y))
    series = []
    for name, points in groups.items():
        series.append(Series(name, points, is_connected=False))
    if outside:
        series.append(Series(beyond, outside, style=4, is_connected=False))
    published = [cell.published[agreement.metric] for cell in agreement.cells]
    # A little beyond the outermost points, which would lie on the ends otherwise.
    ends = (min(published) / 1.1, max(published) * 1.1)
    close = 100 * agreement.tolerance
    gap = (float("nan"), float("nan"))
    bounds = [*_level(ends, close), gap, *_level(ends, -close)]
    series.append(Series(f"± {close:g} %", bounds, style=5, is_reference=True, has_marks=False))
    area = None
    says = f"Every mark is a cell: how far our mean {title} is above the published one."
    if agreement.noise is not None:
        noise = 100 * agreement.noise
        label = f"noise of two seeds, ± {noise:.1f} %"
        area = Area(label, _level(ends, -noise), _level(ends, noise), style=5)
        says += " The band is how far two runs may lie apart that differ in the seed alone (95 %)."
    chart = line_chart(
        "Ours against published",
        says,
        series,
        x=Axis(f"published {title}", is_log=True),
        y=Axis("difference, %", limits=(-edge, edge)),
        area=area,
        size=size,
    )
    return replace(chart, data=_data(agreement))


def _level(ends: tuple[float, float], y: float) -> list[tuple[float, float]]:
    return [(end, y) for end in ends]


def _data(agreement: Agreement) -> Table:
    columns = ["dataset", "backbone", "loss", "setting", "noise", "negatives"]
    rows = []
    for cell in agreement.cells:
        row = list(map(words, cell.named(columns)))
        row.append(number(cell.published[agreement.metric]))
        row.append(number(cell.mean(agreement.metric)))
        row.append(percent(cell.difference(agreement.metric)))
        rows.append(row)
    title = metric_title(agreement.metric)
    return Table(f"{title} of every cell", [*columns, "published", "ours", "difference"], rows)
