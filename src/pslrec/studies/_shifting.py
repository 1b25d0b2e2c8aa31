"""Splits whose test part turns away from popular items, by any degree."""

import numpy as np

from pslrec.data import Dataset, Interactions
from pslrec.data.splits import check_fraction, divide, each_pair_once
from pslrec.errors import ConfigError
from pslrec.seeding import generator

STRONGEST = 3.0


def shifted_split(
    interactions: Interactions, strength: float, *, train_fraction: float = 0.8, seed: int = 0
) -> Dataset:
    """Draw test pairs one after the other, each with a weight of its item's popularity to the power -strength.

    With strength 0 all pairs are alike, and both parts have the same distribution. With 1 all items are alike as long as they
    have pairs to give, as in the paper's OOD setting; above that unpopular items are preferred. Every user and item
    keeps at least one pair in training.

    Args:
        interactions: to be divided.
        strength: from 0 to 3.
        train_fraction: share of the training part.
        seed: the same seed draws alike at every strength, so that only the strength differs.
    """
    check_fraction("train_fraction", train_fraction)
    if not 0 <= strength <= STRONGEST:
        raise ConfigError(
            f"the strength of a shift must be from 0 to {STRONGEST:g}, got {strength}"
        )
    ordered = each_pair_once(interactions)
    weights = ordered.item_counts()[ordered.items] ** -float(strength)
    # The first n arrivals of clocks with these rates are n draws without replacement.
    arrivals = generator(seed, "shifted split").standard_exponential(len(ordered)) / weights
    is_free = np.ones(len(ordered), dtype=bool)
    latest_first = np.argsort(-arrivals, kind="stable")
    for rows in (ordered.users, ordered.items):
        _, first = np.unique(rows[latest_first], return_index=True)
        is_free[latest_first[first]] = False
    n_test = min(len(ordered) - int(train_fraction * len(ordered)), int(is_free.sum()))
    in_test = np.zeros(len(ordered), dtype=bool)
    in_test[np.flatnonzero(is_free)[np.argsort(arrivals[is_free], kind="stable")[:n_test]]] = True
    return divide(ordered, in_test)
