"""How many epochs a warm start saves: a model of an earlier log goes on with the whole one, beside models that begin anew.

    python reproductions/warm_start.py ml-100k/u.data --out reproductions/warm-start/results.csv
    python reproductions/warm_start.py amazon2014-electronic.zip --out reproductions/warm-start/results.csv

Each user's latest tenth is the validation part, which no model is trained on. Of the rest, the earlier model knows the first nine
tenths, and with them only the users and items that were there by then; the others are trained on all of it. Where a log has no
times, they are made up: users and items arrive one by one, and an interaction comes some time after both.
"""

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from _records import append, publish, read, table

from pslrec.config import RunConfig, preset_settings
from pslrec.data import Dataset, Interactions, load_interactions, prepare
from pslrec.data.splits import split_by_name
from pslrec.experiment import run

KEPT = 0.9
PRESET = preset_settings("fixed")
RANDOM = {
    "backbone.initialization": "normal",
    "loss.temperature": 1 / 8,
    "training.learning_rate": 0.03,
    "training.epochs": 30,
}
# The preset, whose spectral start is good at once, and training from a random start.
KINDS = {"preset": PRESET, "random": {**PRESET, **RANDOM}}
# The learning rate falls over the epochs there are, so each number of them is a training of its own.
LENGTHS = (1, 2, 3, 5, 10, 20, 30)
STARTS = ("warm", "cold")
# The best of the cold starts is what the others are to reach, but for a hundredth.
NEAR = 0.99
SEEDS = (2024, 2025, 2026)


@dataclass(frozen=True)
class Days:
    """A log, and the log as it was some time before.

    Args:
        earlier: what the earlier model is trained on.
        today: all of it, with the validation part.
        are_times_real: or made up.
    """

    earlier: Interactions
    today: Dataset
    are_times_real: bool


def days_of(log: Interactions, *, seed: int = 0) -> Days:
    """Cut a log by its times, or by made-up ones if it has none."""
    are_times_real = log.timestamps is not None
    timed = log if are_times_real else replace(log, timestamps=arrivals(log, seed=seed))
    split = split_by_name(timed, "temporal-per-user", train_fraction=KEPT)
    train = split.train
    assert train.timestamps is not None
    order = np.argsort(train.timestamps, kind="stable")[: int(KEPT * len(train))]
    frame = train.select(np.sort(order)).to_frame()
    nothing = train.select(np.zeros(0, dtype=np.int64))
    # An item that nobody has in training can not be looked for.
    known = split.test.select(train.item_counts()[split.test.items] > 0)
    return Days(
        Interactions.from_ids(frame["user"], frame["item"]),
        Dataset(train, nothing, validation=known),
        are_times_real,
    )


def arrivals(log: Interactions, *, seed: int) -> np.ndarray:
    """Made-up times: after user and item have arrived, interactions are spread over what is left."""
    generator = np.random.default_rng(seed)
    users, items = generator.random(log.n_users), generator.random(log.n_items)
    both = np.maximum(users[log.users], items[log.items])
    return both + generator.random(len(log)) * (1 - both)


def measure(log: Interactions, name: str, seed: int, **changes: Any) -> Iterator[dict[str, Any]]:
    """Train the earlier model, then from both starts for every number of epochs, each judged by its last one."""
    days = days_of(log)
    facts = {
        "data": name,
        "times": "real" if days.are_times_real else "made up",
        "pairs": len(days.today.train),
        "earlier_pairs": len(days.earlier),
        "new_users": len(np.unique(days.today.train.users)) - days.earlier.n_users,
        "new_items": len(np.unique(days.today.train.items)) - days.earlier.n_items,
        "seed": seed,
    }
    for kind, common in KINDS.items():
        settings = {**common, "training.seed": seed, **changes}
        with tempfile.TemporaryDirectory() as directory:
            earlier = Path(directory) / "earlier"
            run(RunConfig.from_settings(settings), data=days.earlier, out=earlier)
            for start in STARTS:
                begun = {"training.warm_start": str(earlier)} if start == "warm" else {}
                for epochs in LENGTHS:
                    length = {"training.epochs": epochs, "training.validate_every": epochs}
                    found = run(
                        RunConfig.from_settings({**settings, **begun, **length}), data=days.today
                    )
                    value = found.metrics["validation"]["ndcg@20"]
                    yield {
                        **facts,
                        "kind": kind,
                        "start": start,
                        "epochs": epochs,
                        "validation_ndcg20": round(value, 5),
                    }


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """For each data set the means over seeds, and how many epochs are enough."""
    return "\n\n".join(
        _of_one([row for row in rows if row["data"] == data]) for data in _distinct(rows, "data")
    )


def _of_one(rows: Sequence[Mapping[str, Any]]) -> str:
    first, n_seeds = rows[0], len(_distinct(rows, "seed"))
    return (
        f"{first['data']}, times {first['times']}: {int(first['pairs']):,} training pairs, {int(first['earlier_pairs']):,} of "
        f"them in the earlier log, {int(first['new_users']):,} users and {int(first['new_items']):,} items new; "
        f"{n_seeds} seed{'s' if n_seeds > 1 else ''}.\n\n{_table(rows)}"
    )


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    values: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    for row in rows:
        values[row["kind"], row["start"], int(row["epochs"])].append(
            float(row["validation_ndcg20"])
        )
    means = {key: mean(found) for key, found in values.items()}
    columns = [(kind, start) for kind in _distinct(rows, "kind") for start in STARTS]
    lines = [
        (
            epochs,
            *(
                f"{means[*column, epochs]:.4f}" if (*column, epochs) in means else ""
                for column in columns
            ),
        )
        for epochs in sorted({key[-1] for key in means})
    ]
    enough = [_enough(means, *column) for column in columns]
    headings = {"epochs": "---:", **{f"{kind}, {start}": "---:" for kind, start in columns}}
    return table(headings, [*lines, ("enough", *enough)])


def _enough(means: Mapping[tuple[str, str, int], float], kind: str, start: str) -> int | str:
    lengths = sorted(epochs for of, at, epochs in means if (of, at) == (kind, start))
    wanted = NEAR * max(value for (of, at, _), value in means.items() if (of, at) == (kind, "cold"))
    return next(
        (epochs for epochs in lengths if means[kind, start, epochs] >= wanted),
        f"over {lengths[-1]}",
    )


def _distinct(rows: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    return list(dict.fromkeys(row[name] for row in rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "data", help="a log; of one with ratings, those of 3 and more count, and its 10-core"
    )
    parser.add_argument("--name", help="of the data in the table; that of the file if not given")
    parser.add_argument("--out", type=Path, required=True, help="CSV file to write or add to")
    parser.add_argument("--seed", type=int, action="append", help="of training; three if not given")
    arguments = parser.parse_args()
    log = load_interactions(arguments.data)
    log = log if log.ratings is None else prepare(log)
    for seed in arguments.seed or SEEDS:
        for row in measure(log, arguments.name or Path(arguments.data).stem, seed):
            append(arguments.out, row)
            print(row, flush=True)
    publish("warm-start", markdown(read(arguments.out)))


if __name__ == "__main__":
    main()
