"""The paper's IID setting: a random fraction of each user's interactions is kept for training."""

import random
from collections.abc import Iterable

import numpy as np

from pslrec.data._dataset import Dataset
from pslrec.data._interactions import Interactions
from pslrec.data.splits._base import SPLITS, check_fraction, divide, each_pair_once, user_slices

TRAIN_FRACTION = 0.8


@SPLITS.register("iid")
def iid_split(
    interactions: Interactions, *, train_fraction: float = TRAIN_FRACTION, seed: int = 0
) -> Dataset:
    """Shuffle each user's items and keep the first `floor(train_fraction * n)` for training.

    That is at least one: a user without any could not be tested, and the model would not know
    them. With seed 0 this re-derives the published splits: users in row order, items sorted, one
    generator for all users.

    >>> log = Interactions.from_ids([1] * 10 + [2] * 10, [*range(10), *range(10)])
    >>> len(iid_split(log).train)
    16
    """
    check_fraction("train_fraction", train_fraction)
    ordered = each_pair_once(interactions)
    in_test = drawn_for_test(user_slices(ordered), len(ordered), train_fraction, seed)
    return divide(ordered, in_test)


def drawn_for_test(
    slices: Iterable[tuple[int, int]], n_pairs: int, train_fraction: float, seed: int
) -> np.ndarray:
    """A mask of the pairs that go to the test part.

    Args:
        slices: start and end of each user's pairs, in row order.
        n_pairs: of all users.
        train_fraction: share of each user's pairs that is kept for training.
        seed: of the draw.
    """
    # Not numpy's: the published splits were drawn from this generator.
    generator = random.Random(seed)
    in_test = np.zeros(n_pairs, dtype=bool)
    for start, end in slices:
        positions = list(range(start, end))
        # Even if nothing goes to the test: each shuffle advances the generator for the next user.
        generator.shuffle(positions)
        n_train = max(int(train_fraction * len(positions)), 1)
        in_test[positions[n_train:]] = True
    return in_test
