"""What is asked of a scorer: which users, which items are hidden from them, which are hits."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from pslrec.checks import one_of
from pslrec.data import Dataset, Interactions
from pslrec.errors import DataError
from pslrec.evaluation._evaluated import Evaluated
from pslrec.rows import Rows
from pslrec.seeding import generator

Split = Literal["test", "validation"]
Protocol = Literal["paper", "strict"]


@dataclass(frozen=True, eq=False)
class RankingTask:
    """Users to rank the catalogue for.

    Args:
        users: rows of the users that count in the means.
        seen: items hidden from each user's list, in one or more parts, which are not merged: that
            would copy what may be mapped from files.
        relevant: items that are hits.
        popularity: training interactions of each item.
        evaluated: how many users and pairs that is, out of how many.
    """

    users: np.ndarray
    seen: tuple[Rows, ...]
    relevant: Rows
    popularity: np.ndarray
    evaluated: Evaluated

    @property
    def nbytes(self) -> int:
        """Memory held."""
        held = self.relevant.nbytes + self.users.nbytes + self.popularity.nbytes
        return held + sum(rows.nbytes for rows in self.seen)

    def hidden_from(self, users: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What is hidden from some users, as pairs (position in `users`, item).

        Args:
            users: their rows.
        """
        found = [rows.positions(users) for rows in self.seen]
        positions = np.concatenate([owners for owners, _ in found])
        return positions, np.concatenate([items for _, items in found])


def ranking_task(
    dataset: Dataset,
    *,
    split: Split,
    protocol: Protocol,
    n_users: int | None = None,
    seed: int = 0,
) -> RankingTask:
    """The task of one split under one protocol.

    `paper` hides the training items and averages over all users, those without relevant items
    counting 0; `strict` at test hides the validation items too, and averages over the users that
    have relevant items.

    Args:
        dataset: with the part that `split` names.
        split: `test` or `validation`.
        protocol: `paper` or `strict`.
        n_users: take a sample of so many of the users that count, if there are more.
        seed: of the sample; the same seed gives the same users.
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
    seen = [dataset.train.rows]
    # At test time the validation items are known, so recommending them again would be a waste.
    if is_test and is_strict and dataset.validation is not None:
        seen.append(dataset.validation.rows)
    n_held_out = len(held_out)
    if is_test:
        # Pairs of unknown users and items were dropped when the data set was made.
        n_held_out += dataset.n_left_out
    elif is_strict:
        # A split by time has users and items in its validation part that come later, and that no
        # model can rank.
        held_out = held_out.select(_is_known(held_out, dataset.train))
    relevant = held_out.rows
    with_relevant = np.flatnonzero(relevant.lengths)
    # A user without relevant items cannot be served well or badly; the paper counts them as 0.
    users = with_relevant if is_strict else np.arange(dataset.n_users)
    if n_users is not None and n_users < len(users):
        drawn = generator(seed, "evaluated users").choice(len(users), n_users, replace=False)
        users = users[np.sort(drawn)]
        seen = [rows.only(users) for rows in seen]
        relevant = relevant.only(users)
        with_relevant = np.flatnonzero(relevant.lengths)
    evaluated = Evaluated(
        users=len(with_relevant),
        of_users=dataset.n_users,
        pairs=len(relevant.items),
        of_pairs=n_held_out,
    )
    return RankingTask(
        users=users,
        seen=tuple(seen),
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
