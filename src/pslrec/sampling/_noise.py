"""The paper's noise setting: positives that come back as negatives."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from pslrec.data import Interactions
from pslrec.errors import ConfigError
from pslrec.seeding import generator


@dataclass(frozen=True)
class FalseNegatives:
    """Training pairs declared false negatives, and what is left to train on.

    Args:
        train: the positives.
        false_negatives: the pairs that are drawn as negatives in spite of being liked.
    """

    train: Interactions
    false_negatives: Interactions


def plant_false_negatives(
    train: Interactions,
    *,
    fraction: float = 0.1,
    scope: Literal["per-user", "global"] = "per-user",
    keep_positives: bool = False,
    seed: int = 0,
) -> FalseNegatives:
    """Declare a random share of the training pairs false negatives.

    Args:
        train: the training pairs, after validation was carved out.
        fraction: which share; the paper declares a tenth.
        scope: draw a share of each user's pairs (rounded down, but at least one of those with two
            or more), or among all pairs. The paper does not say; the former comes closest to its
            numbers.
        keep_positives: whether they stay positives as well. The paper does not say; removing them
            comes closest to its numbers.
        seed: of the draw.
    """
    if not 0 < fraction < 1:
        raise ConfigError(f"`noise.fraction` must lie between 0 and 1, got {fraction}")
    # The draw must not depend on the order of the file.
    ordered = train.sorted()
    order = generator(seed, "false negatives").permutation(len(ordered))
    chosen = np.zeros(len(ordered), dtype=bool)
    if scope == "global":
        chosen[order[: int(fraction * len(ordered))]] = True
    else:
        # A stable sort by user keeps the random order within each user, whose first are taken.
        shuffled = order[np.argsort(ordered.users[order], kind="stable")]
        counts = ordered.user_counts()
        n_before = np.cumsum(counts) - counts
        rank = np.arange(len(ordered)) - np.repeat(n_before, counts)
        rounded_down = (fraction * counts).astype(np.int64)
        # A user keeps a positive at least, or there would be nothing to train it on.
        share = np.minimum(np.maximum(rounded_down, 1), counts - 1)
        is_first = rank < share[ordered.users[shuffled]]
        chosen[shuffled[is_first]] = True
    kept = ordered
    if not keep_positives:
        kept = ordered.select(~chosen)
    return FalseNegatives(kept, ordered.select(chosen))
