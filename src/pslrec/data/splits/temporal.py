"""Splits by time: the past trains, the future tests."""

import numpy as np

from pslrec.data.dataset import Dataset
from pslrec.data.interactions import Interactions
from pslrec.data.splits.base import SPLITS, check_fraction, divide, user_slices
from pslrec.errors import DataError
from pslrec.seeding import generator


@SPLITS.register("temporal")
def temporal_split(interactions: Interactions, *, train_fraction: float = 0.8, seed: int = 0) -> Dataset:
    """Train on the earliest interactions of all, test on the latest; equal times are put in random order."""
    check_fraction("train_fraction", train_fraction)
    ordered = _by_time(interactions, seed)
    in_test = np.arange(len(ordered)) >= int(train_fraction * len(ordered))
    return divide(ordered, in_test)


@SPLITS.register("temporal-per-user")
def temporal_split_per_user(interactions: Interactions, *, train_fraction: float = 0.8, seed: int = 0) -> Dataset:
    """Train on each user's earliest interactions, test on its latest; equal times are put in random order."""
    check_fraction("train_fraction", train_fraction)
    ordered = _by_time(interactions, seed)
    ordered = ordered.select(np.argsort(ordered.users, kind="stable"))
    in_test = np.zeros(len(ordered), dtype=bool)
    for start, end in user_slices(ordered):
        in_test[start + max(int(train_fraction * (end - start)), 1) : end] = True
    return divide(ordered, in_test)


def _by_time(interactions: Interactions, seed: int) -> Interactions:
    if interactions.timestamps is None:
        raise DataError("a temporal split needs timestamps, the interactions have none; use `iid` or `leave-one-out`")
    ordered = interactions.sorted()
    assert ordered.timestamps is not None
    ties = generator(seed, "temporal split").permutation(len(ordered))
    return ordered.select(np.lexsort((ties, ordered.timestamps)))
