"""Splits by time: train on the past, test on the future, validate on what comes just before it."""

from dataclasses import replace

import numpy as np

from pslrec.data._dataset import Dataset
from pslrec.data._interactions import Interactions
from pslrec.data.splits._base import (
    SPLITS,
    VALIDATIONS,
    check_fraction,
    divide,
    each_pair_once,
    user_slices,
    validation_count,
)
from pslrec.errors import DataError
from pslrec.seeding import generator


@SPLITS.register("temporal")
def temporal_split(
    interactions: Interactions, *, train_fraction: float = 0.8, seed: int = 0
) -> Dataset:
    """Train on the earliest of all interactions and test on the latest.

    Equal times are put in random order.
    """
    check_fraction("train_fraction", train_fraction)
    ordered = _by_time(each_pair_once(interactions), seed)
    in_test = np.arange(len(ordered)) >= int(train_fraction * len(ordered))
    return divide(ordered, in_test)


@SPLITS.register("temporal-per-user")
def temporal_split_per_user(
    interactions: Interactions, *, train_fraction: float = 0.8, seed: int = 0
) -> Dataset:
    """Train on each user's earliest interactions and test on its latest.

    Equal times are put in random order.
    """
    check_fraction("train_fraction", train_fraction)
    ordered = _by_user_and_time(each_pair_once(interactions), seed)
    in_test = np.zeros(len(ordered), dtype=bool)
    for start, end in user_slices(ordered):
        # At least one for training: the model has to know the user.
        n_train = max(int(train_fraction * (end - start)), 1)
        in_test[start + n_train : end] = True
    return divide(ordered, in_test)


@VALIDATIONS.register("temporal")
def temporal_validation(
    dataset: Dataset,
    *,
    fraction: float,
    n_kept: int,  # noqa: ARG001 - users are not looked at one by one
    seed: int,
) -> Dataset:
    """Validate on the latest of all training pairs.

    Users and items that occur only then are part of it too: no training pair is later than a
    validation pair, and a model that is fitted again on both parts knows all of them. Choices are
    made on those that training knows.
    """
    ordered = _by_time(dataset.train, seed)
    n_validation = int(fraction * len(ordered))
    in_validation = np.arange(len(ordered)) >= len(ordered) - n_validation
    return replace(
        dataset, train=ordered.select(~in_validation), validation=ordered.select(in_validation)
    )


@VALIDATIONS.register("temporal-per-user")
def temporal_validation_per_user(
    dataset: Dataset, *, fraction: float, n_kept: int, seed: int
) -> Dataset:
    """Validate on each user's latest training pairs."""
    ordered = _by_user_and_time(dataset.train, seed)
    in_validation = np.zeros(len(ordered), dtype=bool)
    for start, end in user_slices(ordered):
        n_validation = validation_count(end - start, fraction, n_kept)
        in_validation[end - n_validation : end] = True
    return replace(
        dataset, train=ordered.select(~in_validation), validation=ordered.select(in_validation)
    )


def _by_time(interactions: Interactions, seed: int) -> Interactions:
    if interactions.timestamps is None:
        raise DataError(
            "a temporal split needs timestamps, the interactions have none; "
            "use `iid` or `leave-one-out`"
        )
    ordered = interactions.sorted()
    assert ordered.timestamps is not None
    # After sorting, so that equal times are in the same random order whatever the order of rows.
    ties = generator(seed, "temporal split").permutation(len(ordered))
    return ordered.select(np.lexsort((ties, ordered.timestamps)))


def _by_user_and_time(interactions: Interactions, seed: int) -> Interactions:
    ordered = _by_time(interactions, seed)
    # A stable sort keeps the order of time within each user.
    return ordered.select(np.argsort(ordered.users, kind="stable"))
