"""Figures 1a and 1b of the paper, from the losses themselves, and what becomes of 1b in a trained model.

python reproductions/psl-neurips-2024/scripts/figures.py [--run RUN]
"""

import argparse
from pathlib import Path

import numpy as np
import polars as pl
import torch
from model_scores import ModelScores, read_scores
from theory_measures import gradient_weights, loss_name

from pslrec.files import make_directory, write_text
from pslrec.losses import SURROGATES
from pslrec.reporting import Axis, Chart, Series, activations, line_chart, weights, write_chart

PAPER = Path(__file__).resolve().parents[1]
PAPER_TEMPERATURE = 0.2
SHOWN = ("exp", "tanh", "atan", "relu")
POINTS = 201
BINS = 50


def write(
    out_directory: Path,
    run: Path | None = None,
    *,
    temperature: float = PAPER_TEMPERATURE,
    most_users: int = 300,
) -> list[Path]:
    """Write Figures 1a and 1b as CSV and picture, with `figures.md`; gives what was written.

    Args:
        out_directory: is made if it is not there.
        run: directory of a finished run; adds which differences occur in it, and where the gradient's weight goes.
        temperature: τ of Figure 1b.
        most_users: of the run, drawn at random.
    """
    make_directory(out_directory)
    tables = {"figure-1a": surrogate_table(), "figure-1b": weight_table(temperature)}
    charts = {
        "figure-1a": activations(),
        "figure-1b": weights(temperature, "as in Figure 1b of the paper"),
    }
    model = None if run is None else read_scores(run, most_users=most_users)
    if model is not None:
        tables["figure-1b-measured"] = measured_table(model)
        charts["figure-1b-measured"] = _measured_chart(tables["figure-1b-measured"], model)
    written = []
    for name, table in tables.items():
        written.append(out_directory / f"{name}.csv")
        write_text(written[-1], table.write_csv(float_precision=6))
        written += write_chart(charts[name], out_directory / name)
    written.append(out_directory / "figures.md")
    write_text(written[-1], _page(charts, tables, temperature))
    return written


def _differences() -> torch.Tensor:
    return torch.linspace(-1, 1, POINTS, dtype=torch.float64)


def surrogate_table() -> pl.DataFrame:
    """Figure 1a: every surrogate and the step on [-1, 1]."""
    differences = _differences()
    columns = {
        loss_name(name): SURROGATES[name]().value(differences).tolist()
        for name in SURROGATES.names()
    }
    return pl.DataFrame(
        {"d": differences.tolist(), "step": (differences >= 0).double().tolist(), **columns}
    )


def weight_table(temperature: float) -> pl.DataFrame:
    """Figure 1b: the weight of a negative before normalisation.

    Args:
        temperature: τ.
    """
    differences = _differences()
    columns = {
        name: SURROGATES[name]().weight(differences, temperature) for name in SURROGATES.names()
    }
    return pl.DataFrame(
        {
            "d": differences.tolist(),
            **{loss_name(name): values.tolist() for name, values in columns.items()},
        }
    )


def measured_table(model: ModelScores) -> pl.DataFrame:
    """In a trained model: how many pairs have each difference, and the share of each surrogate's gradient that goes there.

    Args:
        model: scores of a finished run; its temperature is used.
    """
    edges = np.linspace(-1, 1, BINS + 1)
    counts = np.zeros(BINS)
    sums = {name: np.zeros(BINS) for name in SHOWN}
    surrogates = {name: SURROGATES[name]() for name in SHOWN}
    for user in model.users:
        for differences in user.differences():
            places = np.clip(np.digitize(differences.numpy(), edges) - 1, 0, BINS - 1).ravel()
            drawn = user.weights.expand_as(differences).reshape(-1).numpy() / max(
                float(user.weights.sum()), 1e-300
            )
            counts += np.bincount(places, drawn, minlength=BINS)
            for name, surrogate in surrogates.items():
                found = gradient_weights(surrogate, differences, model.temperature, user.weights)
                sums[name] += np.bincount(places, found.numpy().ravel(), minlength=BINS)
    shares = {loss_name(name): values / values.sum() for name, values in sums.items()}
    return pl.DataFrame(
        {"from": edges[:-1], "to": edges[1:], "pairs": counts / counts.sum(), **shares}
    )


def _measured_chart(table: pl.DataFrame, model: ModelScores) -> Chart:
    middles = ((table["from"] + table["to"]) / 2).to_list()
    series = [
        Series(name, list(zip(middles, table[name].to_list(), strict=True)), style)
        for style, name in enumerate(map(loss_name, SHOWN))
    ]
    pairs = list(zip(middles, table["pairs"].to_list(), strict=True))
    series.append(Series("pairs", pairs, len(SHOWN) + 2, is_reference=True))
    above = {
        name: float(table.filter(pl.col("from") >= 0)[name].sum())
        for name in ("pairs", "SL", "PSL-relu")
    }
    says = (
        f"Run {model.name} at temperature {model.temperature:g}: the share of pairs (dashed) and of gradient weight by "
        f"difference. Above d = 0 lie {above['pairs']:.1%} of the pairs, with {above['SL']:.1%} of the weight of SL and "
        f"{above['PSL-relu']:.1%} of that of PSL-relu."
    )
    title = f"Where the gradient goes, {model.name}"
    return line_chart(
        title, says, series, x=Axis("difference d"), y=Axis("share in a bin", from_zero=True)
    )


def _page(charts: dict[str, Chart], tables: dict[str, pl.DataFrame], temperature: float) -> str:
    names = {
        "figure-1a": "Figure 1a: surrogates of the step",
        "figure-1b": f"Figure 1b: weight of a negative, temperature {temperature:g}",
        "figure-1b-measured": "Figure 1b in a trained model",
    }
    lines = ["# Figures 1a and 1b", ""]
    for name, chart in charts.items():
        lines += [
            f"## {names[name]}",
            "",
            chart.description,
            "",
            f"![{names[name]}]({name}.svg)",
            "",
        ]
        if name == "figure-1b":
            last = tables[name].row(-1, named=True)
            ends = ", ".join(f"{loss_name(each)} {last[loss_name(each)]:.1f}" for each in SHOWN)
            lines += [f"At d = 1: {ends}.", ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, help="finished run whose scores are measured")
    parser.add_argument("--out", type=Path, default=PAPER / "figures")
    arguments = parser.parse_args()
    for path in write(arguments.out, arguments.run):
        print(path)


if __name__ == "__main__":
    main()
