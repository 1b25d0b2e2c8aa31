"""What every split has in common: a pure function of data and seed that gives training and test part."""

import logging
from typing import Protocol

import numpy as np

from pslrec.data.dataset import Dataset
from pslrec.data.interactions import Interactions
from pslrec.data.leaks import first_of_each_pair, in_both
from pslrec.errors import DataError
from pslrec.registry import Registry

logger = logging.getLogger(__name__)


class Split(Protocol):
    """Divides interactions; the same data, in any order, and seed give the same parts."""

    def __call__(self, interactions: Interactions, *, seed: int = 0) -> Dataset:
        """The data set with its training and test part."""
        ...


SPLITS: Registry[Split] = Registry("split")


def check_fraction(name: str, value: float) -> None:
    """Raise unless the fraction lies between 0 and 1."""
    if not 0 < value < 1:
        raise DataError(f"`{name}` must lie between 0 and 1, got {value}")


def divide(interactions: Interactions, in_test: np.ndarray) -> Dataset:
    """Training and test part by a mask.

    Left out of the test are pairs whose user or item has no training data, and of pairs that the log repeats those that
    are in training as well or in the test already.
    """
    train, test = interactions.select(~in_test), interactions.select(in_test)
    test = _without(test, in_both(test, train) | ~first_of_each_pair(test), "they repeat another pair")
    unknown = (train.user_counts()[test.users] == 0) | (train.item_counts()[test.items] == 0)
    test = _without(test, unknown, "their user or item is not in the training part")
    if len(train) == 0 or len(test) == 0:
        raise DataError(
            f"the split leaves {len(train):,} training and {len(test):,} test pairs of {len(interactions):,}, which is too "
            "little: take another split or fraction, or more data"
        )
    return Dataset(train, test)


def _without(part: Interactions, removed: np.ndarray, reason: str) -> Interactions:
    if not removed.any():
        return part
    logger.info("%d test pairs were left out: %s", removed.sum(), reason)
    return part.select(~removed)


def user_slices(interactions: Interactions) -> list[tuple[int, int]]:
    """Begin and end of each user's interactions, which must be sorted by user; users without any are left out."""
    starts = np.flatnonzero(np.diff(interactions.users, prepend=-1))
    ends = np.append(starts[1:], len(interactions))
    return list(zip(starts.tolist(), ends.tolist(), strict=True))
