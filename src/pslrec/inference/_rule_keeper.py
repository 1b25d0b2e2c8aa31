"""Rules in row numbers of a model, kept for the next request with the same rules."""

from collections import OrderedDict
from typing import Any

from pslrec.data import Vocabulary
from pslrec.data.items import ItemTable
from pslrec.inference._rules import NO_RULES, RowRules, Rules

# Most requests have the same few rules. Kept rules take a byte per item each.
KEPT_RULES = 64
# Longer lists of ids are mostly those of one request.
LONGEST_KEPT = 1000


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

    def row_rules(self, rules: Rules) -> RowRules:
        """The rules in row numbers, without those about single users.

        Args:
            rules: of a request.
        """
        allowed = None
        if rules.items is not None:
            allowed = tuple(rules.items)
        excluded = tuple(rules.exclude)
        limits = tuple(rules.at_most.items())
        if allowed is None and not excluded and not limits and rules.where is None:
            return NO_RULES
        key = (allowed, excluded, rules.where, limits, rules.skip_unknown)
        try:
            found = self._kept.get(key)
        except TypeError:
            # What cannot be a key is no id either, which the translation says.
            return rules.in_rows(self.items, self.table)
        if found is not None:
            return found
        found = rules.in_rows(self.items, self.table)
        if len(allowed or ()) + len(excluded) <= LONGEST_KEPT:
            self._kept[key] = found
            if len(self._kept) > KEPT_RULES:
                self._kept.popitem(last=False)
        return found
