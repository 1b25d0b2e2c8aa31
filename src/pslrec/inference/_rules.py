"""Rules about what may be recommended: lists of ids, conditions on an item table, limits."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pslrec.checks import whole_number
from pslrec.data import Vocabulary, find_rows
from pslrec.data.items import ItemTable
from pslrec.errors import ConfigError
from pslrec.inference._limits import CategoryLimit
from pslrec.rows import Rows

UNKNOWN_HINT = "; it was not in the training data: leave it out, or skip unknown ids"
# Copying the vectors of the allowed items, in order to score only them, pays if it saves so many
# products for each vector that it copies, and so many at all.
PRODUCTS_PER_COPY = 12
LEAST_SAVED = 10_000


@dataclass(frozen=True, eq=False)
class RowRules:
    """Rules in row numbers of a model, ready to be applied.

    Args:
        forbidden: true for each item that may be in no list; `None` forbids none.
        hidden: items to leave out, one list per user that is asked for.
        limits: how many items of a category a list may hold.
    """

    forbidden: Tensor | None = None
    hidden: Rows | None = None
    limits: tuple[CategoryLimit, ...] = ()

    def few_allowed(self, n_lists: int) -> Tensor | None:
        """Rows of the allowed items, if they are so few that only they should be scored.

        Args:
            n_lists: how many lists are wanted.
        """
        if self.forbidden is None:
            return None
        n_forbidden = self._n_forbidden
        n_allowed = len(self.forbidden) - n_forbidden
        if n_lists * n_forbidden < PRODUCTS_PER_COPY * n_allowed + LEAST_SAVED:
            return None
        return self._allowed

    # Both are kept, since a service applies the same rules to many requests.
    @cached_property
    def _n_forbidden(self) -> int:
        assert self.forbidden is not None
        return int(np.count_nonzero(self.forbidden.numpy()))

    @cached_property
    def _allowed(self) -> Tensor:
        assert self.forbidden is not None
        return (~self.forbidden).nonzero().flatten()

    def among(self, chosen: Tensor) -> "RowRules":
        """The same rules where only some items are ranked.

        Args:
            chosen: rows of these items; their places in this list become the new rows, except in
                `hidden`, which stays as it is.
        """
        forbidden = None
        if self.forbidden is not None:
            forbidden = self.forbidden[chosen]
        limits = []
        for limit in self.limits:
            limits.append(CategoryLimit(limit.categories[chosen.numpy()], limit.most))
        return RowRules(forbidden, self.hidden, tuple(limits))


NO_RULES = RowRules()


@dataclass(frozen=True)
class Rules:
    """What may be recommended, in external ids. All rules hold at once.

    Args:
        items: only these items may be recommended; all by default.
        exclude: these items may not.
        exclude_by_user: items that may not be recommended to a user, by user.
        where: a condition on the item table, such as `genre == "Comedy" and year >= 1990`.
        at_most: how many items with the same value a list may hold, by column of the item table:
            `{"genre": 2}`. Items without a value are not limited.
        skip_unknown: leave out ids that the model does not know instead of raising.
    """

    items: Collection[Any] | None = None
    exclude: Collection[Any] = ()
    exclude_by_user: Mapping[Any, Collection[Any]] = field(default_factory=dict)
    where: str | None = None
    at_most: Mapping[str, int] = field(default_factory=dict)
    skip_unknown: bool = False

    def in_rows(
        self, items: Vocabulary, table: ItemTable | None = None, *, hidden: Rows | None = None
    ) -> RowRules:
        """The rules for a model.

        Args:
            items: ids of the model's items.
            table: the item table, in the row order of the model.
            hidden: what `hidden_from` returned for the users that are asked for.

        >>> items = Vocabulary(["tea", "milk", "rum"], kind="item")
        >>> Rules(exclude=["rum"]).in_rows(items).forbidden.tolist()
        [False, False, True]
        """
        forbidden = None
        mask = self._forbidden(items, table)
        if mask is not None:
            forbidden = torch.from_numpy(mask)
        return RowRules(forbidden, hidden, self._limits(table))

    def _forbidden(self, items: Vocabulary, table: ItemTable | None) -> np.ndarray | None:
        """True for each item that may be in no list; `None` if no rule is about that."""
        # Rules that were not given cost nothing: a request takes less than a millisecond.
        forbidden = None
        if self.where is not None:
            forbidden = ~_needed(table, "where").where(self.where)
        if self.items is not None:
            others = np.ones(len(items), dtype=bool)
            others[self._rows(self.items, items)] = False
            if forbidden is not None:
                others |= forbidden
            forbidden = others
        if len(self.exclude):
            if forbidden is None:
                forbidden = np.zeros(len(items), dtype=bool)
            forbidden[self._rows(self.exclude, items)] = True
        return forbidden

    def hidden_from(self, users: Sequence[Any], items: Vocabulary) -> Rows | None:
        """What each of some users may not get; `None` if there are no such rules.

        Args:
            users: keys of `exclude_by_user`, in the order of the lists.
            items: ids of the model's items.
        """
        if not self.exclude_by_user:
            return None
        lists = []
        for user in users:
            lists.append(self._rows(self.exclude_by_user.get(user, ()), items))
        return Rows.from_lists(lists)

    def by_row(self, users: Vocabulary) -> "Rules":
        """The same rules with users of the model by their rows in `exclude_by_user`.

        Args:
            users: ids of the model's users; text will do where they are numbers.
        """
        by_row = {}
        for user, excluded in self.exclude_by_user.items():
            for row in find_rows([user], users, skip_unknown=self.skip_unknown).rows:
                by_row[row] = excluded
        return Rules(self.items, self.exclude, by_row, self.where, self.at_most, self.skip_unknown)

    def _rows(self, ids: Collection[Any], items: Vocabulary) -> list[int]:
        return find_rows(ids, items, skip_unknown=self.skip_unknown, hint=UNKNOWN_HINT).rows

    def _limits(self, table: ItemTable | None) -> tuple[CategoryLimit, ...]:
        limits = []
        for name, most in self.at_most.items():
            column = _needed(table, "at_most").column(name)
            limits.append(CategoryLimit(column.categories, whole_number("at_most", most)))
        return tuple(limits)


def _needed(table: ItemTable | None, rule: str) -> ItemTable:
    if table is None:
        raise ConfigError(
            f"`{rule}` needs a table of items with their titles and categories, and none was "
            "given: `use_item_table` in Python, `--item-table FILE` on the command line"
        )
    return table
