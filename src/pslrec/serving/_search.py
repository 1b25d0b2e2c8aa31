"""Finds items by what somebody types: the beginning of a word of a title, or a part of it."""

from collections.abc import Sequence

import numpy as np


class TitleSearch:
    """Items by a part of their titles or ids.

    Args:
        names: ids by row.
        titles: by row; an item without one is found by its id.
        popularity: how many users have each item; of equal matches the more popular come first.

    >>> search = TitleSearch([7, 8], ["The Big Sleep", "Big"], np.array([5, 1]))
    >>> search.find("big", 5), search.find("7", 5)
    ([1, 0], [0])
    """

    def __init__(
        self,
        names: Sequence[int | str],
        titles: Sequence[str | None],
        popularity: np.ndarray,
    ) -> None:
        self._ids = [str(name).casefold() for name in names]
        self._texts = []
        for identifier, title in zip(self._ids, titles, strict=True):
            self._texts.append((title or identifier).casefold())
        order = np.argsort(-popularity, kind="stable")
        self._by_popularity: list[int] = order.tolist()

    def find(self, text: str, k: int) -> list[int]:
        """Rows of the best matches: by id, by beginning of the title, of a word, or anywhere.

        Args:
            text: what somebody typed; upper and lower case are the same.
            k: how many at most.
        """
        wanted = " ".join(text.casefold().split())
        if not wanted:
            return self._by_popularity[:k]
        levels: list[list[int]] = [[], [], [], []]
        for row in self._by_popularity:
            level = self._level(row, wanted)
            if level is not None:
                levels[level].append(row)
                if len(levels[0]) >= k:
                    break
        return [row for level in levels for row in level][:k]

    def _level(self, row: int, wanted: str) -> int | None:
        text = self._texts[row]
        if self._ids[row] == wanted or text == wanted:
            return 0
        place = text.find(wanted)
        if place < 0:
            if wanted in self._ids[row]:
                return 3
            return None
        if place == 0:
            return 1
        if f" {wanted}" in text:
            return 2
        return 3
