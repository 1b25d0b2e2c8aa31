"""External ids in JSON and in URLs, where a number may arrive as text."""

from collections.abc import Iterable

from pslrec.data import Vocabulary
from pslrec.errors import UnknownNameError, shortened

# JavaScript rounds whole numbers beyond this, so they are sent as text.
LARGEST_EXACT = 2**53 - 1


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
        self.vocabulary = vocabulary
        self.names = [_name(identifier) for identifier in vocabulary.series.to_list()]

    def __len__(self) -> int:
        return len(self.names)

    def find(self, identifier: int | str) -> int | None:
        """The row of an id, or `None` if it is unknown."""
        return self.vocabulary.find_given(identifier)

    def row(self, identifier: int | str) -> int:
        """The row of an id; an unknown one raises `UnknownNameError`."""
        row = self.find(identifier)
        if row is None:
            raise UnknownNameError(f"unknown {self.kind} `{shortened(identifier)}`")
        return row

    def rows(self, identifiers: Iterable[int | str]) -> list[int]:
        """The rows of several ids; the first unknown one raises `UnknownNameError`."""
        return [self.row(identifier) for identifier in identifiers]


def _name(identifier: object) -> int | str:
    # In Python a bool is an int.
    if not isinstance(identifier, int) or isinstance(identifier, bool):
        return str(identifier)
    if abs(identifier) > LARGEST_EXACT:
        return str(identifier)
    return identifier
