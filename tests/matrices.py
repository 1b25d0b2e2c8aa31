"""Small data sets written as matrices, for tests."""

import numpy as np

from pslrec.data import Interactions, Vocabulary


def interactions_of(pairs: np.ndarray) -> Interactions:
    """The pairs of row and column that are true; all rows are users and all columns items, numbered from 0."""
    n_users, n_items = pairs.shape
    vocabularies = (
        Vocabulary(np.arange(n_users), kind="user"),
        Vocabulary(np.arange(n_items), kind="item"),
    )
    return Interactions(*np.nonzero(pairs), *vocabularies)
