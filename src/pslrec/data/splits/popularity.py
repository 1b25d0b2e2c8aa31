"""The paper's OOD setting: a test part in which all items are about equally popular."""

import random

import numpy as np

from pslrec.data._dataset import Dataset
from pslrec.data._interactions import Interactions
from pslrec.data.splits._base import SPLITS, check_fraction, divide, each_pair_once

# Draws in vain in a row after which items without pairs to give are put aside; the published splits never come to it.
PATIENCE = 1000


@SPLITS.register("popularity")
def popularity_split(
    interactions: Interactions, *, train_fraction: float = 0.8, seed: int = 0
) -> Dataset:
    """Move pairs to the test part by drawing an item, each as likely as any other, and one of its users.

    A draw that would take the last training pair of an item is thrown away. Training keeps the long tail of popularity,
    the test part has almost none: the distribution shifts. With seed 0 this re-derives the published splits.
    """
    check_fraction("train_fraction", train_fraction)
    ordered = each_pair_once(interactions)
    remaining = _positions_by_item(ordered)
    n_test = len(ordered) - int(train_fraction * len(ordered))
    n_test = min(n_test, sum(len(positions) - 1 for positions in remaining))
    generator = random.Random(seed)  # the published splits were drawn from this generator
    in_test = np.zeros(len(ordered), dtype=bool)
    moved = in_vain = 0
    while moved < n_test:
        positions = remaining[generator.randrange(len(remaining))]
        drawn = generator.randrange(len(positions))
        if len(positions) > 1:
            in_test[positions.pop(drawn)] = True
            moved, in_vain = moved + 1, 0
        elif (in_vain := in_vain + 1) == PATIENCE:
            # Where hardly any item has pairs to give, draw among those alone: as likely, and it comes to an end.
            remaining, in_vain = [positions for positions in remaining if len(positions) > 1], 0
    return divide(ordered, in_test)


def _positions_by_item(ordered: Interactions) -> list[list[int]]:
    # Items in the order in which they first appear, as the published splits have them.
    by_item: dict[int, list[int]] = {}
    for position, item in enumerate(ordered.items.tolist()):
        by_item.setdefault(item, []).append(position)
    return list(by_item.values())
