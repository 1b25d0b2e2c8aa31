"""The settings of the inside form, which were never printed, found on validation data.

    python reproductions/psl-neurips-2024/scripts/search_inside.py --datasets electronic --mode catalog --data-dir DATA

Writes what was tried into `results/forms-search.csv` and the best settings into `settings/inside.csv`, where the table `forms`
takes them from. After each round the best so many of each learning rate go on: a high one is ahead early, whatever it comes to.
The test part stays sealed. Repeat the command to resume it.
"""

import argparse
import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pslrec.experiment import train_on_validation
from pslrec.reproduction import Cell, Choice, Grid, Places, Results, current_commit, identity_of

PAPER = Path(__file__).resolve().parents[1]
RUNS = Path("runs") / "reproduction" / "search-inside"
SEARCH = "forms-search"
DIVERGED = "diverged"
TEMPERATURES = (0.005, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
LEARNING_RATES = (0.1, 0.01)
# After so many epochs, how many trials of each learning rate go on.
ROUNDS = ((25, 4), (50, 2), (100, 1))
FOUND = ("validation_ndcg20", "best_epoch", "epochs", "seconds", "outcome", "commit")
SETTINGS = ("dataset", "backbone", "loss", "mode", "protocol")
Train = Callable[[Sequence[Cell], int], Sequence[float]]


def trials_for(cell: Cell) -> list[Cell]:
    """What to try for a cell of the outside form, whose other settings the trials take over."""
    trials = []
    for temperature, learning_rate in itertools.product(TEMPERATURES, LEARNING_RATES):
        settings = dict(cell.settings) | {
            "loss.form": "inside",
            "loss.temperature": temperature,
            "training.learning_rate": learning_rate,
        }
        trials.append(replace(cell, table=SEARCH, settings=settings))
    return trials


def best_trial(trials: Sequence[Cell], train: Train) -> Cell | None:
    """The trial with the highest value on validation; `None` if all diverged.

    Args:
        trials: what to try.
        train: trains trials up to an epoch, and gives the value of each: -inf if it diverged.
    """
    last = max(trial.epochs for trial in trials)
    rounds = [each for each in ROUNDS if each[0] < last]
    alive = list(trials)
    for epochs, keep in (*rounds, (last, len(trials))):
        values = dict(zip(alive, train(alive, epochs), strict=True))
        ranked = sorted(alive, key=lambda trial: -values[trial])
        kept: dict[float, int] = defaultdict(int)
        alive = []
        for trial in ranked:
            rate = trial.settings["training.learning_rate"]
            kept[rate] += 1
            if values[trial] > float("-inf") and kept[rate] <= keep:
                alive.append(trial)
    return alive[0] if alive else None


class Search:
    """Trains trials, and writes down what came out.

    Args:
        results: the directory of CSVs.
        places: where data and runs are.
    """

    def __init__(self, results: Results, places: Places) -> None:
        self.results = results
        self.places = places
        self.columns = (*results.columns[: results.columns.index("negatives") + 1], *FOUND)

    def train(self, trials: Sequence[Cell], until: int) -> list[float]:
        """The value of each trial after so many epochs."""
        return [self._value(trial, until) for trial in trials]

    def _value(self, trial: Cell, until: int) -> float:
        row = self._known(trial)
        if row.get("outcome") != DIVERGED and int(row.get("epochs") or 0) < until:
            row = self._trained(trial, until)
            self.results.merge(SEARCH, [row], columns=self.columns, key=identity_of)
            tried = f"temperature {row['temperature']}, learning rate {row['learning_rate']}"
            print(trial.label(), tried, row["validation_ndcg20"] or row["outcome"], flush=True)
        return float(row["validation_ndcg20"] or "-inf")

    def _known(self, trial: Cell) -> dict[str, str]:
        for row in self.results.rows(SEARCH):
            if identity_of(row) == trial.identity:
                return row
        return {}

    def _trained(self, trial: Cell, until: int) -> dict[str, str]:
        columns = trial.columns()
        words = [columns[name] for name in (*SETTINGS, "temperature", "learning_rate", "seed")]
        data = self.places.provision().path(trial.source, trial.split)
        found = train_on_validation(
            trial.config(data),
            out=self.places.runs / "_".join(words).lower(),
            pause=lambda epoch: epoch >= until,
        )
        row = dict.fromkeys(self.columns, "") | columns | {"commit": current_commit()}
        if found.get("failed"):
            return row | {"outcome": DIVERGED}
        epochs = found["trained_epochs"]
        return row | {
            "validation_ndcg20": f"{found['validation']['ndcg@20']:.5f}",
            "best_epoch": str(found["best_epoch"]),
            "epochs": str(epochs),
            "seconds": str(round(found["seconds_per_epoch"] * epochs)),
            "outcome": "finished" if epochs == trial.epochs else "left",
        }


def search(places: Places, choice: Choice, results: Results, settings: Results) -> list[Cell]:
    """The best trials of what is chosen, written into `settings/inside.csv`.

    Args:
        places: where data and runs are.
        choice: of the table `forms`.
        results: where trials are written down.
        settings: where the best ones are.
    """
    grid = Grid(places.folder)
    chosen = replace(choice, where={"form": ["outside"]})
    found = []
    for cell in grid.cells("forms", chosen):
        best = best_trial(trials_for(cell), Search(results, places).train)
        if best is None:
            print(f"{cell.label()}: every setting of the inside form that was tried diverged")
            continue
        found.append(best)
        columns = best.columns()
        row: dict[str, Any] = {name: columns[name] for name in SETTINGS}
        for name in ("loss.temperature", "training.learning_rate", "training.weight_decay"):
            row[name] = str(best.settings[name])
        settings.merge(
            "inside",
            [row],
            columns=list(row),
            key=lambda row: tuple(row[name] for name in SETTINGS),
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", default="electronic", help="such as electronic,gowalla")
    parser.add_argument("--losses", default="psl-tanh,psl-atan,psl-relu")
    parser.add_argument("--mode", default="catalog", choices=("sampled", "catalog"))
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--runs", type=Path, default=RUNS)
    arguments = parser.parse_args()
    places = Places(PAPER, arguments.runs, arguments.data_dir)
    choice = Choice(
        datasets=arguments.datasets.split(","),
        losses=arguments.losses.split(","),
        modes=[arguments.mode],
    )
    search(places, choice, Results(PAPER / "results"), Results(PAPER / "settings"))


if __name__ == "__main__":
    main()
