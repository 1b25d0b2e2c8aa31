"""External ids as people and programs give them, translated to row numbers."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from pslrec.data._vocabulary import Vocabulary
from pslrec.errors import UnknownNameError, shortened


class FoundRows(NamedTuple):
    """Given ids as row numbers.

    Args:
        rows: of the ids that are known, in the order given.
        unknown: the other ids.
    """

    rows: list[int]
    unknown: list[Any]


def find_rows(
    ids: Iterable[Any], vocabulary: Vocabulary, *, skip_unknown: bool = False, hint: str = ""
) -> FoundRows:
    """Row numbers of given ids; a whole number may be given as text.

    Args:
        ids: external ids.
        vocabulary: knows the ids.
        skip_unknown: leave unknown ids out instead of raising.
        hint: is added to the error for an unknown id.

    >>> items = Vocabulary([10, 7], kind="item")
    >>> find_rows(["7", 8], items, skip_unknown=True)
    FoundRows(rows=[1], unknown=[8])
    """
    given = list(ids)
    found = vocabulary.find_all_given(given)
    rows = [row for row in found if row is not None]
    if len(rows) == len(given):
        return FoundRows(rows, [])
    unknown = []
    for identifier, row in zip(given, found, strict=True):
        if row is None:
            unknown.append(identifier)
    if unknown and not skip_unknown:
        # One is named; thousands would bury the hint.
        others = ""
        if len(unknown) > 1:
            others = f" and {len(unknown) - 1} more"
        raise UnknownNameError(f"unknown {vocabulary.kind} `{shortened(unknown[0])}`{others}{hint}")
    return FoundRows(rows, unknown)
