"""One interaction of each user for testing: the latest where times are known, else any."""

from dataclasses import replace

import numpy as np

from pslrec.data._dataset import Dataset
from pslrec.data._interactions import Interactions
from pslrec.data.splits._base import SPLITS, VALIDATIONS, divide, each_pair_once, user_slices
from pslrec.seeding import generator


@SPLITS.register("leave-one-out")
def leave_one_out_split(interactions: Interactions, *, seed: int = 0) -> Dataset:
    """Test on the latest interaction of each user with at least two; without times on a random one.

    >>> log = Interactions.from_ids([1, 1, 2, 2], ["a", "b", "a", "b"], timestamps=[10, 20, 40, 30])
    >>> leave_one_out_split(log).test.to_frame().rows()
    [(1, 'b', 20), (2, 'a', 40)]
    """
    ordered = _by_user_and_time(each_pair_once(interactions), seed)
    return divide(ordered, _is_last(ordered, n_kept=1))


@VALIDATIONS.register("leave-one-out")
def leave_one_out_validation(
    dataset: Dataset,
    *,
    fraction: float,  # noqa: ARG001 - it is always one interaction
    n_kept: int,
    seed: int,
) -> Dataset:
    """Validate on the interaction before the one tested: the latest that is left for training."""
    ordered = _by_user_and_time(dataset.train, seed)
    in_validation = _is_last(ordered, n_kept=n_kept)
    return replace(
        dataset, train=ordered.select(~in_validation), validation=ordered.select(in_validation)
    )


def _by_user_and_time(interactions: Interactions, seed: int) -> Interactions:
    ordered = interactions.sorted()
    # Decides among equal times, and where there are no times, among all.
    ties = generator(seed, "leave one out").permutation(len(ordered))
    times = ordered.timestamps
    if times is None:
        times = np.zeros(len(ordered))
    return ordered.select(np.lexsort((ties, times, ordered.users)))


def _is_last(ordered: Interactions, *, n_kept: int) -> np.ndarray:
    is_last = np.zeros(len(ordered), dtype=bool)
    for start, end in user_slices(ordered):
        if end - start > n_kept:
            is_last[end - 1] = True
    return is_last
