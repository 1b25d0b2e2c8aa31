"""The surrogates of the 0/1 step and the weights they give to negatives.

These are Figures 1a and 1b of the paper.
"""

from collections.abc import Sequence

import torch

from pslrec.losses import SURROGATES
from pslrec.reporting._axes import Axis
from pslrec.reporting._charts import Series, line_chart
from pslrec.reporting._document import Chart, Charts, Section, Text
from pslrec.reporting._run_record import RunRecord

PAPER_TEMPERATURE = 0.2
SHOWN = ("exp", "tanh", "atan", "relu")
# An odd number, so that d = 0 is one of the points.
POINTS = 41
# A comparison of many temperatures would be a page of nearly the same pictures.
MOST_TEMPERATURES = 4
SAYS = (
    "d is the score of a negative minus that of its positive. A surrogate replaces the step that "
    "counts how many negatives are ranked above the positive; the closer it is to the step, the "
    "tighter the loss bounds DCG. Its weight says how much a negative moves the model. False "
    "negatives have a large d, where exp (the softmax loss) gives them far more weight than the "
    "others do."
)


def surrogate_section(records: Sequence[RunRecord] = ()) -> Section:
    """Draw both figures at the paper's temperature, and the weights at the runs' own as well.

    Args:
        records: the runs whose temperatures to show.
    """
    temperatures = {PAPER_TEMPERATURE: "Figure 1b of the paper"}
    for record in records:
        temperature = _temperature(record)
        if temperature is not None:
            temperatures.setdefault(temperature, f"the temperature of {record.label}")
    charts = [activations()]
    for temperature, source in list(temperatures.items())[:MOST_TEMPERATURES]:
        charts.append(weights(temperature, source))
    return Section("Surrogates and weights", [Text(SAYS), Charts(charts)])


def _temperature(record: RunRecord) -> float | None:
    # The figure is about losses with the temperature outside of σ; in all others τ has another
    # meaning.
    loss = str(record.settings.get("loss.name"))
    if loss != "sl" and not loss.startswith("psl"):
        return None
    if record.settings.get("loss.form", "outside") != "outside":
        return None
    value = record.settings.get("loss.temperature")
    if not isinstance(value, int | float):
        return None
    return float(value)


def activations() -> Chart:
    """Draw Figure 1a: σ(d) of each surrogate, and the step."""
    differences = _differences()
    series = []
    for style, name in enumerate(SHOWN):
        values = SURROGATES[name]().value(differences)
        series.append(Series(_label(name), _points(differences, values), style))
    rise = [(-1.0, 0.0), (0.0, 0.0), (0.0, 1.0), (1.0, 1.0)]
    series.append(Series("step", rise, len(SHOWN) + 2, is_reference=True, has_marks=False))
    says = "Figure 1a of the paper. On [-1, 1] tanh, atan and relu lie between the step and exp."
    return line_chart("Surrogates", says, series, x=Axis("difference d"), y=Axis("activation"))


def weights(temperature: float, source: str) -> Chart:
    """Draw Figure 1b: the weight of a negative by its difference.

    Args:
        temperature: τ.
        source: where that temperature comes from, for the description.
    """
    differences = _differences()
    found = {}
    series = []
    largest = 0.0
    for style, name in enumerate(SHOWN):
        found[name] = SURROGATES[name]().weight(differences, temperature)
        series.append(Series(_label(name), _points(differences, found[name]), style))
        if name != "exp":
            largest = max(largest, float(found[name].max()))
    ratio = float(found["exp"][-1] / found["relu"][-1])
    says = (
        f"Weight of a negative before normalisation at τ = {temperature:g}, {source}. "
        f"At d = 1 exp gives {ratio:,.3g} times the weight of relu; its line leaves the picture."
    )
    # If all of exp were in view, the others would be flat lines at the bottom.
    weight = Axis("weight", from_zero=True, ceiling=1.25 * largest)
    title = f"Weights at τ = {temperature:g}"
    return line_chart(title, says, series, x=Axis("difference d"), y=weight)


def _differences() -> torch.Tensor:
    # Half cosines lie in [-1/2, 1/2], so their differences in [-1, 1].
    return torch.linspace(-1, 1, POINTS, dtype=torch.float64)


def _label(surrogate: str) -> str:
    if surrogate == "exp":
        return "exp (SL)"
    return surrogate


def _points(differences: torch.Tensor, values: torch.Tensor) -> list[tuple[float, float]]:
    return list(zip(differences.tolist(), values.tolist(), strict=True))
