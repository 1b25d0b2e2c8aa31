"""What would spoil an evaluation: pairs that are in two parts, users or items that were never seen before the test."""

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
    """By part and problem: a mask of the validation or test pairs that have it.

    An item that training and validation share out so that validation has all of it is not held against the test.
    """
    found = {}
    if dataset.validation is not None:
        found["validation", "in training as well"] = in_both(dataset.validation, dataset.train)
    seen = {"users": dataset.train.user_counts(), "items": dataset.train.item_counts()}
    repeated = in_both(dataset.test, dataset.train)
    if dataset.validation is not None:
        repeated = repeated | in_both(dataset.test, dataset.validation)
        seen["users"] = seen["users"] + dataset.validation.user_counts()
        seen["items"] = seen["items"] + dataset.validation.item_counts()
    found["test", "in training or validation as well"] = repeated
    found["test", "of items that are never trained on"] = seen["items"][dataset.test.items] == 0
    found["test", "of users that are never trained on"] = seen["users"][dataset.test.users] == 0
    return found


def check_leaks(dataset: Dataset, origin: str) -> Dataset:
    """The data set itself, or an error that counts what would spoil an evaluation."""
    for (name, problem), mask in leaks(dataset).items():
        if mask.any():
            user, item = (
                dataset.parts()[name].select(mask).select(np.array([0])).to_frame().row(0)[:2]
            )
            count = int(mask.sum())
            raise DataError(
                f"{origin}: {count:,} {name} pair{'s are' if count > 1 else ' is'} {problem}, the first is user `{user}` with "
                f"item `{item}`; remove them, or read with `repair=True` (on the command line --repair)"
            )
    return dataset


def drop_leaks(dataset: Dataset) -> Dataset:
    """The data set without the validation and test pairs that `check_leaks` refuses."""
    kept = dataset.parts()
    for name in kept.keys() - {"train"}:
        masks = {problem: mask for (part, problem), mask in leaks(dataset).items() if part == name}
        for problem, mask in masks.items():
            if mask.any():
                logger.info("%d %s pairs were removed: they are %s", mask.sum(), name, problem)
        kept[name] = kept[name].select(~np.logical_or.reduce(list(masks.values())))
    if len(kept["test"]) == 0:
        raise DataError(
            "nothing is left of the test part once what is in training, or never trained on, is removed"
        )
    return Dataset(kept["train"], kept["test"], kept.get("validation"), name=dataset.name)


def in_both(part: Interactions, other: Interactions) -> np.ndarray:
    """Which pairs of `part` are in `other` too."""
    keys, known = part.pair_keys(), np.sort(other.pair_keys())
    if len(known) == 0:
        return np.zeros(len(keys), dtype=bool)
    places = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    found: np.ndarray = known[places] == keys
    return found


def merge_repetitions(dataset: Dataset) -> Dataset:
    """The data set with each pair once in every part; a part without repetitions stays as it is, in its order."""
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
    return replace(dataset, **merged) if merged else dataset
