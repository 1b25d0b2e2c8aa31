"""Where the negatives of users come from."""

from dataclasses import dataclass

import numpy as np

from pslrec.data import Interactions
from pslrec.errors import ConfigError
from pslrec.rows import Rows


@dataclass(frozen=True, eq=False)
class NegativePool:
    """Which items are negatives of which user.

    Args:
        taken: items that are not negatives, by user.
        n_items: size of the catalogue.
        false_negatives: items that are negatives in spite of being liked, by user.
        noise: share of all draws, or of all weight, that goes to the false negatives; at 0 they
            are ignored.
        replacement: whether an item may be drawn twice for a positive.
    """

    taken: Rows
    n_items: int
    false_negatives: Rows | None = None
    noise: float = 0.0
    replacement: bool = True

    @classmethod
    def of(
        cls,
        train: Interactions,
        *,
        false_negatives: Interactions | None = None,
        noise: float = 0.0,
        replacement: bool = True,
        include_positives: bool = False,
    ) -> "NegativePool":
        """The pool of a training set: all items but its positives and the false negatives.

        Args:
            train: the positives.
            false_negatives: pairs that are negatives all the same, for the noise setting.
            noise: as above.
            replacement: as above.
            include_positives: leave the positives among the negatives.

        Raises:
            ConfigError: a user has interacted with every item, so nothing is left to compare with.
        """
        taken = train.rows
        if include_positives:
            taken = Rows.empty(train.n_users)
        false_rows = None
        if false_negatives is not None:
            false_rows = false_negatives.rows
            # A false negative is drawn as such; among the others too, it would come too often.
            taken = taken.merged(false_rows)
        full = np.flatnonzero(taken.lengths >= train.n_items)
        if len(full):
            owner = train.user_vocabulary.ids([int(full[0])])[0]
            raise ConfigError(
                f"user `{owner}` has interacted with every item, so it has no negatives; "
                "leave such users out"
            )
        return cls(taken, train.n_items, false_rows, noise, replacement)
