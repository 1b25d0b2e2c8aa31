"""The paper's OOD setting: a test part in which all items are about equally popular."""

import random

import numpy as np

from pslrec.data._dataset import Dataset
from pslrec.data._interactions import Interactions
from pslrec.data.splits._base import SPLITS, check_fraction, divide, each_pair_once

# After this many draws in a row that gave nothing, items without pairs to give are put aside. The
# published splits never get there, so they stay as they are.
PATIENCE = 1000


@SPLITS.register("popularity")
def popularity_split(
    interactions: Interactions, *, train_fraction: float = 0.8, seed: int = 0
) -> Dataset:
    """Move pairs to the test part by drawing an item, all equally likely, and one of its users.

    A draw that would take the last training pair of an item is discarded. Training keeps the long
    tail of popularity and the test part has almost none: the distribution shifts. With seed 0 this
    re-derives the published splits.
    """
    check_fraction("train_fraction", train_fraction)
    ordered = each_pair_once(interactions)
    remaining = _positions_by_item(ordered)
    n_test = len(ordered) - int(train_fraction * len(ordered))
    # Every item keeps one pair.
    n_available = len(ordered) - len(remaining)
    n_test = min(n_test, n_available)
    # Not numpy's: the published splits were drawn from this generator.
    generator = random.Random(seed)
    in_test = np.zeros(len(ordered), dtype=bool)
    n_moved = 0
    n_failed = 0
    while n_moved < n_test:
        positions = remaining[generator.randrange(len(remaining))]
        # Drawn even where it is not used, as the published splits did.
        drawn = generator.randrange(len(positions))
        if len(positions) > 1:
            in_test[positions.pop(drawn)] = True
            n_moved += 1
            n_failed = 0
            continue
        n_failed += 1
        if n_failed == PATIENCE:
            # Drawing among the items that have pairs to give is equally likely, and it ends.
            remaining = [positions for positions in remaining if len(positions) > 1]
            n_failed = 0
    return divide(ordered, in_test)


def _positions_by_item(ordered: Interactions) -> list[list[int]]:
    # Items in the order in which they first appear, as in the published splits.
    by_item: dict[int, list[int]] = {}
    for position, item in enumerate(ordered.items.tolist()):
        by_item.setdefault(item, []).append(position)
    return list(by_item.values())
