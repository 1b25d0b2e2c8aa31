"""What every split has in common: data and seed in, training and test part out."""

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
    """Carves a validation part out of the training part of one kind of split."""

    def __call__(self, dataset: Dataset, *, fraction: float, n_kept: int, seed: int) -> Dataset:
        """The data set with a validation part.

        Args:
            dataset: its training part has each pair once.
            fraction: about this share of the training pairs becomes validation.
            n_kept: each user keeps at least this many training pairs, where the rule goes by user.
            seed: decides the order of equal times.
        """
        ...


SPLITS: Registry[Split] = Registry("split")
# Found by the name of the split. The training part of a split that is not here is divided at
# random.
VALIDATIONS: Registry[Validation] = Registry("validation")


def check_fraction(name: str, value: float) -> None:
    """Raise unless the fraction lies between 0 and 1."""
    if not 0 < value < 1:
        raise DataError(f"`{name}` must lie between 0 and 1, got {value}")


def each_pair_once(interactions: Interactions) -> Interactions:
    """The interactions sorted by user and item, each pair once: every split starts from these.

    A repeated pair could end up on both sides of a split. Its item would then be masked as seen
    in the very list in which the evaluation looks for it.
    """
    # Sorted first, so that the order of the rows does not decide which of the repeated is kept.
    distinct = distinct_pairs(interactions.sorted())
    if len(distinct) < len(interactions):
        logger.info(
            "%s interactions are %s different pairs; repetitions are merged before the split",
            f"{len(interactions):,}",
            f"{len(distinct):,}",
        )
    return distinct


def divide(interactions: Interactions, in_test: np.ndarray) -> Dataset:
    """Divide interactions by a mask into a training and a test part.

    Test pairs whose user or item has no training data are left out.

    Args:
        interactions: each pair once.
        in_test: true for the pairs that are set apart for the test.
    """
    if has_repetitions(interactions):
        # Not a `DataError`: the mistake is in the code of the split, not in the data.
        raise ValueError(
            "`interactions` must hold each pair once; a split starts with `each_pair_once`"
        )
    train = interactions.select(~in_test)
    test = interactions.select(in_test)
    n_set_apart = len(test)
    # No model can rank what it never saw, so such pairs would measure the split, not the model.
    is_unknown_user = train.user_counts()[test.users] == 0
    is_unknown_item = train.item_counts()[test.items] == 0
    is_unknown = is_unknown_user | is_unknown_item
    if is_unknown.any():
        logger.info(
            "%d test pairs were left out: their user or item is not in the training part",
            is_unknown.sum(),
        )
        test = test.select(~is_unknown)
    if len(train) == 0 or len(test) == 0:
        raise DataError(
            f"the split leaves {len(train):,} training and {len(test):,} test pairs of "
            f"{len(interactions):,}, which is too little: "
            "take another split or fraction, or more data"
        )
    return Dataset(train, test, n_left_out=n_set_apart - len(test))


def validation_count(n_pairs: int, fraction: float, n_kept: int) -> int:
    """How many of a user's training pairs go to validation.

    This is the fraction, but at least one, as long as `n_kept` pairs stay in training.

    >>> [validation_count(n, fraction=0.1, n_kept=2) for n in (2, 3, 30)]
    [0, 1, 3]
    """
    wanted = max(int(fraction * n_pairs), 1)
    available = max(n_pairs - n_kept, 0)
    return min(wanted, available)


def user_slices(interactions: Interactions) -> list[tuple[int, int]]:
    """Start and end of each user's interactions, which must be sorted by user.

    Users without interactions are left out.
    """
    starts = np.flatnonzero(np.diff(interactions.users, prepend=-1))
    ends = np.append(starts[1:], len(interactions))
    return list(zip(starts.tolist(), ends.tolist(), strict=True))
