"""What a data set looks like in numbers."""

from dataclasses import dataclass

import numpy as np

from pslrec.data._interactions import Interactions
from pslrec.data._preparation import distinct_pairs


@dataclass(frozen=True)
class Description:
    """Counts and distributions of interactions.

    Args:
        n_users: users with at least one interaction.
        n_items: items with at least one interaction.
        n_interactions: all of them, repeated ones too.
        n_pairs: of a user and an item, each counted once, as in all that follows.
        density: share of the user-item matrix that is filled.
        history_lengths: items per user, ascending.
        item_popularity: users per item, descending.
    """

    n_users: int
    n_items: int
    n_interactions: int
    n_pairs: int
    density: float
    history_lengths: np.ndarray
    item_popularity: np.ndarray

    @property
    def head_share(self) -> float:
        """Share of all pairs that goes to the most popular tenth of the items."""
        n_head = max(self.n_items // 10, 1)
        return float(self.item_popularity[:n_head].sum() / self.n_pairs)

    @property
    def gini(self) -> float:
        """The Gini coefficient of popularity: 0 if all items are equal, near 1 if one takes all."""
        # Popularity is descending and the formula wants ascending ranks, so they count down.
        ranks = np.arange(self.n_items, 0, -1)
        weighted = 2 * (ranks * self.item_popularity).sum() / self.item_popularity.sum()
        return float((weighted - self.n_items - 1) / self.n_items)

    @property
    def tail_items(self) -> int:
        """How many of the least popular items together get a fifth of the pairs."""
        cumulative = np.cumsum(self.item_popularity[::-1])
        return int(np.searchsorted(cumulative, 0.2 * self.n_pairs, side="right"))


def describe(interactions: Interactions) -> Description:
    """Describe interactions.

    >>> summary = describe(Interactions.from_ids(["ann", "ann", "bob"], ["tea", "milk", "tea"]))
    >>> summary.n_users, summary.n_items, summary.density
    (2, 2, 0.75)
    """
    # Who has the same item ten times has one item.
    pairs = distinct_pairs(interactions)
    history_lengths = np.sort(pairs.user_counts())
    item_popularity = np.sort(pairs.item_counts())[::-1]
    # A vocabulary may hold users and items that do not occur here, in one part of a split.
    history_lengths = history_lengths[history_lengths > 0]
    item_popularity = item_popularity[item_popularity > 0]
    n_users = len(history_lengths)
    n_items = len(item_popularity)
    density = 0.0
    if n_users:
        density = len(pairs) / (n_users * n_items)
    return Description(
        n_users,
        n_items,
        len(interactions),
        len(pairs),
        density,
        history_lengths,
        item_popularity,
    )
