"""Putting together what belongs together."""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Items by what they have in common, in the order in which the groups first occur.

    Args:
        items: in any order.
        key: what those of a group have in common.

    >>> grouped([3, 10, 5], lambda number: number % 2)
    {1: [3, 5], 0: [10]}
    """
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups
