"""What every split has in common: a pure function of data and seed that gives training and test part."""

import logging
from typing import Protocol

import numpy as np

from pslrec.data._dataset import Dataset
from pslrec.data._interactions import Interactions
from pslrec.data._preparation import distinct_pairs, has_repetitions
from pslrec.errors import DataError
from pslrec.registry import Registry

logger = logging.getLogger(__name__)


class Split(Protocol):
    """Divides interactions; the same data, in any order, and seed give the same parts."""

    def __call__(self, interactions: Interactions, *, seed: int = 0) -> Dataset:
        """The data set with its training and test part."""
        ...


class Validation(Protocol):
    """Carves validation out of the training part of one kind of split; see `pslrec.data.splits._validation`."""

    def __call__(self, dataset: Dataset, *, fraction: float, n_kept: int, seed: int) -> Dataset:
        """The data set with a validation part of about this fraction; `n_kept` pairs of each user stay in training."""
        ...


SPLITS: Registry[Split] = Registry("split")
# By the name of the split; the training part of any other is divided at random.
VALIDATIONS: Registry[Validation] = Registry("validation")


def check_fraction(name: str, value: float) -> None:
    """Raise unless the fraction lies between 0 and 1."""
    if not 0 < value < 1:
        raise DataError(f"`{name}` must lie between 0 and 1, got {value}")


def each_pair_once(interactions: Interactions) -> Interactions:
    """The interactions sorted by user and item, each pair once: what every split begins with.

    A pair that is repeated could be on both sides of a split, and would then be hidden from the lists that it is looked for in.
    """
    # Sorted first, so that which one of a repeated pair is kept does not depend on the order of the rows.
    distinct = distinct_pairs(interactions.sorted())
    if len(distinct) < len(interactions):
        logger.info(
            "%s interactions are %s different pairs; repetitions are merged before the split",
            f"{len(interactions):,}",
            f"{len(distinct):,}",
        )
    return distinct


def divide(interactions: Interactions, in_test: np.ndarray) -> Dataset:
    """Training and test part by a mask; pairs whose user or item has no training data are left out of the test.

    Args:
        interactions: each pair once.
        in_test: which of them are set apart.
    """
    if has_repetitions(interactions):
        raise ValueError(
            "`interactions` must hold each pair once; a split begins with `each_pair_once`"
        )
    train, test = interactions.select(~in_test), interactions.select(in_test)
    n_set_apart = len(test)
    unknown = (train.user_counts()[test.users] == 0) | (train.item_counts()[test.items] == 0)
    test = _without(test, unknown, "their user or item is not in the training part")
    if len(train) == 0 or len(test) == 0:
        raise DataError(
            f"the split leaves {len(train):,} training and {len(test):,} test pairs of {len(interactions):,}, which is too "
            "little: take another split or fraction, or more data"
        )
    return Dataset(train, test, n_left_out=n_set_apart - len(test))


def _without(part: Interactions, removed: np.ndarray, reason: str) -> Interactions:
    if not removed.any():
        return part
    logger.info("%d test pairs were left out: %s", removed.sum(), reason)
    return part.select(~removed)


def validation_count(n_pairs: int, fraction: float, n_kept: int) -> int:
    """How many of a user's training pairs go to validation: the fraction, at least one, and `n_kept` stay.

    >>> [validation_count(n, fraction=0.1, n_kept=2) for n in (2, 3, 30)]
    [0, 1, 3]
    """
    return max(min(max(int(fraction * n_pairs), 1), n_pairs - n_kept), 0)


def user_slices(interactions: Interactions) -> list[tuple[int, int]]:
    """Begin and end of each user's interactions, which must be sorted by user; users without any are left out."""
    starts = np.flatnonzero(np.diff(interactions.users, prepend=-1))
    ends = np.append(starts[1:], len(interactions))
    return list(zip(starts.tolist(), ends.tolist(), strict=True))
