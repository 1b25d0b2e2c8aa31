"""Which columns of a table with unusual names are probably the user and the item.

A guess is shown to the person who can tell; nothing is ever read by it.
"""

import datetime
import re
from collections.abc import Mapping, Sequence
from typing import Any

# Some rows of a table, each with its values in the order of the columns.
Rows = Sequence[Sequence[Any]]

# Parts of names, in several languages. A short word must be the whole name: `was` is in `washer`.
WORDS = {
    "user": (
        "user visitor customer client member account person session reader buyer player patron "
        "nutzer benutzer kunde usuario utilisateur utente gebruiker =who =wer =qui =quien"
    ),
    "item": (
        "item product article movie film book song track artist game recipe isbn sku title page "
        "artikel produkt buch spiel producto produit libro articolo =what =was =quoi =que"
    ),
    "rating": "rating score stars grade bewertung note nota =rate",
    "timestamp": "time date stamp zeit datum fecha when =wann =quand =cuando",
}
# Numbers of seconds from 1990 on, or of milliseconds up to 2100.
EARLIEST, LATEST = 6e8, 4.1e12
DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}")
LONGEST_NAME = 40
# Longer values are sentences.
LONGEST_ID = 60
# Of fewer rows, all values of a column may be different by chance.
ENOUGH_ROWS = 10


def guessed_columns(names: Sequence[str], rows: Rows, known: Mapping[str, str]) -> dict[str, str]:
    """Probable columns by role: a user and an item, or nothing if there are no two columns for them.

    Args:
        names: of the columns, in order.
        rows: some of the table's rows; there may be none.
        known: columns whose role is known.

    >>> guessed_columns(["nr", "wer", "was"], [[1, "ann", "tea"], [2, "bob", "tea"]], {})
    {'user': 'wer', 'item': 'was'}
    """
    guess = dict(known)
    free = _choosable(names, known)
    values = {name: _values(names.index(name), rows) for name in free}
    for role in WORDS:
        named = [name for name in free if _sounds_like(name, role)]
        # A rating or a time is told only if the values agree with the name.
        if role not in guess and named and _may_be(role, values[named[0]]):
            guess[role] = named[0]
            free.remove(named[0])
    times = [name for name in free if _are_times(values[name])]
    if times and "timestamp" not in guess:
        guess["timestamp"] = times[0]
        free.remove(times[0])
    # Ids before numbers of rows and sentences, which are left for want of anything better.
    free.sort(key=lambda name: not _are_ids(values[name]))
    for role in ("user", "item"):
        if role not in guess and free:
            guess[role] = free.pop(0)
    if "user" not in guess or "item" not in guess:
        return {}
    order = (*WORDS, "weight")
    return {role: guess[role] for role in order if role in guess}


def _choosable(names: Sequence[str], known: Mapping[str, str]) -> list[str]:
    found = []
    for name in dict.fromkeys(names):
        # Nobody wants to type a longer name, or one of several lines.
        is_handy = name.isprintable() and 0 < len(name) <= LONGEST_NAME
        if is_handy and name not in known.values():
            found.append(name)
    return found


def _values(place: int, rows: Rows) -> list[Any]:
    return [row[place] for row in rows if place < len(row) and row[place] not in (None, "")]


def _sounds_like(name: str, role: str) -> bool:
    lowered = name.strip().lower()
    for word in WORDS[role].split():
        if word.startswith("="):
            if lowered == word.removeprefix("="):
                return True
        elif word in lowered:
            return True
    return False


def _may_be(role: str, values: Sequence[Any]) -> bool:
    if not values or role in ("user", "item"):
        return True
    if role == "timestamp":
        return _are_times(values)
    return all(_number(value) is not None for value in values)


def _are_times(values: Sequence[Any]) -> bool:
    return bool(values) and all(_is_time(value) for value in values)


def _is_time(value: Any) -> bool:
    if isinstance(value, datetime.date):
        return True
    number = _number(value)
    if number is not None:
        return EARLIEST <= number <= LATEST
    return DATE.match(str(value)) is not None


def _are_ids(values: Sequence[Any]) -> bool:
    """Whether the values can be ids that occur again: no sentences, no numbers of rows."""
    texts = [str(value) for value in values]
    if any(len(text) > LONGEST_ID for text in texts):
        return False
    numbers = [_number(value) for value in values]
    if any(number is not None and not number.is_integer() for number in numbers):
        return False
    is_numbered = len(texts) >= ENOUGH_ROWS and len(set(texts)) == len(texts)
    return not (is_numbered and None not in numbers)


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None
