"""What choosing the epoch on the test part is worth: the program behind the published IID numbers was tuned by test values.

    python reproductions/selection.py DATA sl psl-relu --out reproductions/selection/results.csv

The cells of Table 1 on MF with the whole catalogue, as `pslrec reproduce psl-neurips-2024 iid` runs them, but judged every five
epochs on the test part, whose best value is then reported. Nothing else may use such a number: it says how much of a difference
selection explains.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from _records import REPOSITORY, append, publish, read, table

from pslrec.config import RunConfig
from pslrec.data import Dataset, load
from pslrec.experiment import load_dataset, run
from pslrec.reproduction import Choice, Grid

PAPER = REPOSITORY / "reproductions" / "psl-neurips-2024"
RESULTS = PAPER / "results" / "iid.csv"


def measure(dataset: Dataset, settings: dict[str, Any]) -> dict[str, Any]:
    """Train without the validation part, as ever, and take the epoch that is best on the test part."""
    config = RunConfig.from_settings(settings).resolved()
    carved = load_dataset(config, dataset)
    by_test = RunConfig.from_settings({"data.validation": "none"}, base=config)
    metrics = run(by_test, data=replace(carved, validation=None)).metrics
    assert metrics["selected_on_test"]
    return {
        "data": dataset.name,
        "loss": config.loss.name,
        "seed": config.training.seed,
        "epoch": metrics["best_epoch"],
        "recall20": round(metrics["test"]["recall@20"], 5),
        "ndcg20": round(metrics["test"]["ndcg@20"], 5),
    }


def markdown(rows: Sequence[dict[str, Any]], chosen: Sequence[dict[str, str]], grid: Grid) -> str:
    """The values beside those of the same cells with the epoch chosen on validation, and the published ones."""
    headings = {
        "loss": "---",
        "published NDCG@20": "---:",
        "epoch by validation": "---:",
        "NDCG@20": "---:",
        "epoch by test": "---:",
        "NDCG@20 ": "---:",
        "gain": "---:",
    }
    names = {own: name for name, own in grid.paper.named("losses").items()}
    lines = []
    for row in rows:
        (own,) = (
            each
            for each in chosen
            if (
                each["dataset"],
                each["backbone"],
                each["mode"],
                each["protocol"],
                each["seed"],
                each["loss"],
            )
            == ("Amazon-Electronic", "MF", "catalog", "paper", str(row["seed"]), names[row["loss"]])
        )
        before, after = float(own["ours_ndcg20"]), float(row["ndcg20"])
        published = f"{float(own['published_ndcg20']):.4f}"
        values = (
            own["best_epoch"],
            f"{before:.4f}",
            row["epoch"],
            f"{after:.4f}",
            f"{after / before - 1:+.1%}",
        )
        lines.append((own["loss"], published, *values))
    return table(headings, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="Amazon-Electronic in the published split")
    parser.add_argument("losses", nargs="+", help="such as sl and psl-relu")
    parser.add_argument("--out", type=Path, required=True, help="CSV file to write or add to")
    arguments = parser.parse_args()
    grid, dataset = Grid(PAPER), load(arguments.data)
    choice = Choice(
        datasets=["electronic"], backbones=["mf"], losses=arguments.losses, modes=["catalog"]
    )
    for cell in grid.cells("iid", choice):
        row = measure(dataset, dict(cell.settings))
        append(arguments.out, row)
        print(row, flush=True)
    publish("selection", markdown(read(arguments.out), read(RESULTS), grid), PAPER / "README.md")


if __name__ == "__main__":
    main()
