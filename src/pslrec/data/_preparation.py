"""From a raw log to what models are trained on: rating threshold, duplicates, k-core."""

import logging
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from pslrec.data._interactions import Interactions
from pslrec.data._vocabulary import Vocabulary
from pslrec.errors import DataError

logger = logging.getLogger(__name__)

Weighting = Literal["none", "count", "rating"]
# Most distinct values of a rating scale: 0 to 10 in halves.
MOST_RATINGS = 21


@dataclass(frozen=True)
class Preparation:
    """What to keep of a log.

    Args:
        minimum_rating: interactions rated lower are removed; `None` keeps all.
        k_core: users and items with fewer interactions than this are removed, again and again until
            all that are left have as many; 0 keeps all.
        weights: the confidence in a pair: always 1, how often it was seen, or the sum of its
            ratings.
    """

    minimum_rating: float | None = None
    k_core: int = 0
    weights: Weighting = "none"


PAPER = Preparation(minimum_rating=3, k_core=10)


def prepare(interactions: Interactions, preparation: Preparation = PAPER) -> Interactions:
    """Filter a log as the paper does: ratings of at least 3, each pair once, the 10-core.

    Of a repeated pair the first one (by time where it is known) is kept. The result is sorted by
    user and item. Its vocabularies hold only the users and items that are left, in the same order
    as before.

    Args:
        interactions: a log, which may repeat pairs.
        preparation: what to keep; as in the paper by default.

    >>> log = Interactions.from_ids(["ann", "ann", "bob", "bob", "bob"], [1, 2, 1, 2, 3])
    >>> prepare(log, Preparation(k_core=2)).to_frame().rows()
    [('ann', 1), ('ann', 2), ('bob', 1), ('bob', 2)]
    """
    if preparation.k_core < 0:
        raise DataError(f"`k_core` must not be negative, got {preparation.k_core}")
    if preparation.weights not in get_args(Weighting):
        allowed = ", ".join(get_args(Weighting))
        raise DataError(f"`weights` must be one of {allowed}, got `{preparation.weights}`")
    if len(interactions) == 0:
        raise DataError("there are no interactions to prepare")
    if preparation.weights == "rating" and interactions.ratings is None:
        raise DataError(
            "`weights` cannot be `rating`, the interactions have no ratings; use `count` or `none`"
        )
    liked = _rated(interactions, preparation.minimum_rating)
    # Repeated pairs only make a core larger: whatever is outside of it with them is outside without
    # them, and need not be sorted. Of a large log this removes most.
    inside = k_core_mask(liked, preparation.k_core)
    if not inside.any():
        raise DataError(_why_empty(liked, preparation.k_core))
    distinct = distinct_pairs(_selected(liked, inside), preparation.weights)
    # The core of the distinct pairs may be smaller still.
    kept = k_core_mask(distinct, preparation.k_core)
    if not kept.any():
        raise DataError(_why_empty(liked, preparation.k_core))
    return compact(_selected(distinct, kept))


def disliked_pairs(
    log: Interactions, prepared: Interactions, minimum_rating: float | None
) -> Interactions | None:
    """The pairs of users and items that are left whose rating was too low; `None` without ratings.

    Args:
        log: before it was prepared.
        prepared: what `prepare` made of it.
        minimum_rating: by which it was prepared.

    >>> log = Interactions.from_ids(["ann", "ann", "bob"], [1, 2, 1], ratings=[5.0, 1.0, 4.0])
    >>> prepared = prepare(log, Preparation(minimum_rating=3))
    >>> disliked_pairs(log, prepared, 3)  # item 2 is not left
    Interactions(0 pairs of 2 users and 1 items)
    """
    if minimum_rating is None or log.ratings is None:
        return None
    low = log.select(log.ratings < minimum_rating)
    users = _rows_left(log.user_vocabulary, prepared.user_vocabulary)[low.users]
    items = _rows_left(log.item_vocabulary, prepared.item_vocabulary)[low.items]
    is_left = (users >= 0) & (items >= 0)
    pairs = Interactions(
        users[is_left],
        items[is_left],
        prepared.user_vocabulary,
        prepared.item_vocabulary,
    )
    return distinct_pairs(pairs.sorted())


def _rows_left(before: Vocabulary, after: Vocabulary) -> np.ndarray:
    """By row of a vocabulary the row in what is left of it, in the same order; -1 if it is gone."""
    is_left = before.series.is_in(after.series.implode()).to_numpy()
    rows = np.full(len(before), -1, dtype=np.int64)
    rows[is_left] = np.arange(len(after))
    return rows


def _selected(interactions: Interactions, mask: np.ndarray) -> Interactions:
    # Copying all columns can be saved where nothing is left out.
    if mask.all():
        return interactions
    return interactions.select(mask)


def _rated(interactions: Interactions, minimum_rating: float | None) -> Interactions:
    if minimum_rating is None or interactions.ratings is None:
        return interactions
    kept = interactions.ratings >= minimum_rating
    if not kept.any():
        highest = interactions.ratings.max()
        raise DataError(
            f"no interaction has a rating of at least {minimum_rating:g}, "
            f"the highest is {highest:g}"
        )
    return _selected(interactions, kept)


def warn_of_low_ratings(interactions: Interactions) -> None:
    """Say that low ratings will count as interactions like any other, where there are some.

    Training knows pairs, not how much they were liked. Low ratings are those below the middle of
    the scale that the log itself shows. More distinct values than a scale has are taken for counts,
    such as plays; a scale that begins in its upper half has lost its low ratings already.

    Args:
        interactions: a log of which nothing is left out by rating.
    """
    ratings = interactions.ratings
    if ratings is None or len(ratings) == 0 or len(np.unique(ratings)) > MOST_RATINGS:
        return
    lowest = ratings.min()
    highest = ratings.max()
    if lowest >= highest / 2:
        return
    is_low = ratings < (lowest + highest) / 2
    enough = ratings[~is_low].min()
    logger.warning(
        "ratings go from %g to %g, and all %s interactions count alike, including the %.1f %% rated "
        "below %g; `minimum_rating=%g` (on the command line `--set data.minimum_rating=%g`) leaves "
        "these out, and %g keeps all without this warning",
        lowest,
        highest,
        f"{len(ratings):,}",
        100 * is_low.mean(),
        enough,
        enough,
        enough,
        lowest,
    )


def has_repetitions(interactions: Interactions) -> bool:
    """Whether a pair occurs more than once."""
    keys = np.sort(interactions.pair_keys())
    return bool((keys[1:] == keys[:-1]).any())


def distinct_pairs(interactions: Interactions, weights: Weighting = "none") -> Interactions:
    """Each pair once, sorted by user and item.

    Of a repeated pair the earliest is kept; without times, the one that comes first in the log.
    Weights add up.

    Args:
        interactions: a log, which may repeat pairs.
        weights: as in `Preparation`.

    >>> distinct_pairs(Interactions.from_ids(["ann", "ann", "bob"], [1, 1, 2])).to_frame().rows()
    [('ann', 1), ('bob', 2)]
    """
    keys = interactions.pair_keys()
    carries_columns = interactions.ratings is not None or interactions.timestamps is not None
    if not carries_columns and interactions.weights is None and weights == "none":
        # A pair has nothing but its key, and sorting keys takes half the time of sorting positions.
        keys.sort()
        keys = keys[_starts(keys)]
        users, items = np.divmod(keys, interactions.n_items)
        return Interactions(
            users, items, interactions.user_vocabulary, interactions.item_vocabulary
        )
    order = _stable_order(keys, interactions.n_users * interactions.n_items)
    keys = keys[order]
    starts = _starts(keys)
    if interactions.timestamps is not None:
        order = _earliest_first(order, keys, starts, interactions.timestamps)
    distinct = interactions.select(order[starts])
    return _weighted(interactions, distinct, order, starts, weights)


def _stable_order(keys: np.ndarray, bound: int) -> np.ndarray:
    # Sorting numbers is several times faster than sorting positions. Where 63 bits can hold both a
    # key (below `bound`) and its position, the position goes into the low bits, and also makes the
    # order stable.
    bits = len(keys).bit_length()
    if bound.bit_length() + bits > 63:
        return np.argsort(keys, kind="stable")
    packed = (keys << bits) | np.arange(len(keys))
    packed.sort()
    return packed & ((1 << bits) - 1)


def _earliest_first(
    order: np.ndarray, sorted_keys: np.ndarray, starts: np.ndarray, timestamps: np.ndarray
) -> np.ndarray:
    # Most pairs occur once and are in their place already, so only the others are sorted by time.
    repeated = ~starts
    repeated[:-1] |= ~starts[1:]
    places = np.flatnonzero(repeated)
    chosen = order[places]
    order[places] = chosen[np.lexsort((timestamps[chosen], sorted_keys[places]))]
    return order


def _weighted(
    interactions: Interactions,
    distinct: Interactions,
    order: np.ndarray,
    starts: np.ndarray,
    weights: Weighting,
) -> Interactions:
    if weights == "rating":
        assert interactions.ratings is not None
        values = interactions.ratings
    elif interactions.weights is not None:
        values = interactions.weights
    elif weights == "count":
        values = np.ones(len(interactions), dtype=np.float32)
    else:
        return distinct
    # In double precision: a float32 sum stops counting at 2^24.
    sums = np.add.reduceat(values[order].astype(np.float64), np.flatnonzero(starts))
    return Interactions(
        distinct.users,
        distinct.items,
        distinct.user_vocabulary,
        distinct.item_vocabulary,
        distinct.ratings,
        distinct.timestamps,
        sums,
    )


def _starts(sorted_keys: np.ndarray) -> np.ndarray:
    starts = np.ones(len(sorted_keys), dtype=bool)
    np.not_equal(sorted_keys[1:], sorted_keys[:-1], out=starts[1:])
    return starts


def k_core_mask(interactions: Interactions, k: int) -> np.ndarray:
    """Which interactions belong to the k-core.

    This is the largest part in which every user and every item has at least k interactions.
    """
    users = interactions.users
    items = interactions.items
    user_counts = interactions.user_counts()
    item_counts = interactions.item_counts()
    inside = np.ones(len(interactions), dtype=bool)
    while True:
        # Counts only fall, so an interaction that has left never comes back.
        stays = (user_counts >= k)[users]
        stays &= (item_counts >= k)[items]
        left = np.flatnonzero(inside != stays)
        if len(left) == 0:
            return inside
        inside = stays
        # Only what left in this round is counted, which is little after the first rounds.
        user_counts -= np.bincount(users[left], minlength=len(user_counts))
        item_counts -= np.bincount(items[left], minlength=len(item_counts))


def compact(interactions: Interactions) -> Interactions:
    """The same interactions over vocabularies that hold only the users and items that occur."""
    user_rows = np.flatnonzero(interactions.user_counts())
    item_rows = np.flatnonzero(interactions.item_counts())
    if len(user_rows) == interactions.n_users and len(item_rows) == interactions.n_items:
        return interactions
    # Entries of rows that do not occur are never looked up.
    new_user = np.zeros(interactions.n_users, dtype=np.int32)
    new_user[user_rows] = np.arange(len(user_rows), dtype=np.int32)
    new_item = np.zeros(interactions.n_items, dtype=np.int32)
    new_item[item_rows] = np.arange(len(item_rows), dtype=np.int32)
    return Interactions(
        new_user[interactions.users],
        new_item[interactions.items],
        interactions.user_vocabulary.select(user_rows),
        interactions.item_vocabulary.select(item_rows),
        interactions.ratings,
        interactions.timestamps,
        interactions.weights,
    )


def _why_empty(interactions: Interactions, k: int) -> str:
    distinct = distinct_pairs(interactions)
    # A core contains every core of higher k, so the largest k whose core is not empty is found by
    # bisection: the core of `largest` is not empty, the core of `empty` is.
    largest = 1
    empty = min(k, int(distinct.user_counts().max()) + 1)
    while empty - largest > 1:
        middle = (largest + empty) // 2
        if k_core_mask(distinct, middle).any():
            largest = middle
        else:
            empty = middle
    return (
        f"nothing is left of {len(distinct):,} interactions in the {k}-core; "
        f"the largest core that is not empty is {largest}: "
        "lower `k_core` (on the command line --k-core)"
    )
