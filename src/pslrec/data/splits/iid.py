"""The paper's IID setting: a random fraction of each user's interactions is kept for training."""

import random

import numpy as np

from pslrec.data._dataset import Dataset
from pslrec.data._interactions import Interactions
from pslrec.data.splits._base import SPLITS, check_fraction, divide, each_pair_once, user_slices


@SPLITS.register("iid")
def iid_split(interactions: Interactions, *, train_fraction: float = 0.8, seed: int = 0) -> Dataset:
    """Shuffle each user's items and keep the first `floor(train_fraction * n)` for training.

    With seed 0 this re-derives the published splits: users in row order, items sorted, one
    generator for all users.

    >>> log = Interactions.from_ids([1] * 10 + [2] * 10, [*range(10), *range(10)])
    >>> len(iid_split(log).train)
    16
    """
    check_fraction("train_fraction", train_fraction)
    ordered = each_pair_once(interactions)
    # Not numpy's: the published splits were drawn from this generator.
    generator = random.Random(seed)
    in_test = np.zeros(len(ordered), dtype=bool)
    for start, end in user_slices(ordered):
        positions = list(range(start, end))
        # Even if nothing goes to the test: each shuffle advances the generator for the next user.
        generator.shuffle(positions)
        n_train = int(train_fraction * len(positions))
        in_test[positions[n_train:]] = True
    return divide(ordered, in_test)
