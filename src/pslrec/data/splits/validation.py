"""Carving validation interactions, by which choices are made, out of the training part."""

import random
from dataclasses import replace

import numpy as np

from pslrec.data.dataset import Dataset
from pslrec.data.leaks import first_of_each_pair, in_both
from pslrec.data.splits.base import check_fraction, user_slices
from pslrec.errors import DataError


def paper_validation(dataset: Dataset, *, fraction: float = 0.1, seed: int = 2024) -> Dataset:
    """Move `max(floor(fraction * n), 1)` random training items of each user with n of them to validation.

    This is the rule behind the published numbers, drawn from the same generator: seed 2024 re-derives the published
    validation sets, seeds 2025 and on the further folds. A user with a single training item loses it, as there.
    """
    return _carve(dataset, fraction, seed, keep=0)


def fraction_validation(dataset: Dataset, *, fraction: float = 0.1, seed: int = 2024) -> Dataset:
    """Move `floor(fraction * n)` random training items of each user to validation, at least one of those with three or more.

    Every user keeps at least two training items and every item at least one user, so nobody becomes a stranger to the model.
    """
    return _carve(dataset, fraction, seed, keep=2)


def _carve(dataset: Dataset, fraction: float, seed: int, *, keep: int) -> Dataset:
    check_fraction("fraction", fraction)
    if dataset.validation is not None:
        raise DataError('the data set has a validation part already; use `data.validation = "none"` to keep it')
    ordered = dataset.train.sorted()
    generator = random.Random(seed)  # the published validation sets were drawn from this generator
    chosen = np.zeros(len(ordered), dtype=bool)
    for start, end in user_slices(ordered):
        count = min(max(int(fraction * (end - start)), 1), end - start - keep)
        if count > 0:
            chosen[generator.sample(range(start, end), count)] = True
    if keep:
        chosen &= np.bincount(ordered.items[~chosen], minlength=ordered.n_items)[ordered.items] > 0
    train, validation = ordered.select(~chosen), ordered.select(chosen)
    # A pair that the log repeats may be on both sides.
    validation = validation.select(~in_both(validation, train) & first_of_each_pair(validation))
    if len(validation) == 0 or len(train) == 0:
        raise DataError(
            f"carving out validation leaves {len(train):,} training and {len(validation):,} validation pairs, which is too "
            'little: use `validation="none"` (on the command line --validation none), or more data'
        )
    return replace(dataset, train=train, validation=validation)
