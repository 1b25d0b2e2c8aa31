"""What every split has in common: data and seed in, training and test part out."""

import logging
from collections.abc import Iterator
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


SLICES_AT_ONCE = 1 << 16
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
    check_parts(len(train), len(test), len(interactions))
    return Dataset(train, test, n_left_out=n_set_apart - len(test))


def check_parts(n_train: int, n_test: int, n_pairs: int) -> None:
    """Raise where a split leaves a part empty.

    Args:
        n_train: pairs of the training part.
        n_test: pairs of the test part.
        n_pairs: that were divided.
    """
    if n_train == 0 or n_test == 0:
        raise DataError(
            f"the split leaves {n_train:,} training and {n_test:,} test pairs of "
            f"{n_pairs:,}, which is too little: "
            "take another split or fraction, or more data"
        )


def validation_count(n_pairs: int, fraction: float, n_kept: int) -> int:
    """How many of a user's training pairs go to validation.

    This is the fraction, but at least one, as long as `n_kept` pairs stay in training.

    >>> [validation_count(n, fraction=0.1, n_kept=2) for n in (2, 3, 30)]
    [0, 1, 3]
    """
    wanted = max(int(fraction * n_pairs), 1)
    available = max(n_pairs - n_kept, 0)
    return min(wanted, available)


def user_slices(interactions: Interactions) -> Iterator[tuple[int, int]]:
    """Start and end of each user's interactions, which must be sorted by user.

    Users without interactions are left out.
    """
    return slices_of(interactions.user_counts())


def slices_of(counts: np.ndarray) -> Iterator[tuple[int, int]]:
    """Start and end of each list, of lists that lie end to end; empty ones are left out.

    Args:
        counts: lengths of the lists.

    >>> list(slices_of(np.array([2, 0, 3])))
    [(0, 2), (2, 5)]
    """
    ends = np.cumsum(counts)
    starts = ends - counts
    filled = np.flatnonzero(counts)
    # Python's numbers take many times the room of numpy's, so only some of them exist at a time.
    for first in range(0, len(filled), SLICES_AT_ONCE):
        some = filled[first : first + SLICES_AT_ONCE]
        yield from zip(starts[some].tolist(), ends[some].tolist(), strict=True)
