"""What training again on everything is worth, and by which schedule.

    python reproductions/refit.py electronic.zip --out reproductions/refit/results.csv
    python reproductions/refit.py electronic.zip --out ... --evaluated-on validation

Three finished procedures on the same settings: no refit; `training.refit`, which keeps the horizon
of the schedule and stops at the chosen epoch; and a refit whose schedule falls within the chosen
number of epochs ("squeezed").

By default the test part tells what they are worth. With `--evaluated-on validation` it is never
read: the validation part takes its place, another one is carved out of training to choose the
epoch, and what is found may decide which procedure is the default.

Under the protocol `strict` the lists hide training and validation items every time. Under `paper`
they hide validation items only once these are training items, so part of what that protocol shows
is that there is less to confuse.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from _records import append, publish, read, table

from pslrec.config import RunConfig, preset_settings
from pslrec.data import Dataset, concatenate, load
from pslrec.data.splits import carve_validation
from pslrec.experiment import load_dataset, run

PRESET = "fixed"
SEEDS = (2024, 2025, 2026)
EVALUATED_ON = ("test", "validation")
PROCEDURES = ("plain", "kept", "squeezed")


def without_test(dataset: Dataset) -> Dataset:
    """The validation part in the place of the test part, and none to choose by, which is carved later."""
    divided = carve_validation(dataset, "fraction")
    assert divided.validation is not None
    return replace(dataset, train=divided.train, validation=None, test=divided.validation)


def measure(
    dataset: Dataset,
    protocol: str,
    seed: int,
    *,
    evaluated_on: str = "test",
    epochs: int | None = None,
) -> dict[str, Any]:
    """Train and choose the epoch on validation; refit by either schedule; NDCG@20 of all three."""
    if evaluated_on == "validation":
        dataset = without_test(dataset)
    settings = {**preset_settings(PRESET), "training.seed": seed, "evaluation.protocol": protocol}
    if epochs is not None:
        settings["training.epochs"] = epochs
    config = RunConfig.from_settings({**settings, "training.refit": True})
    metrics = run(config, data=dataset).metrics
    found = metrics["refit"]
    values = {
        "plain": found["test_before"]["ndcg@20"],
        "kept": metrics["test"]["ndcg@20"],
        "squeezed": squeezed(config, dataset, found["epochs"]),
    }
    return {
        "data": dataset.name,
        "preset": PRESET,
        "loss": config.loss.name,
        "temperature": settings["loss.temperature"],
        "learning_rate": settings["training.learning_rate"],
        "protocol": protocol,
        "evaluated_on": evaluated_on,
        "seed": seed,
        "epochs": found["epochs"],
        "horizon": found["horizon"],
        **{name: round(values[name], 5) for name in PROCEDURES},
    }


def squeezed(config: RunConfig, dataset: Dataset, epochs: int) -> float:
    """NDCG@20 of a training on both parts whose schedule falls within so many epochs."""
    divided = load_dataset(config, dataset)
    assert divided.validation is not None
    both = concatenate([divided.train, divided.validation])
    whole = replace(divided, train=both, validation=None)
    shorter = {
        "data.validation": "none",
        "training.epochs": epochs,
        "training.refit": False,
        # Without validation the `paper` protocol would look at the test part; a single look at the
        # end chooses nothing.
        "training.validate_every": epochs,
    }
    return run(RunConfig.from_settings(shorter, base=config), data=whole).metrics["test"]["ndcg@20"]


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Means over seeds, by data, protocol and the part that they were evaluated on."""
    headings = {
        "data": "---",
        "protocol": "---",
        "evaluated on": "---",
        "seeds": "---:",
        "epoch": "---:",
        "no refit": "---:",
        "horizon kept": "---:",
        "squeezed": "---:",
    }
    lines = []
    for case in dict.fromkeys(_case(row) for row in rows):
        of_this = [row for row in rows if _case(row) == case]
        plain, kept, shorter = (mean(float(row[name]) for row in of_this) for name in PROCEDURES)
        epochs = ", ".join(str(row["epochs"]) for row in of_this)
        line = (
            *case,
            len(of_this),
            f"{epochs} of {of_this[0]['horizon']}",
            f"{plain:.4f}",
            f"{kept:.4f} ({kept / plain - 1:+.1%})",
            f"{shorter:.4f} ({shorter / plain - 1:+.1%})",
        )
        lines.append(line)
    return table(headings, lines)


def _case(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["data"], row["protocol"], row["evaluated_on"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="a data set that comes split")
    parser.add_argument("--out", type=Path, required=True, help="CSV file to write or add to")
    parser.add_argument("--protocol", choices=("strict", "paper"), default="strict")
    parser.add_argument(
        "--evaluated-on",
        choices=EVALUATED_ON,
        default="test",
        help="the part that tells what they are worth",
    )
    parser.add_argument("--seed", type=int, action="append", help="of training; three if not given")
    parser.add_argument("--threads", type=int, help="processor threads; all if not given")
    arguments = parser.parse_args()
    if arguments.threads is not None:
        torch.set_num_threads(arguments.threads)
    dataset = load(arguments.data)
    for seed in arguments.seed or SEEDS:
        row = measure(dataset, arguments.protocol, seed, evaluated_on=arguments.evaluated_on)
        append(arguments.out, row)
        print(row, flush=True)
    publish("refit", markdown(read(arguments.out)))


if __name__ == "__main__":
    main()
