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
# The learning rate falls over the epochs there are, so each number of them is a training of its own.
LENGTHS = (1, 2, 3, 5, 10)
# The last is the preset as it is, whose longest training is what the others are to reach, but for a hundredth.
STARTS = ("warm", "normal", "spectral")
# The preset's steps suit rows that rank already; from a random start they would lead nowhere.
RATE_OF_NORMAL = 0.03
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


def measure(log: Interactions, name: str, seed: int, **settings: Any) -> Iterator[dict[str, Any]]:
    """Train the earlier model, then from every start for every number of epochs, each judged by its last one."""
    days = days_of(log)
    preset = {**preset_settings("fast"), "training.seed": seed, **settings}
    facts = {
        "data": name,
        "times": "real" if days.are_times_real else "made up",
        "pairs": len(days.today.train),
        "earlier_pairs": len(days.earlier),
        "new_users": len(np.unique(days.today.train.users)) - days.earlier.n_users,
        "new_items": len(np.unique(days.today.train.items)) - days.earlier.n_items,
        "temperature": preset["loss.temperature"],
        "learning_rate": preset["training.learning_rate"],
        "seed": seed,
    }
    with tempfile.TemporaryDirectory() as directory:
        earlier = Path(directory) / "earlier"
        run(RunConfig.from_settings(preset), data=days.earlier, out=earlier)
        for start in STARTS:
            begun: dict[str, Any] = (
                {"training.warm_start": str(earlier)} if start == "warm" else {"backbone.initialization": start}
            )
            begun |= {"training.learning_rate": RATE_OF_NORMAL} if start == "normal" else {}
            for epochs in LENGTHS:
                length = {"training.epochs": epochs, "training.validate_every": epochs}
                config = RunConfig.from_settings({**preset, **begun, **length})
                value = run(config, data=days.today).metrics["validation"]["ndcg@20"]
                yield {**facts, "start": start, "epochs": epochs, "validation_ndcg20": round(value, 5)}


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """For each data set the means over seeds, and how many epochs are enough."""
    return "\n\n".join(_of_one([row for row in rows if row["data"] == data]) for data in _distinct(rows, "data"))


def _of_one(rows: Sequence[Mapping[str, Any]]) -> str:
    values: dict[tuple[str, int], list[float]] = defaultdict(list)
    for row in rows:
        values[row["start"], int(row["epochs"])].append(float(row["validation_ndcg20"]))
    means = {key: mean(found) for key, found in values.items()}
    lengths = sorted({epochs for _, epochs in means})
    wanted = NEAR * means[STARTS[-1], lengths[-1]]
    enough = [next((n for n in lengths if means[start, n] >= wanted), f"over {lengths[-1]}") for start in STARTS]
    first, n_seeds = rows[0], len(_distinct(rows, "seed"))
    return (
        f"{first['data']}, times {first['times']}: {int(first['pairs']):,} training pairs, {int(first['earlier_pairs']):,} of "
        f"them in the earlier log, {int(first['new_users']):,} users and {int(first['new_items']):,} items new; "
        f"{n_seeds} seed{'s' if n_seeds > 1 else ''}.\n\n"
        + table(
            {"epochs": "---:", **{f"{start} start": "---:" for start in STARTS}},
            [
                *((epochs, *(f"{means[start, epochs]:.4f}" for start in STARTS)) for epochs in lengths),
                (f"enough for {wanted:.4f}", *enough),
            ],
        )
    )


def _distinct(rows: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    return list(dict.fromkeys(row[name] for row in rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="a log; of one with ratings, those of 3 and more count, and its 10-core")
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
