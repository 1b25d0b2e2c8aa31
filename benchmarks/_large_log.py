"""Planted tastes at scale: users who choose by taste and popularity, written file by file as Parquet."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from pslrec.files import make_directory, whole_file
from pslrec.seeding import generator

N_TOPICS = 16
# As `TasteModel` has them: few topics per user and item, and a long tail of popularity.
CONCENTRATION = 1 / 20
POPULARITY_EXPONENT = 0.8
SMALLEST_TRAIT = 1e-12
# With this spread the mean history is 30 choices.
MEDIAN_HISTORY = 25.0
HISTORY_SPREAD = 0.6
USERS_PER_FILE = 50_000


def write_large_log(
    directory: Path,
    n_users: int,
    n_items: int,
    *,
    seed: int = 0,
    report: Callable[[str], None] | None = None,
) -> int:
    """Write a log in files of some users each; returns how many rows there are.

    Choices are drawn with repeats, which preparation merges: drawing without would compare every
    user with every item.

    Args:
        directory: where the files go.
        n_users: of the log.
        n_items: of the catalogue.
        seed: the same seed gives the same log.
        report: is told of every file.
    """
    make_directory(directory)
    chances = _chances(n_items, seed)
    n_rows = 0
    for number, first in enumerate(range(0, n_users, USERS_PER_FILE)):
        random = generator(seed, "large log", number)
        last = min(first + USERS_PER_FILE, n_users)
        frame = _choices(first, last, chances, random)
        with whole_file(directory / f"part-{number:05}.parquet") as file:
            frame.write_parquet(file)
        n_rows += len(frame)
        if report is not None:
            report(f"{last:,} of {n_users:,} users, {n_rows:,} rows")
    return n_rows


def _chances(n_items: int, seed: int) -> np.ndarray:
    """The cumulated chance of every item within each topic, topics by items."""
    random = generator(seed, "large log", "items")
    popularity = random.permutation(np.arange(1, n_items + 1)) ** -POPULARITY_EXPONENT
    traits = random.dirichlet(np.full(N_TOPICS, CONCENTRATION), size=n_items)
    attraction = popularity * np.maximum(traits, SMALLEST_TRAIT).T
    cumulated = np.cumsum(attraction, axis=1)
    return cumulated / cumulated[:, -1:]


def _choices(
    first: int, last: int, chances: np.ndarray, random: np.random.Generator
) -> pl.DataFrame:
    n_users = last - first
    tastes = random.dirichlet(np.full(N_TOPICS, CONCENTRATION), size=n_users)
    lengths = MEDIAN_HISTORY * np.exp(HISTORY_SPREAD * random.standard_normal(n_users))
    lengths = np.clip(np.rint(lengths), 5, 1000).astype(np.int64)
    # How many choices each user makes within each topic.
    counts = random.multinomial(lengths, tastes)
    users = []
    items = []
    for topic in range(N_TOPICS):
        owners = np.repeat(np.arange(first, last), counts[:, topic])
        drawn = np.searchsorted(chances[topic], random.random(len(owners)))
        users.append(owners)
        items.append(np.minimum(drawn, chances.shape[1] - 1))
    columns = {"user": np.concatenate(users), "item": np.concatenate(items)}
    # As logs are: in the order of time, not of topics.
    order = random.permutation(len(columns["user"]))
    return pl.DataFrame({name: column[order] for name, column in columns.items()})
