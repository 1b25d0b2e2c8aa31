"""Whether the constants of `auto` hold on data that did not choose them.

    python reproductions/accuracy/leave_one_out.py --data-dir DIR [--only Amazon-Health]

Two constants of the rules are put to the test: the learning rate of 64 dimensions, and the part of their
vectors that users share. What the rules make of the rate is kept: plenty of data take more than the constant,
by the same factor for every value of it. For every data set and every pair of them, `auto` races the
temperature and trains; the NDCG@20 on validation is kept in `leave_one_out.csv`. Then each data set is left
out in turn: the others choose the pair with the highest mean of relative values, and the table says how far
it stays behind the best pair of the data set that was left out. The test part is never opened. Rows that are
there are not measured again.
"""

import argparse
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

from _records import append, publish, read, table  # noqa: E402
from measure import DATASETS, UNSEEN, data_settings  # noqa: E402

from pslrec.config import RunConfig, preset_settings  # noqa: E402
from pslrec.experiment import (  # noqa: E402
    load_training_data,
    prepare_run,
    ruled_settings,
    train_on_validation,
)

RESULTS = HERE / "leave_one_out.csv"
PAGE = HERE / "README.md"
RATES = (0.002, 0.004, 0.008)
POPULARITIES = (0.0, 0.3)
CANDIDATES = list(product(RATES, POPULARITIES))
# What the rules of `auto` say.
RULE = (0.004, 0.3)

# A learning rate and a popularity.
Candidate = tuple[float, float]


def validation_of(data: Mapping[str, Any], candidate: Candidate) -> float:
    """NDCG@20 on validation of a training whose temperature was raced."""
    constant, popularity = candidate
    settings = {
        **preset_settings("auto", backbone="history"),
        **data,
        "backbone.popularity": popularity,
        "evaluation.protocol": "paper",
        "evaluation.k": [20],
        "evaluation.exchangeability": "off",
        # The vectors are compared.
        "walks.weight": 0.0,
    }
    ruled = _ruled_rate(RunConfig.from_settings(settings))
    settings["training.learning_rate"] = ruled * constant / RULE[0]
    config, _, _ = prepare_run(RunConfig.from_settings(settings))
    with tempfile.TemporaryDirectory() as directory:
        found = train_on_validation(config, out=Path(directory) / "run")
    return float(found["validation"]["ndcg@20"])


def _ruled_rate(config: RunConfig) -> float:
    """The learning rate that the rules give to a data set."""
    settings = ruled_settings(config, load_training_data(config.resolved()))
    return float(settings["training.learning_rate"])


def measured() -> dict[str, dict[Candidate, float]]:
    """Values by data set and candidate."""
    found: dict[str, dict[Candidate, float]] = defaultdict(dict)
    if RESULTS.exists():
        for row in read(RESULTS):
            candidate = (float(row["learning_rate"]), float(row["popularity"]))
            found[row["data"]][candidate] = float(row["validation"])
    return found


def complete() -> dict[str, dict[Candidate, float]]:
    """The data sets for which all candidates were measured."""
    known = measured()
    return {name: values for name, values in known.items() if len(values) == len(CANDIDATES)}


def chosen_without(name: str, values: dict[str, dict[Candidate, float]]) -> Candidate:
    """What all data sets but one would choose: the highest mean of relative values."""

    def merit(candidate: Candidate) -> float:
        relative = []
        for other, found in values.items():
            if other != name:
                relative.append(found[candidate] / max(found.values()))
        return mean(relative)

    return max(CANDIDATES, key=merit)


def page() -> str:
    """One line per data set that was left out."""
    headings = {
        "left out": "---",
        "the others choose": "---",
        "validation NDCG@20": "---:",
        "best of all pairs": "---:",
        "behind it": "---:",
        "the rule's pair": "---:",
    }
    values = complete()
    lines = []
    for name, found in values.items():
        candidate = chosen_without(name, values)
        best = max(CANDIDATES, key=lambda each: found[each])
        behind = 100 * (1 - found[candidate] / found[best])
        lines.append(
            [
                name,
                _told(candidate),
                f"{found[candidate]:.4f}",
                f"{found[best]:.4f} ({_told(best)})",
                f"{behind:.1f} %",
                f"{found[RULE]:.4f}",
            ]
        )
    return table(headings, lines)


def _told(candidate: Candidate) -> str:
    rate, popularity = candidate
    return f"rate {rate:g}, shared part {popularity:g}"


def main() -> None:
    """Measure what is missing, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--only", help="names of data sets, by commas")
    arguments = parser.parse_args()
    names = [name for name in DATASETS if name not in UNSEEN]
    if arguments.only:
        names = arguments.only.split(",")
    for name in names:
        data = data_settings(name, arguments.data_dir)
        if not data:
            print(f"{name} is not in {arguments.data_dir}, left out", flush=True)
            continue
        for candidate in CANDIDATES:
            if candidate in measured().get(name, {}):
                continue
            value = validation_of(data, candidate)
            rate, popularity = candidate
            row = {
                "data": name,
                "learning_rate": rate,
                "popularity": popularity,
                "validation": value,
            }
            append(RESULTS, row)
            print(row, flush=True)
    if len(complete()) > 1:
        publish("leave-one-out", page(), PAGE)


if __name__ == "__main__":
    main()
