"""Rules in row numbers of a model, kept for the next request with the same rules."""

from collections import OrderedDict
from typing import Any, NamedTuple

from pslrec.data import Vocabulary
from pslrec.data.items import ItemTable
from pslrec.inference._rules import NO_RULES, RowRules, Rules

# Most requests have the same few rules. Kept rules take a byte per item each.
KEPT_RULES = 64
# Longer lists of ids are mostly those of one request.
LONGEST_KEPT = 1000
# Larger tables take more than a few milliseconds to go through.
LARGE_TABLE = 20_000


class _Key(NamedTuple):
    """What tells rules apart, in a form that a dictionary takes."""

    allowed: tuple[Any, ...] | None = None
    excluded: tuple[Any, ...] = ()
    where: str | None = None
    limits: tuple[tuple[str, int], ...] = ()
    skip_unknown: bool = False

    @property
    def n_ids(self) -> int:
        return len(self.allowed or ()) + len(self.excluded)


NO_KEY = _Key()


def _key(rules: Rules) -> _Key:
    allowed = None
    if rules.items is not None:
        allowed = tuple(rules.items)
    excluded = tuple(rules.exclude)
    limits = tuple(rules.at_most.items())
    return _Key(allowed, excluded, rules.where, limits, rules.skip_unknown)


class RuleKeeper:
    """Translates rules, and gives the same object for the same rules.

    A service computes lists together only if they have the very same rules.

    Args:
        items: ids of the model's items.
        table: the item table, if there is one.
    """

    def __init__(self, items: Vocabulary, table: ItemTable | None) -> None:
        self.items = items
        self.table = table
        self._kept: OrderedDict[Any, RowRules] = OrderedDict()

    def is_slow(self, rules: Rules) -> bool:
        """Whether a service should translate the rules apart from its conversation with clients.

        Args:
            rules: of a request.
        """
        # A condition that is new goes through the whole table.
        is_large = len(self.items) > LARGE_TABLE
        return is_large and rules.where is not None and _key(rules) not in self._kept

    def row_rules(self, rules: Rules) -> RowRules:
        """The rules in row numbers, without those about single users.

        Args:
            rules: of a request.
        """
        key = _key(rules)
        if key == NO_KEY:
            return NO_RULES
        try:
            found = self._kept.get(key)
        except TypeError:
            # What cannot be a key is no id either, which the translation says.
            return rules.in_rows(self.items, self.table)
        if found is not None:
            return found
        found = rules.in_rows(self.items, self.table)
        if key.n_ids <= LONGEST_KEPT:
            self._kept[key] = found
            if len(self._kept) > KEPT_RULES:
                self._kept.popitem(last=False)
        return found
