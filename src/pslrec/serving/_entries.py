"""Items as answers show them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pslrec.serving._served import Ranked, ServedModel


@dataclass(frozen=True)
class Entries:
    """Makes the entries of an answer.

    Args:
        model: knows ids, titles and the item table.
        with_details: also show what the item table says about each item.
    """

    model: ServedModel
    with_details: bool = False

    def named(self, item: int) -> dict[str, Any]:
        """An item with its id, and its title if there is a table."""
        entry: dict[str, Any] = {"item": self.model.items.names[item]}
        table = self.model.table
        if table is None:
            return entry
        entry["title"] = table.titles[item]
        if self.with_details:
            entry["details"] = table.details(item)
        return entry

    def ranked(self, ranked: Ranked) -> list[dict[str, Any]]:
        """A list with its scores."""
        entries = []
        for item, score in zip(ranked.items, ranked.scores, strict=True):
            entry = self.named(item)
            entry["score"] = _rounded(score)
            entries.append(entry)
        return entries

    def explained(
        self, ranked: Ranked, history: Sequence[int], n_reasons: int
    ) -> list[dict[str, Any]]:
        """A list with its scores and reasons."""
        entries = self.ranked(ranked)
        reasons = self.model.model.reasons(ranked.items, history, n_reasons)
        plain = Entries(self.model)
        for entry, reasons_of_item in zip(entries, reasons, strict=True):
            because = []
            for reason in reasons_of_item:
                named = plain.named(reason.item)
                because.append({**named, "similarity": _rounded(reason.similarity)})
            entry["because"] = because
        return entries


def _rounded(value: float) -> float:
    # Single precision holds about seven digits; more of them would be noise in the answer.
    return float(f"{value:.7g}")
