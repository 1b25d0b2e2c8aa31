"""How much BPR with XSimGCL on Amazon-Electronic hangs on the weight of the contrast.

    python reproductions/contrast.py DATA 0.05 0.1 0.2 --out reproductions/contrast/results.csv

The cell of Table 1 as `pslrec reproduce psl-neurips-2024 iid` runs it, with other weights than the one that is printed for
this data set, and for ten epochs: the cell itself is best at the fifth of its 200 and only falls from there.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from _records import REPOSITORY, append, publish, read, table

from pslrec.config import RunConfig
from pslrec.data import Dataset, load
from pslrec.experiment import run
from pslrec.reproduction import Choice, Grid

PAPER = REPOSITORY / "reproductions" / "psl-neurips-2024"
CELL = Choice(datasets=["electronic"], backbones=["xsimgcl"], losses=["bpr"])
EPOCHS = 10


def measure(dataset: Dataset, settings: dict[str, Any], weight: float) -> dict[str, Any]:
    """Train with this weight; the epoch is chosen on validation data."""
    config = RunConfig.from_settings(settings | {"backbone.contrast_weight": weight})
    metrics = run(config, data=dataset).metrics
    assert not metrics["selected_on_test"]
    return {
        "data": dataset.name,
        "contrast_weight": weight,
        "seed": config.training.seed,
        "epochs": config.training.epochs,
        "epoch": metrics["best_epoch"],
        "validation_ndcg20": round(metrics["validation"]["ndcg@20"], 5),
        "recall20": round(metrics["test"]["recall@20"], 5),
        "ndcg20": round(metrics["test"]["ndcg@20"], 5),
    }


def markdown(rows: Sequence[dict[str, Any]], published: Mapping[str, float]) -> str:
    """The values and their differences to the published ones."""
    headings = {
        "weight of the contrast": "---:",
        "epoch": "---:",
        "Recall@20": "---:",
        "NDCG@20": "---:",
    }
    printed = (published["recall20"], published["ndcg20"])
    lines = []
    for row in rows:
        recall, ndcg = float(row["recall20"]), float(row["ndcg20"])
        values = (
            f"{recall:.4f}, {recall / printed[0] - 1:+.1%}",
            f"{ndcg:.4f}, {ndcg / printed[1] - 1:+.1%}",
        )
        lines.append((row["contrast_weight"], row["epoch"], *values))
    last = ("published", "", *(f"{value:.4f}" for value in printed))
    return table(headings, [*lines, last])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="Amazon-Electronic in the published split")
    parser.add_argument("weights", nargs="+", type=float, help="such as 0.05 0.1 0.2")
    parser.add_argument("--out", type=Path, required=True, help="CSV file to write or add to")
    arguments = parser.parse_args()
    (cell,) = Grid(PAPER).cells("iid", CELL)
    dataset = load(arguments.data)
    for weight in arguments.weights:
        row = measure(dataset, {**cell.settings, "training.epochs": EPOCHS}, weight)
        append(arguments.out, row)
        print(row, flush=True)
    publish("contrast", markdown(read(arguments.out), cell.published), PAPER / "README.md")


if __name__ == "__main__":
    main()
