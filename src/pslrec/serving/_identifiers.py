"""External ids in JSON and in URLs, where a number may arrive as text."""

import re
from collections.abc import Iterable

from pslrec.data import Vocabulary
from pslrec.errors import UnknownNameError

# JavaScript rounds whole numbers beyond this, so they are sent as text.
LARGEST_EXACT = 2**53 - 1
_WHOLE_NUMBER = re.compile(r"-?\d{1,39}", re.ASCII)
_LONGEST_SHOWN = 80


class Identifiers:
    """The ids of a vocabulary as JSON has them.

    Whole numbers and text stay what they are, everything else becomes text. Where ids are whole
    numbers, `row` also takes their digits as text; where they are text, it also takes numbers.

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
        # In Python a bool is an int.
        self._are_numbers = bool(ids) and isinstance(ids[0], int) and not isinstance(ids[0], bool)
        keys: list[int | str] = ids
        if not self._are_numbers:
            keys = [str(identifier) for identifier in ids]
        self.names = [_name(key) for key in keys]
        self._row_of = {key: row for row, key in enumerate(keys)}

    def __len__(self) -> int:
        return len(self.names)

    def find(self, identifier: int | str) -> int | None:
        """The row of an id, or `None` if it is unknown."""
        if not self._are_numbers:
            return self._row_of.get(str(identifier))
        if isinstance(identifier, str):
            digits = identifier.strip()
            # `int` alone would take underscores, other scripts' digits and endless numbers.
            if not _WHOLE_NUMBER.fullmatch(digits):
                return None
            identifier = int(digits)
        return self._row_of.get(identifier)

    def row(self, identifier: int | str) -> int:
        """The row of an id; an unknown one raises `UnknownNameError`."""
        row = self.find(identifier)
        if row is None:
            raise UnknownNameError(f"unknown {self.kind} `{shortened(identifier)}`")
        return row

    def rows(self, identifiers: Iterable[int | str]) -> list[int]:
        """The rows of several ids; the first unknown one raises `UnknownNameError`."""
        return [self.row(identifier) for identifier in identifiers]


def _name(key: int | str) -> int | str:
    if isinstance(key, int) and abs(key) > LARGEST_EXACT:
        return str(key)
    return key


def shortened(value: object) -> str:
    """A value that a client sent, fit to be quoted in one line of a message."""
    if isinstance(value, int) and abs(value) >= 10**_LONGEST_SHOWN:
        # Python refuses to write out numbers of thousands of digits.
        return "a very large number"
    shown = ""
    for character in str(value)[:_LONGEST_SHOWN]:
        # A control character could rewrite the terminal of whoever reads the log.
        shown += character if character.isprintable() else "\N{REPLACEMENT CHARACTER}"
    if len(str(value)) > _LONGEST_SHOWN:
        shown += "..."
    return shown
