"""What is asked of a scorer: which users, which items their lists must not hold, which ones are hits."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from pslrec.data import Dataset, Interactions
from pslrec.errors import ConfigError, DataError
from pslrec.evaluation._evaluated import Evaluated
from pslrec.rows import Rows

Split = Literal["test", "validation"]
Protocol = Literal["paper", "strict"]


@dataclass(frozen=True, eq=False)
class RankingTask:
    """Users to rank the catalogue for.

    Args:
        users: rows of the users that count in the means.
        seen: items hidden from each user's list.
        relevant: items that are hits.
        popularity: training interactions of each item.
        evaluated: how many users and pairs that is, out of how many.
    """

    users: np.ndarray
    seen: Rows
    relevant: Rows
    popularity: np.ndarray
    evaluated: Evaluated

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return self.seen.nbytes + self.relevant.nbytes + self.users.nbytes + self.popularity.nbytes


def ranking_task(dataset: Dataset, *, split: Split, protocol: Protocol) -> RankingTask:
    """The task of one split under one protocol.

    `paper` hides the training items and averages over all users, those without relevant items counting 0;
    `strict` at test hides the validation items too, and averages over the users that have relevant items. On validation it
    looks for nothing that training does not know: a split by time has users and items there that come later.
    """
    if split not in get_args(Split):
        raise ConfigError(f"`split` must be one of {', '.join(get_args(Split))}, got {split!r}")
    if protocol not in get_args(Protocol):
        raise ConfigError(
            f"`protocol` must be one of {', '.join(get_args(Protocol))}, got {protocol!r}"
        )
    judged = dataset.test if split == "test" else dataset.validation
    if judged is None:
        raise DataError(
            f"data set `{dataset.name}` has no validation part; carve one out of its training part first"
        )
    seen = dataset.train.rows
    if split == "test" and protocol == "strict" and dataset.validation is not None:
        seen = seen.merged(dataset.validation.rows)
    n_set_apart = len(judged)
    if split == "test":
        n_set_apart += dataset.n_left_out
    elif protocol == "strict":
        judged = judged.select(_is_known(judged, dataset.train))
    relevant = judged.rows
    with_relevant = np.flatnonzero(relevant.lengths)
    users = np.arange(dataset.n_users) if protocol == "paper" else with_relevant
    evaluated = Evaluated(len(with_relevant), dataset.n_users, len(relevant.items), n_set_apart)
    return RankingTask(users, seen, relevant, dataset.train.item_counts(), evaluated)


def _is_known(part: Interactions, train: Interactions) -> np.ndarray:
    """Which pairs are of a user and an item that are both trained on."""
    known_users = train.user_counts() > 0
    known_items = train.item_counts() > 0
    is_known: np.ndarray = known_users[part.users] & known_items[part.items]
    return is_known
