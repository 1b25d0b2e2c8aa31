"""Data sets that benchmarks run on: the published ones, or made-up ones of the same size where those are absent."""

import os
from pathlib import Path

import numpy as np

from pslrec.data import Dataset, Interactions, Vocabulary, read_published
from pslrec.data.splits import paper_validation

REPOSITORY = Path(__file__).resolve().parent.parent
# Users, items, interactions of all parts.
SIZES = {"electronic": (13_455, 8_360, 234_521), "gowalla": (29_858, 40_988, 1_027_464)}
FILES = {
    "electronic": "amazon2014-electronic.zip",
    "gowalla": "gowalla.zip",
    "health": "amazon2014-health.zip",
    "movie": "amazon2014-movie.zip",
    "movielens-100k": "movielens-100k.zip",
}


def is_published(name: str) -> bool:
    """Whether the published data set is here, so that none has to be made up."""
    return path_of(name).exists()


def published(name: str) -> Dataset:
    """The published IID split with the paper's validation part, or a made-up data set of its size."""
    path = path_of(name)
    return paper_validation(read_published(path)) if path.exists() else made_up(*SIZES[name])


def made_up(n_users: int, n_items: int, n_pairs: int) -> Dataset:
    """Popularity with a long tail, in three parts."""
    random = np.random.default_rng(0)
    vocabularies = (
        Vocabulary(np.arange(n_users), kind="user"),
        Vocabulary(np.arange(n_items), kind="item"),
    )
    keys = (
        random.integers(n_users, size=n_pairs) * n_items + random.zipf(1.3, size=n_pairs) % n_items
    )
    keys = np.unique(keys)
    part = random.choice(3, p=[0.72, 0.07, 0.21], size=len(keys))
    parts = [
        Interactions(*np.divmod(keys[part == which], n_items), *vocabularies) for which in range(3)
    ]
    return Dataset(train=parts[0], validation=parts[1], test=parts[2], name="made up")


def path_of(name: str) -> Path:
    """Where the published data set would be."""
    directory = Path(os.environ.get("PSLREC_DATA_DIR", REPOSITORY.parent / "shared" / "data"))
    return directory / "iid" / FILES[name]
