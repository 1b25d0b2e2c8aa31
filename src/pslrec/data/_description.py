"""What a data set looks like in numbers."""

from dataclasses import dataclass

import numpy as np

from pslrec.data._interactions import Interactions


@dataclass(frozen=True)
class Description:
    """Counts and distributions of interactions.

    Args:
        n_users: users with at least one interaction.
        n_items: items with at least one interaction.
        n_interactions: pairs, repeated ones too.
        density: share of the user-item matrix that is filled; a repeated pair counts once.
        history_lengths: interactions per user, ascending.
        item_popularity: interactions per item, descending.
    """

    n_users: int
    n_items: int
    n_interactions: int
    density: float
    history_lengths: np.ndarray
    item_popularity: np.ndarray

    @property
    def head_share(self) -> float:
        """Share of all interactions that goes to the most popular tenth of the items."""
        n_head = max(self.n_items // 10, 1)
        return float(self.item_popularity[:n_head].sum() / self.n_interactions)

    @property
    def gini(self) -> float:
        """The Gini coefficient of popularity: 0 if all items are equal, near 1 if one takes all."""
        # Popularity is descending and the formula wants ascending ranks, so they count down.
        ranks = np.arange(self.n_items, 0, -1)
        weighted = 2 * (ranks * self.item_popularity).sum() / self.item_popularity.sum()
        return float((weighted - self.n_items - 1) / self.n_items)

    @property
    def tail_items(self) -> int:
        """How many of the least popular items together get a fifth of the interactions."""
        cumulative = np.cumsum(self.item_popularity[::-1])
        return int(np.searchsorted(cumulative, 0.2 * self.n_interactions, side="right"))


def describe(interactions: Interactions) -> Description:
    """Describe interactions.

    >>> summary = describe(Interactions.from_ids(["ann", "ann", "bob"], ["tea", "milk", "tea"]))
    >>> summary.n_users, summary.n_items, summary.density
    (2, 2, 0.75)
    """
    history_lengths = np.sort(interactions.user_counts())
    item_popularity = np.sort(interactions.item_counts())[::-1]
    # A vocabulary may hold users and items that do not occur here, in one part of a split.
    history_lengths = history_lengths[history_lengths > 0]
    item_popularity = item_popularity[item_popularity > 0]
    n_users = len(history_lengths)
    n_items = len(item_popularity)
    keys = np.sort(interactions.pair_keys())
    n_pairs = int(np.count_nonzero(np.diff(keys, prepend=-1)))
    density = 0.0
    if n_users:
        density = n_pairs / (n_users * n_items)
    return Description(
        n_users, n_items, len(interactions), density, history_lengths, item_popularity
    )
