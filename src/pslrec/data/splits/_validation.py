"""Carving validation interactions, on which choices are made, out of the training part."""

import logging
import random
from collections.abc import Iterable
from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from pslrec.data._dataset import Dataset
from pslrec.data.splits._base import (
    VALIDATIONS,
    check_fraction,
    each_pair_once,
    user_slices,
    validation_count,
)
from pslrec.errors import DataError

logger = logging.getLogger(__name__)

# Of each user's training pairs, or of all of them.
FRACTION = 0.1
ValidationRule = Literal["none", "paper", "fraction"]
# Training pairs that each user keeps. The paper's rule would take a user's only one, of which its data
# have none: nothing could be ranked for somebody without any.
N_KEPT = {"paper": 1, "fraction": 2}
# Rules by which an item of which all pairs were drawn stays in training with all of them.
KEEPING_ITEMS = ("fraction",)


def carve_validation(
    dataset: Dataset, rule: ValidationRule, *, split: str = "iid", seed: int = 2024
) -> Dataset:
    """The data set with a validation part by the rule of this name; an existing one stays.

    Args:
        dataset: its training part is divided.
        rule: `paper` and `fraction` differ in how many pairs of each user they take;
            `none` carves out nothing.
        split: name of the split that made the data set. If it follows time, validation does too.
        seed: decides the draw, or the order of equal times.
    """
    if rule not in get_args(ValidationRule):
        raise DataError(
            f"`validation` must be one of {', '.join(get_args(ValidationRule))}, got `{rule}`"
        )
    if rule == "none" or dataset.validation is not None:
        return dataset
    if split not in VALIDATIONS:
        return _drawn(dataset, FRACTION, seed, rule=rule)
    distinct = replace(dataset, train=each_pair_once(dataset.train))
    carve = VALIDATIONS[split]
    carved = carve(distinct, fraction=FRACTION, n_kept=N_KEPT[rule], seed=seed)
    _check_sizes(carved)
    _check_known(carved)
    return carved


def paper_validation(dataset: Dataset, *, fraction: float = FRACTION, seed: int = 2024) -> Dataset:
    """Move `max(floor(fraction * n), 1)` of each user's n training items to validation, at random.

    This is the rule behind the published numbers, drawn from the same generator: seed 2024
    re-derives the published validation sets, seeds 2025 and up the further folds. A user with a
    single training item keeps it, where the paper's code would take it.
    """
    return _drawn(dataset, fraction, seed, rule="paper")


def fraction_validation(
    dataset: Dataset, *, fraction: float = FRACTION, seed: int = 2024
) -> Dataset:
    """Move `floor(fraction * n)` of each user's n training items to validation, at random.

    It is at least one item of each user with three or more. Every user keeps at least two training
    items and every item at least one user, so that the model knows all of them.
    """
    return _drawn(dataset, fraction, seed, rule="fraction")


def _drawn(dataset: Dataset, fraction: float, seed: int, *, rule: str) -> Dataset:
    check_fraction("fraction", fraction)
    if dataset.validation is not None:
        raise DataError(
            'the data set has a validation part already; use `data.validation = "none"` to keep it'
        )
    ordered = each_pair_once(dataset.train)
    slices = user_slices(ordered)
    chosen = drawn_for_validation(slices, len(ordered), fraction, seed, n_kept=N_KEPT[rule])
    if rule in KEEPING_ITEMS:
        n_left = np.bincount(ordered.items[~chosen], minlength=ordered.n_items)
        chosen &= n_left[ordered.items] > 0
    carved = replace(dataset, train=ordered.select(~chosen), validation=ordered.select(chosen))
    _check_sizes(carved)
    return carved


def drawn_for_validation(
    slices: Iterable[tuple[int, int]], n_pairs: int, fraction: float, seed: int, *, n_kept: int
) -> np.ndarray:
    """A mask of the training pairs that are drawn for validation.

    Args:
        slices: start and end of each user's training pairs, in row order.
        n_pairs: of all users.
        fraction: share of each user's pairs.
        seed: of the draw.
        n_kept: pairs that stay with each user.
    """
    # Not numpy's: the published validation sets were drawn from this generator.
    generator = random.Random(seed)
    chosen = np.zeros(n_pairs, dtype=bool)
    for start, end in slices:
        count = validation_count(end - start, fraction, n_kept)
        if count > 0:
            chosen[generator.sample(range(start, end), count)] = True
    return chosen


def _check_known(dataset: Dataset) -> None:
    """Raise where training knows nobody in a validation part by time; report who is only there."""
    assert dataset.validation is not None
    validation = dataset.validation
    is_known_user = dataset.train.user_counts() > 0
    is_known_item = dataset.train.item_counts() > 0
    is_known_pair = is_known_user[validation.users] & is_known_item[validation.items]
    if not is_known_pair.any():
        raise DataError(
            f"none of the {len(validation):,} validation pairs, the latest of training, has a user "
            "and an item that occur before; "
            "use `data.validation` = none, or the split temporal-per-user"
        )
    is_only_later = ~is_known_user & (validation.user_counts() > 0)
    n_only_later = np.count_nonzero(is_only_later)
    if n_only_later:
        logger.info(
            "%s of %s users occur only in the validation part, the latest of training; "
            "`training.refit` (--refit) trains on it",
            f"{n_only_later:,}",
            f"{dataset.n_users:,}",
        )


def check_sizes(n_train: int, n_validation: int) -> None:
    """Raise where carving out a validation part leaves a part empty.

    Args:
        n_train: pairs that are left for training.
        n_validation: pairs of the validation part.
    """
    if n_train == 0 or n_validation == 0:
        raise DataError(
            f"carving out validation leaves {n_train:,} training and {n_validation:,} validation "
            'pairs, which is too little: use `validation="none"` '
            "(on the command line --set data.validation=none, without --refit), or more data"
        )


def _check_sizes(dataset: Dataset) -> None:
    assert dataset.validation is not None
    check_sizes(len(dataset.train), len(dataset.validation))
