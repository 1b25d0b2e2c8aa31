"""What would distort an evaluation: pairs in two parts, users or items first seen in the test."""

import logging
from dataclasses import replace
from typing import Any

import numpy as np

from pslrec.data._dataset import Dataset
from pslrec.data._interactions import Interactions
from pslrec.data._preparation import distinct_pairs, has_repetitions
from pslrec.errors import DataError

logger = logging.getLogger(__name__)


def leaks(dataset: Dataset) -> dict[tuple[str, str], np.ndarray]:
    """A mask of the validation or test pairs for each part and each problem they may have."""
    found = {}
    train = dataset.train
    test = dataset.test
    user_counts = train.user_counts()
    item_counts = train.item_counts()
    repeated = in_both(test, train)
    if dataset.validation is not None:
        validation = dataset.validation
        found["validation", "in training as well"] = in_both(validation, train)
        repeated = repeated | in_both(test, validation)
        # Validation was carved out of training, and may have taken all pairs of an item.
        user_counts = user_counts + validation.user_counts()
        item_counts = item_counts + validation.item_counts()
    found["test", "in training or validation as well"] = repeated
    found["test", "of items that are never trained on"] = item_counts[test.items] == 0
    found["test", "of users that are never trained on"] = user_counts[test.users] == 0
    return found


def check_leaks(dataset: Dataset, origin: str) -> Dataset:
    """The data set itself, or an error that counts the pairs that would distort an evaluation."""
    for (name, problem), mask in leaks(dataset).items():
        if not mask.any():
            continue
        first = dataset.parts()[name].select(np.flatnonzero(mask)[:1])
        user, item = first.to_frame().row(0)[:2]
        count = int(mask.sum())
        pairs = "pairs are" if count > 1 else "pair is"
        raise DataError(
            f"{origin}: {count:,} {name} {pairs} {problem}, "
            f"the first is user `{user}` with item `{item}`; "
            "remove them, or read with `repair=True` (on the command line --repair)"
        )
    return dataset


def drop_leaks(dataset: Dataset) -> Dataset:
    """The data set without the validation and test pairs that `check_leaks` refuses."""
    kept = dataset.parts()
    is_kept = {name: np.ones(len(part), dtype=bool) for name, part in kept.items()}
    for (name, problem), mask in leaks(dataset).items():
        is_kept[name] &= ~mask
        if mask.any():
            logger.info("%d %s pairs were removed: they are %s", mask.sum(), name, problem)
    for name in kept.keys() - {"train"}:
        kept[name] = kept[name].select(is_kept[name])
    if len(kept["test"]) == 0:
        raise DataError(
            "nothing is left of the test part after removing the pairs that are in training, "
            "or that are never trained on"
        )
    return Dataset(kept["train"], kept["test"], kept.get("validation"), name=dataset.name)


def in_both(part: Interactions, other: Interactions) -> np.ndarray:
    """Which pairs of `part` are in `other` too."""
    keys = part.pair_keys()
    known = np.sort(other.pair_keys())
    if len(known) == 0:
        return np.zeros(len(keys), dtype=bool)
    places = np.searchsorted(known, keys)
    # A key beyond the last has its place behind the end.
    places = np.minimum(places, len(known) - 1)
    found: np.ndarray = known[places] == keys
    return found


def merge_repetitions(dataset: Dataset) -> Dataset:
    """The data set with each pair once in every part.

    A part without repetitions stays as it is, in its order.
    """
    merged: dict[str, Any] = {}
    for name, part in dataset.parts().items():
        if not has_repetitions(part):
            continue
        merged[name] = distinct_pairs(part.sorted())
        logger.info(
            "%s pairs of the %s part are %s different ones; repetitions are merged",
            f"{len(part):,}",
            name,
            f"{len(merged[name]):,}",
        )
    if not merged:
        return dataset
    return replace(dataset, **merged)
