"""How far the compiled row operation is from all pairs in double precision, by the number of nodes R.

The scores are made up, in shapes that are easy (Gaussian) and hard (two clusters, all negatives at the lower end). Every loss
and gradient is compared with brute force over all (positive, negative) pairs. With R chosen by the kernel itself the error
stays below its tolerance.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from benchmarks._plots import series_by
from benchmarks._publish import table
from pslrec.forms import FusedForm
from pslrec.kernels import (
    IS_COMPILED,
    TOLERANCE,
    CatalogLists,
    row_gradients,
)
from pslrec.losses import SURROGATES
from pslrec.reporting import Axis, line_chart, standalone_svg
from pslrec.rows import Rows

DESCRIPTION = "error of loss and gradient by the number of nodes R, against all pairs in float64"
# At 0.15 the power is no whole number, so that relu is interpolated too; at the others it has its closed form.
TEMPERATURES = (0.15, 0.1, 0.025)
NODES = (2, 4, 6, 8, 12, 16, 24, 32)
NAMES = ("relu", "tanh", "atan", "softplus")
N_ITEMS, N_POSITIVES = 4_000, 300
TARGETS = {"loss": 1e-6, "gradient": 1e-4}
# Below it there is nothing on a logarithmic axis to see.
FLOOR = 1e-10
ENDS = {"loss": (FLOOR, 1.0), "gradient": (1e-8, 1.0)}
PANEL = (320.0, 220.0)


def _gaussian(random: np.random.Generator) -> np.ndarray:
    scores = random.normal(0, 0.12, N_ITEMS)
    scores[:N_POSITIVES] = random.uniform(-0.4, 0.4, N_POSITIVES)
    return scores


def _two_clusters(random: np.random.Generator) -> np.ndarray:
    scores = np.where(random.random(N_ITEMS) < 0.02, 0.4, -0.3) + random.normal(0, 0.01, N_ITEMS)
    scores[:N_POSITIVES] = random.uniform(-0.4, 0.45, N_POSITIVES)
    return scores


def _near_the_lower_end(random: np.random.Generator) -> np.ndarray:
    scores = -0.5 + random.exponential(0.004, N_ITEMS)
    scores[:N_POSITIVES] = random.uniform(-0.45, 0.5, N_POSITIVES)
    return scores


SHAPES: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "Gaussian": _gaussian,
    "two clusters": _two_clusters,
    "negatives near -1/2": _near_the_lower_end,
}


def run(*, report: Callable[[str], None] | None = None) -> dict[str, Any]:
    """Compare every surrogate, temperature and shape at every R.

    Args:
        report: is told what is being done.
    """
    if not IS_COMPILED:
        raise RuntimeError("the compiled kernels are not built; install with a C++ compiler")
    tell = report or (lambda _: None)
    points, rows = [], []
    for name in NAMES:
        for temperature in TEMPERATURES:
            tell(f"{name}, temperature {temperature}")
            for shape in SHAPES:
                points += _points(name, temperature, shape)
            mine = [
                point
                for point in points
                if (point["surrogate"], point["temperature"]) == (name, temperature)
            ]
            rows.append(_row(name, temperature, mine))
    chosen = [point for point in points if point["R"] == "chosen"]
    worst = {kind: max(point[kind] for point in chosen) for kind in TARGETS}
    return {
        "rows": rows,
        "points": points,
        "worst": worst,
        "targets": TARGETS,
        "targets_met": {kind: worst[kind] <= target for kind, target in TARGETS.items()},
    }


def _points(name: str, temperature: float, shape: str) -> list[dict[str, Any]]:
    scores = SHAPES[shape](np.random.default_rng(0)).clip(-0.5, 0.5).astype(np.float32)
    exponent = _exponent(temperature)
    truth = _all_pairs(torch.from_numpy(scores).double(), name, exponent)
    found = []
    for nodes in (*NODES, "chosen"):
        options = {} if nodes == "chosen" else {"first_nodes": nodes, "tolerance": 0.0}
        form = FusedForm("log-sum", name, exponent)
        loss, gradient = _errors(scores, form, truth, **options)
        found.append(
            {"surrogate": name, "temperature": temperature, "scores": shape, "R": nodes}
            | {"loss": loss, "gradient": gradient}
        )
    return found


def _exponent(temperature: float) -> float:
    whole = round(1 / temperature)
    return float(whole) if math.isclose(whole, 1 / temperature) else 1 / temperature


def _all_pairs(scores: torch.Tensor, name: str, exponent: float) -> tuple[float, torch.Tensor]:
    scores = scores.requires_grad_()
    differences = scores[N_POSITIVES:] - scores[:N_POSITIVES].unsqueeze(1)
    loss = torch.logsumexp(exponent * SURROGATES[name]().log_value(differences), dim=1).sum()
    loss.backward()
    return float(loss.detach()), scores.grad


def _errors(
    scores: np.ndarray, form: FusedForm, truth: tuple[float, torch.Tensor], **options: Any
) -> tuple[float, float]:
    """Of the loss per positive, relative where it is above 1; of the gradient, relative to its largest entry."""
    own = Rows.from_lists([range(N_POSITIVES)])
    lists = CatalogLists(np.zeros(1, dtype=np.int64), own, own, N_ITEMS)
    slopes = torch.from_numpy(scores.copy()).unsqueeze(0)
    loss = float(row_gradients(slopes, lists, form, **options))
    expected, gradient = truth
    loss_error = abs(loss - expected) / max(N_POSITIVES, abs(expected))
    return loss_error, float((slopes[0].double() - gradient).abs().max() / gradient.abs().max())


def _row(name: str, temperature: float, points: list[dict[str, Any]]) -> dict[str, Any]:
    def worst(nodes: int | str, kind: str) -> str:
        return f"{max(point[kind] for point in points if point['R'] == nodes):.0e}"

    by_nodes = {f"{kind}, R = {nodes}": worst(nodes, kind) for nodes in (8, 16) for kind in TARGETS}
    return {"surrogate": name, "temperature": temperature, **by_nodes} | {
        f"{kind}, R chosen": worst("chosen", kind) for kind in TARGETS
    }


def plots(record: dict[str, Any]) -> dict[str, str]:
    """Error against R: a row for each shape of scores, a column each for loss and gradient."""
    temperature = TEMPERATURES[0]
    charts = []
    for shape in SHAPES:
        for kind, ends in ENDS.items():
            points = []
            for point in record["result"]["points"]:
                is_shown = point["R"] != "chosen" and point["temperature"] == temperature
                if is_shown and point["scores"] == shape:
                    points.append({**point, kind: max(point[kind], ends[0])})
            charts.append(
                line_chart(
                    shape,
                    "",
                    series_by("surrogate", points, x="R", y=kind),
                    x=Axis("nodes R", from_zero=True),
                    y=Axis(f"error of the {kind}", limits=ends, is_log=True),
                    size=PANEL,
                )
            )
    drawing = standalone_svg(
        *charts,
        title=f"Error by the number of nodes, temperature {temperature:g}",
        description="Error of loss and gradient by the number of nodes R, for three shapes of "
        "scores, one line for each surrogate.",
        columns=len(ENDS),
    )
    return {"interpolation-error": drawing}


def markdown(record: dict[str, Any]) -> str:
    """A sentence and a table for the documentation."""
    worst = record["result"]["worst"]
    return (
        f"Worst of three shapes of scores, {N_ITEMS:,} items and {N_POSITIVES} positives, against all pairs in double precision. "
        "The loss's error is per positive, the gradient's relative to its largest entry. With R chosen per user (tolerance "
        f"{TOLERANCE:.0e}) the worst is {worst['loss']:.0e} for the loss and {worst['gradient']:.0e} for the gradient.\n\n"
        + table(record["result"]["rows"])
    )
