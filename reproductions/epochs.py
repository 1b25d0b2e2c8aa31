"""How many epochs the presets need on data of different sizes: the best validation value after 10, and after `auto` of them.

    python reproductions/epochs.py fixed movielens-100k.zip amazon2014-health.zip --out reproductions/epochs/results.csv

Nothing is judged on test parts here: what the presets do was chosen by these values.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from _records import REPOSITORY, append, publish, read, table

from pslrec.config import PRESETS, RunConfig, preset_settings
from pslrec.data import Dataset, load
from pslrec.experiment import build_batches, load_training_data, run

PAGE = REPOSITORY / "docs" / "how-to" / "training.md"


def measure(dataset: Dataset, preset: str, **settings: Any) -> dict[str, Any]:
    """Best NDCG@20 on validation, for ten epochs and for as many as the preset takes."""
    base = RunConfig.from_settings(preset_settings(preset) | settings).resolved()
    n_steps = len(build_batches(base, load_training_data(base, dataset)))
    row = {"data": dataset.name, "preset": preset, "steps": n_steps}
    row["epochs"] = base.training.trainer_options(n_steps).epochs
    for name, epochs in (("after_10", 10), ("after_all", row["epochs"])):
        found = run(RunConfig.from_settings({"training.epochs": epochs}, base=base), data=dataset)
        row[name] = round(found.metrics["validation"]["ndcg@20"], 5)
    return row


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Both values of each data set and preset."""
    headings = {
        "data": "---",
        "preset": "---",
        "steps of an epoch": "---:",
        "epochs": "---:",
        "validation NDCG@20": "---:",
        "after 10": "---:",
    }
    names = ("data", "preset", "steps", "epochs")
    return table(
        headings,
        [
            (
                *(row[name] for name in names),
                *(f"{float(row[name]):.4f}" for name in ("after_all", "after_10")),
            )
            for row in rows
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("preset", choices=tuple(PRESETS))
    parser.add_argument("data", nargs="+", help="data sets that come split")
    parser.add_argument("--out", type=Path, required=True, help="CSV file to write or add to")
    arguments = parser.parse_args()
    for source in arguments.data:
        row = measure(load(source), arguments.preset)
        append(arguments.out, row)
        print(row, flush=True)
    publish("epochs", markdown(read(arguments.out)), PAGE)


if __name__ == "__main__":
    main()
