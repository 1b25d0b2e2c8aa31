"""What training again on everything is worth: the same settings judged on the test part, without and with `training.refit`.

    python reproductions/refit.py amazon2014-electronic.zip --out reproductions/refit/results.csv
    python reproductions/refit.py amazon2014-electronic.zip --out reproductions/refit/results.csv --protocol paper

Under the protocol `strict` the lists hide training and validation items both times. Under `paper` they hide validation items only
once these are training items, so part of what that protocol shows is that there is less to confuse.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from _records import append, publish, read, table

from pslrec.config import RunConfig, preset_settings
from pslrec.data import Dataset, load
from pslrec.experiment import run

PRESET = "fast"
SEEDS = (2024, 2025, 2026)


def measure(dataset: Dataset, protocol: str, seed: int, *, epochs: int | None = None) -> dict[str, Any]:
    """Train, choose the epoch on validation, judge; train again on both parts for as many epochs, judge again."""
    settings = {
        **preset_settings(PRESET),
        "training.refit": True,
        "training.seed": seed,
        "evaluation.protocol": protocol,
    }
    config = RunConfig.from_settings(settings | ({} if epochs is None else {"training.epochs": epochs}))
    metrics = run(config, data=dataset).metrics
    before, after = metrics["refit"]["test_before"]["ndcg@20"], metrics["test"]["ndcg@20"]
    return {
        "data": dataset.name,
        "preset": PRESET,
        "loss": config.loss.name,
        "temperature": settings["loss.temperature"],
        "learning_rate": settings["training.learning_rate"],
        "protocol": protocol,
        "seed": seed,
        "epochs": metrics["refit"]["epochs"],
        "before": round(before, 5),
        "refit": round(after, 5),
        "gain": round(after / before - 1, 4),
    }


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Means over seeds, by protocol."""
    headings = {
        "data": "---",
        "protocol": "---",
        "seeds": "---:",
        "NDCG@20": "---:",
        "with refit": "---:",
        "gain": "---:",
    }
    lines = []
    for data, protocol in dict.fromkeys((row["data"], row["protocol"]) for row in rows):
        of_this = [row for row in rows if (row["data"], row["protocol"]) == (data, protocol)]
        before, after = (mean(float(row[name]) for row in of_this) for name in ("before", "refit"))
        lines.append((data, protocol, len(of_this), f"{before:.4f}", f"{after:.4f}", f"{after / before - 1:+.1%}"))
    return table(headings, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="a data set that comes split")
    parser.add_argument("--out", type=Path, required=True, help="CSV file to write or add to")
    parser.add_argument("--protocol", choices=("strict", "paper"), default="strict")
    parser.add_argument("--seed", type=int, action="append", help="of training; three if not given")
    arguments = parser.parse_args()
    dataset = load(arguments.data)
    for seed in arguments.seed or SEEDS:
        row = measure(dataset, arguments.protocol, seed)
        append(arguments.out, row)
        print(row, flush=True)
    publish("refit", markdown(read(arguments.out)))


if __name__ == "__main__":
    main()
