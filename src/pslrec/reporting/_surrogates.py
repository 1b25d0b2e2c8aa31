"""The surrogates of the 0/1 step and the weights they give to negatives: Figures 1a and 1b of the paper."""

from collections.abc import Sequence

import torch

from pslrec.losses import SURROGATES
from pslrec.reporting._axes import Axis
from pslrec.reporting._charts import Series, line_chart
from pslrec.reporting._document import Chart, Charts, Section, Text
from pslrec.reporting._run_record import RunRecord

PAPER_TEMPERATURE = 0.2
SHOWN = ("exp", "tanh", "atan", "relu")
POINTS = 41


def surrogate_section(records: Sequence[RunRecord] = ()) -> Section:
    """Both figures at the paper's temperature, and the weights again at the temperatures of the runs.

    Args:
        records: runs whose temperatures are wanted as well.
    """
    temperatures = {PAPER_TEMPERATURE: "Figure 1b of the paper"}
    for record in records:
        found = _temperature(record)
        if found is not None:
            temperatures.setdefault(found, f"the temperature of {record.label}")
    charts = [
        activations(),
        *(weights(value, source) for value, source in list(temperatures.items())[:4]),
    ]
    says = (
        "d is the score of a negative minus that of its positive. A surrogate stands for the step that counts how many "
        "negatives lie above the positive; the closer it is, the tighter the loss bounds DCG. Its weight says how much a "
        "negative moves the model: false negatives have large d, where exp (the softmax loss) gives them far more weight "
        "than the others do."
    )
    return Section("Surrogates and weights", [Text(says), Charts(charts)])


def _temperature(record: RunRecord) -> float | None:
    value = record.settings.get("loss.temperature")
    # The figure is about losses of the outside form; in the others τ stands elsewhere.
    name = str(record.settings.get("loss.name"))
    is_of_family = name == "sl" or name.startswith("psl")
    is_outside = record.settings.get("loss.form", "outside") == "outside"
    return float(value) if isinstance(value, int | float) and is_of_family and is_outside else None


def activations() -> Chart:
    """Figure 1a: σ(d) of each surrogate, and the step."""
    differences = torch.linspace(-1, 1, POINTS, dtype=torch.float64)
    series = [
        Series(_name(name), _points(differences, SURROGATES[name]().value(differences)), style)
        for style, name in enumerate(SHOWN)
    ]
    rise = [(-1.0, 0.0), (0.0, 0.0), (0.0, 1.0), (1.0, 1.0)]
    series.append(Series("step", rise, len(SHOWN) + 2, is_reference=True, has_marks=False))
    says = "Figure 1a of the paper. On [-1, 1] tanh, atan and relu lie between the step and exp."
    return line_chart("Surrogates", says, series, x=Axis("difference d"), y=Axis("activation"))


def weights(temperature: float, source: str) -> Chart:
    """Figure 1b: the weight of a negative by its difference.

    Args:
        temperature: τ.
        source: where that temperature comes from.
    """
    differences = torch.linspace(-1, 1, POINTS, dtype=torch.float64)
    found = {name: SURROGATES[name]().weight(differences, temperature) for name in SHOWN}
    series = [
        Series(_name(name), _points(differences, values), style)
        for style, (name, values) in enumerate(found.items())
    ]
    # exp leaves the picture, or nothing could be seen of the others.
    ceiling = 1.25 * max(float(values.max()) for name, values in found.items() if name != "exp")
    ratio = float(found["exp"][-1] / found["relu"][-1])
    says = (
        f"Weight of a negative before normalisation at τ = {temperature:g}, {source}. At d = 1 exp gives {ratio:,.3g} times "
        "the weight of relu; its line leaves the picture."
    )
    return line_chart(
        f"Weights at τ = {temperature:g}",
        says,
        series,
        x=Axis("difference d"),
        y=Axis("weight", from_zero=True, ceiling=ceiling),
    )


def _name(surrogate: str) -> str:
    return "exp (SL)" if surrogate == "exp" else surrogate


def _points(differences: torch.Tensor, values: torch.Tensor) -> list[tuple[float, float]]:
    return list(zip(differences.tolist(), values.tolist(), strict=True))
