"""Carving validation interactions, by which choices are made, out of the training part."""

import logging
import random
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

ValidationRule = Literal["none", "paper", "fraction"]
# Training pairs that each user keeps: the paper's rule may take a user's only one.
N_KEPT = {"paper": 0, "fraction": 2}


def carve_validation(
    dataset: Dataset, rule: ValidationRule, *, split: str = "iid", seed: int = 2024
) -> Dataset:
    """The data set with a validation part by the rule of this name; one that is there already stays.

    Args:
        dataset: its training part is divided.
        rule: `paper` or `fraction` say how many pairs of each user, `none` carves out nothing.
        split: the split that the data set is of: where it follows time, validation does too.
        seed: of the draw, or of the order of equal times.
    """
    if rule not in get_args(ValidationRule):
        raise DataError(
            f"`validation` must be one of {', '.join(get_args(ValidationRule))}, got `{rule}`"
        )
    if rule == "none" or dataset.validation is not None:
        return dataset
    if split not in VALIDATIONS:
        return (paper_validation if rule == "paper" else fraction_validation)(dataset, seed=seed)
    distinct = replace(dataset, train=each_pair_once(dataset.train))
    carved = _checked(VALIDATIONS[split](distinct, fraction=0.1, n_kept=N_KEPT[rule], seed=seed))
    _check_known(carved)
    return carved


def paper_validation(dataset: Dataset, *, fraction: float = 0.1, seed: int = 2024) -> Dataset:
    """Move `max(floor(fraction * n), 1)` random training items of each user with n of them to validation.

    This is the rule behind the published numbers, drawn from the same generator: seed 2024 re-derives the published
    validation sets, seeds 2025 and on the further folds. A user with a single training item loses it, as there.
    """
    return _drawn(dataset, fraction, seed, n_kept=N_KEPT["paper"])


def fraction_validation(dataset: Dataset, *, fraction: float = 0.1, seed: int = 2024) -> Dataset:
    """Move `floor(fraction * n)` random training items of each user to validation, at least one of those with three or more.

    Every user keeps at least two training items and every item at least one user, so nobody becomes a stranger to the model.
    """
    return _drawn(dataset, fraction, seed, n_kept=N_KEPT["fraction"])


def _drawn(dataset: Dataset, fraction: float, seed: int, *, n_kept: int) -> Dataset:
    check_fraction("fraction", fraction)
    if dataset.validation is not None:
        raise DataError(
            'the data set has a validation part already; use `data.validation = "none"` to keep it'
        )
    ordered = each_pair_once(dataset.train)
    generator = random.Random(seed)  # the published validation sets were drawn from this generator
    chosen = np.zeros(len(ordered), dtype=bool)
    for start, end in user_slices(ordered):
        count = validation_count(end - start, fraction, n_kept)
        if count > 0:
            chosen[generator.sample(range(start, end), count)] = True
    if n_kept:
        chosen &= np.bincount(ordered.items[~chosen], minlength=ordered.n_items)[ordered.items] > 0
    return _checked(
        replace(dataset, train=ordered.select(~chosen), validation=ordered.select(chosen))
    )


def _check_known(dataset: Dataset) -> None:
    """Raise where validation by time has nobody that training knows; tell what only a model fitted on both parts knows."""
    assert dataset.validation is not None
    train, validation = dataset.train, dataset.validation
    known_users, known_items = train.user_counts() > 0, train.item_counts() > 0
    if not (known_users[validation.users] & known_items[validation.items]).any():
        raise DataError(
            f"none of the {len(validation):,} validation pairs, the latest of training, is of a user and an item that come "
            "before; use `data.validation` = none, or the split temporal-per-user"
        )
    only_later = np.flatnonzero(~known_users & (validation.user_counts() > 0))
    if len(only_later):
        logger.info(
            "%s of %s users come only in the validation part, the latest of training; `training.refit` (--refit) trains on it",
            f"{len(only_later):,}",
            f"{dataset.n_users:,}",
        )


def _checked(dataset: Dataset) -> Dataset:
    n_train = len(dataset.train)
    n_validation = 0 if dataset.validation is None else len(dataset.validation)
    if n_train == 0 or n_validation == 0:
        raise DataError(
            f"carving out validation leaves {n_train:,} training and {n_validation:,} validation pairs, which is too "
            'little: use `validation="none"` (on the command line --validation none), or more data'
        )
    return dataset
