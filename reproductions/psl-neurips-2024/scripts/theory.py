"""The paper's bounds and its DRO theorem, measured on trained models: tables, curves, and a page that says what came out.

python reproductions/psl-neurips-2024/scripts/theory.py [RUN...]
"""

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from model_scores import ModelScores, read_scores, run_names, synthetic_runs
from theory_measures import (
    SHOWN,
    Share,
    bounds,
    loss_name,
    robustness,
    weight_shares,
)
from theory_report import theory_charts, theory_page

from pslrec.files import make_directory, write_text
from pslrec.losses import TEMPERATURES
from pslrec.reporting import write_chart
from pslrec.seeding import generator

PAPER = Path(__file__).resolve().parents[1]
N_ROBUST_PAIRS = 60


def write(out_directory: Path, runs: Sequence[Path] = (), *, most_users: int = 300) -> list[Path]:
    """Measure the theory on finished runs, and write CSV, figures and `theory.md`; gives what was written.

    Args:
        out_directory: is made if it is not there.
        runs: directories of finished runs; without any, SL and PSL-relu are trained on made-up data with planted false
            negatives, below `out_directory`.
        most_users: of each run, drawn at random.
    """
    make_directory(out_directory)
    paths = list(runs) or synthetic_runs(out_directory / "runs")
    tables: dict[str, list[dict[str, Any]]] = {
        "bounds": [],
        "gaps": [],
        "robustness": [],
        "weights": [],
    }
    for path, name in zip(paths, run_names(paths), strict=True):
        model = read_scores(path, name, most_users=most_users)
        tables["bounds"] += bound_rows(model)
        tables["gaps"] += gap_rows(model)
        tables["robustness"] += robustness_rows(model)
        tables["weights"] += weight_rows(model)
    frames = {name: pl.DataFrame(rows, infer_schema_length=None) for name, rows in tables.items()}
    written = []
    for name, frame in frames.items():
        written.append(out_directory / f"theory-{name}.csv")
        write_text(written[-1], frame.write_csv(float_precision=6))
    for name, chart in theory_charts(frames).items():
        written += write_chart(chart, out_directory / f"theory-{name}")
    written.append(out_directory / "theory.md")
    write_text(written[-1], theory_page(frames))
    return written


def bound_rows(model: ModelScores) -> list[dict[str, Any]]:
    """The chain of bounds of each user, at the temperature of the run."""
    tau = model.temperature
    return [
        {
            "run": model.name,
            "user": user.user,
            "n_positives": len(user.positives),
            "temperature": tau,
            **bounds(user, tau),
        }
        for user in model.users
    ]


def gap_rows(
    model: ModelScores, temperatures: Sequence[float] = TEMPERATURES
) -> list[dict[str, Any]]:
    """How far each loss lies above -log DCG, by temperature: quantiles over users."""
    rows: list[dict[str, Any]] = []
    for temperature in sorted({*temperatures, model.temperature}):
        found = [bounds(user, temperature) for user in model.users]
        for surrogate in SHOWN:
            name = loss_name(surrogate)
            gaps = np.array([values[name] - values["dcg"] for values in found])
            low, quarter, median, three, high = np.quantile(
                gaps, [0.05, 0.25, 0.5, 0.75, 0.95]
            ).tolist()
            rows.append(
                {
                    "run": model.name,
                    "temperature": temperature,
                    "loss": name,
                    "users": len(gaps),
                    "gap_mean": float(gaps.mean()),
                    "gap_5": low,
                    "gap_25": quarter,
                    "gap_median": median,
                    "gap_75": three,
                    "gap_95": high,
                    "below_dcg": int((gaps < -1e-9).sum()),
                    "tighter_than_sl": statistics.fmean(
                        values[name] <= values["SL"] + 1e-9 for values in found
                    ),
                }
            )
    return rows


def robustness_rows(model: ModelScores, n_pairs: int = N_ROBUST_PAIRS) -> list[dict[str, Any]]:
    """Theorem 4.2 on some positives, at random; one row for each surrogate that the theorem is used for."""
    draws = generator(0, "pairs to look at")
    pairs = []
    for place in draws.integers(0, len(model.users), size=n_pairs).tolist():
        user = model.users[place]
        positive = user.positives[int(draws.integers(0, len(user.positives)))]
        pairs.append(user.scores - user.scores[positive])
    rows: list[dict[str, Any]] = []
    for surrogate in SHOWN:
        found = [robustness(differences, surrogate, model.temperature) for differences in pairs]
        rows.append(
            {
                "run": model.name,
                "temperature": model.temperature,
                "loss": loss_name(surrogate),
                "pairs": len(found),
                "radius_median": statistics.median(one.radius for one in found),
                "radius_lowest": min(one.radius for one in found),
                "radius_highest": max(one.radius for one in found),
                "n_items": len(pairs[0]),
                "n_effective_median": statistics.median(one.n_effective for one in found),
                "largest_error_of_worst_case": max(abs(one.dual - one.worst_case) for one in found),
                "largest_error_of_temperature": max(
                    abs(one.temperature / model.temperature - 1) for one in found
                ),
            }
        )
    return rows


def weight_rows(
    model: ModelScores, temperatures: Sequence[float] = TEMPERATURES
) -> list[dict[str, Any]]:
    """The share of the gradient that goes to the hardest negatives and to false ones, by surrogate and temperature."""
    rows: list[dict[str, Any]] = []
    for temperature in sorted({*temperatures, model.temperature}):
        for surrogate in SHOWN:
            total: dict[str, Share] = {}
            for user in model.users:
                for group, share in weight_shares(user, surrogate, temperature).items():
                    total[group] = total[group].plus(share) if group in total else share
            rows += [
                {
                    "run": model.name,
                    "temperature": temperature,
                    "loss": loss_name(surrogate),
                    "group": group,
                    "share_of_weight": share.share,
                    "share_of_draws": share.share_by_number,
                    "times_its_share": share.share / share.share_by_number
                    if share.share_by_number
                    else None,
                }
                for group, share in total.items()
            ]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="*", type=Path, help="finished runs; default: small ones")
    parser.add_argument("--out", type=Path, default=PAPER / "theory")
    arguments = parser.parse_args()
    for path in write(arguments.out, arguments.runs):
        print(path)


if __name__ == "__main__":
    main()
