"""What is asked of a scorer: which users, which items are hidden from them, which are hits."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from pslrec.checks import one_of
from pslrec.data import Dataset, Interactions
from pslrec.errors import DataError
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
        total = self.users.nbytes + self.popularity.nbytes
        for part in (self.seen, self.relevant):
            total += part.offsets.nbytes + part.items.nbytes
        return total


def ranking_task(dataset: Dataset, *, split: Split, protocol: Protocol) -> RankingTask:
    """The task of one split under one protocol.

    `paper` hides the training items and averages over all users, those without relevant items
    counting 0; `strict` at test hides the validation items too, and averages over the users that
    have relevant items.

    Args:
        dataset: with the part that `split` names.
        split: `test` or `validation`.
        protocol: `paper` or `strict`.
    """
    one_of("split", split, get_args(Split))
    one_of("protocol", protocol, get_args(Protocol))
    is_test = split == "test"
    is_strict = protocol == "strict"
    held_out = dataset.test if is_test else dataset.validation
    if held_out is None:
        raise DataError(
            f"data set `{dataset.name}` has no validation part; carve one out of its training part "
            "first"
        )
    hidden = [dataset.train]
    # At test time the validation items are known, so recommending them again would be a waste.
    if is_test and is_strict and dataset.validation is not None:
        hidden.append(dataset.validation)
    n_held_out = len(held_out)
    if is_test:
        # Pairs of unknown users and items were dropped when the data set was made.
        n_held_out += dataset.n_left_out
    elif is_strict:
        # A split by time has users and items in its validation part that come later, and that no
        # model can rank.
        held_out = held_out.select(_is_known(held_out, dataset.train))
    relevant = RowLists.of(held_out)
    with_relevant = np.flatnonzero(relevant.lengths)
    # A user without relevant items cannot be served well or badly; the paper counts them as 0.
    users = with_relevant if is_strict else np.arange(dataset.n_users)
    evaluated = Evaluated(
        users=len(with_relevant),
        of_users=dataset.n_users,
        pairs=len(relevant.items),
        of_pairs=n_held_out,
    )
    return RankingTask(
        users=users,
        seen=RowLists.of(*hidden),
        relevant=relevant,
        popularity=dataset.train.item_counts(),
        evaluated=evaluated,
    )


def _is_known(part: Interactions, train: Interactions) -> np.ndarray:
    """Which pairs are of a user and an item that are both trained on."""
    known_users = train.user_counts() > 0
    known_items = train.item_counts() > 0
    is_known: np.ndarray = known_users[part.users] & known_items[part.items]
    return is_known
