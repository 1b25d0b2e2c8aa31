"""External ids as they travel in JSON and in addresses, where a number may arrive as text."""

import re
from collections.abc import Iterable
from typing import Any

from pslrec.data import Vocabulary
from pslrec.errors import UnknownNameError

# Beyond this JavaScript rounds whole numbers, so they travel as text.
LARGEST_EXACT = 2**53 - 1
_WHOLE_NUMBER = re.compile(r"-?\d{1,39}", re.ASCII)
_LONGEST_SHOWN = 80


class Identifiers:
    """The ids of a vocabulary in their JSON form: whole numbers and text as they are, everything else as text.

    Where ids are whole numbers, their text is taken as well; where they are text, numbers are taken by their digits.

    Args:
        vocabulary: the ids by row.

    >>> items = Identifiers(Vocabulary([10, 2**60], kind="item"))
    >>> items.row("10"), items.row(10), items.names
    (0, 0, [10, '1152921504606846976'])
    >>> items.row("apt")
    Traceback (most recent call last):
    pslrec.errors.UnknownNameError: unknown item `apt`
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.kind = vocabulary.kind
        ids = vocabulary.series.to_list()
        self._are_numbers = bool(ids) and isinstance(ids[0], int) and not isinstance(ids[0], bool)
        keys = (
            ids
            if self._are_numbers
            else [
                identifier if isinstance(identifier, str) else str(identifier) for identifier in ids
            ]
        )
        self.names: list[int | str] = [_name(key) for key in keys]
        self._row_of: dict[int | str, int] = {key: row for row, key in enumerate(keys)}

    def __len__(self) -> int:
        return len(self.names)

    def find(self, identifier: int | str) -> int | None:
        """The row of an id, or `None` where there is none."""
        if self._are_numbers:
            if isinstance(identifier, str):
                text = identifier.strip()
                return self._row_of.get(int(text)) if _WHOLE_NUMBER.fullmatch(text) else None
            return self._row_of.get(identifier)
        return self._row_of.get(identifier if isinstance(identifier, str) else str(identifier))

    def row(self, identifier: int | str) -> int:
        """The row of an id; an unknown one raises."""
        row = self.find(identifier)
        if row is None:
            raise UnknownNameError(f"unknown {self.kind} `{shortened(identifier)}`")
        return row

    def rows(self, identifiers: Iterable[int | str]) -> list[int]:
        """The rows of ids; the first unknown one raises."""
        return [self.row(identifier) for identifier in identifiers]


def _name(identifier: Any) -> int | str:
    if isinstance(identifier, int) and abs(identifier) > LARGEST_EXACT:
        return str(identifier)
    return identifier  # type: ignore[no-any-return]


def shortened(value: object) -> str:
    """A value that somebody sent, fit for one line of a message."""
    text = (
        str(value)
        if not isinstance(value, int) or abs(value) < 10**_LONGEST_SHOWN
        else "a very large number"
    )
    text = "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}"
        for character in text[: _LONGEST_SHOWN + 1]
    )
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "..."
