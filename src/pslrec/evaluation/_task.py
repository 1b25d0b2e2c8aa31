"""What is asked of a scorer: which users, which items their lists must not hold, which ones are hits."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from pslrec.data import Dataset, Interactions
from pslrec.errors import ConfigError, DataError
from pslrec.evaluation._evaluated import Evaluated

Split = Literal["test", "validation"]
Protocol = Literal["paper", "strict"]


@dataclass(frozen=True, eq=False)
class RowLists:
    """A list of item rows for each user, sorted and without repeats (a matrix in CSR form).

    Args:
        offsets: where each user's list starts in `items`; one entry more than there are users.
        items: the lists, one after the other.
    """

    offsets: np.ndarray
    items: np.ndarray

    @classmethod
    def of(cls, *parts: Interactions) -> "RowLists":
        """The items of each user in any of the parts."""
        # Sorting and comparing neighbours is many times faster here than `np.unique`, which hashes.
        keys = np.sort(np.concatenate([part.pair_keys() for part in parts]))
        keys = keys[np.diff(keys, prepend=-1) > 0]
        n_users, n_items = parts[0].n_users, parts[0].n_items
        users, items = np.divmod(keys, n_items)
        offsets = np.zeros(n_users + 1, dtype=np.int64)
        np.cumsum(np.bincount(users, minlength=n_users), out=offsets[1:])
        return cls(offsets, items.astype(np.int32))

    @property
    def lengths(self) -> np.ndarray:
        """Length of each user's list."""
        return np.diff(self.offsets)

    def positions(self, users: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The lists of some users as (position of the user in `users`, item) pairs."""
        lengths = self.lengths[users]
        rows = np.repeat(np.arange(len(users)), lengths)
        # Counting on from each list's start, without a loop over users.
        shift = np.repeat(self.offsets[users] - (np.cumsum(lengths) - lengths), lengths)
        return rows, self.items[np.arange(len(rows)) + shift].astype(np.int64)


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
    seen: RowLists
    relevant: RowLists
    popularity: np.ndarray
    evaluated: Evaluated

    @property
    def nbytes(self) -> int:
        """Memory held."""
        lists = self.seen, self.relevant
        return (
            sum(part.offsets.nbytes + part.items.nbytes for part in lists)
            + self.users.nbytes
            + self.popularity.nbytes
        )


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
    hidden = [dataset.train]
    if split == "test" and protocol == "strict" and dataset.validation is not None:
        hidden.append(dataset.validation)
    n_set_apart = len(judged)
    if split == "test":
        n_set_apart += dataset.n_left_out
    elif protocol == "strict":
        judged = judged.select(_is_known(judged, dataset.train))
    relevant = RowLists.of(judged)
    with_relevant = np.flatnonzero(relevant.lengths)
    users = np.arange(dataset.n_users) if protocol == "paper" else with_relevant
    evaluated = Evaluated(len(with_relevant), dataset.n_users, len(relevant.items), n_set_apart)
    return RankingTask(
        users, RowLists.of(*hidden), relevant, dataset.train.item_counts(), evaluated
    )


def _is_known(part: Interactions, train: Interactions) -> np.ndarray:
    """Which pairs are of a user and an item that are both trained on."""
    known_users = train.user_counts() > 0
    known_items = train.item_counts() > 0
    is_known: np.ndarray = known_users[part.users] & known_items[part.items]
    return is_known
