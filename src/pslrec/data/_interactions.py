"""Who did what: immutable columns of row numbers with the vocabularies that give them meaning."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from scipy.sparse import csr_matrix

from pslrec.data._vocabulary import Vocabulary, as_series
from pslrec.errors import DataError
from pslrec.rows import Rows


@dataclass(frozen=True, eq=False)
class Interactions:
    """User-item pairs, one per position, with optional columns beside them.

    Row numbers index the vocabularies; several `Interactions` (the parts of a split) share the same two vocabularies.
    Build one from external ids with `Interactions.from_ids`, from a file with `pslrec.data.read_interactions`.

    Args:
        users: row number of the user of each interaction.
        items: row number of the item.
        user_vocabulary: external user ids by row.
        item_vocabulary: external item ids by row.
        ratings: how much the user liked the item, if known.
        timestamps: when, in seconds since 1970, if known.
        weights: confidence in the interaction, if it is not 1 for all.

    >>> log = Interactions.from_ids(["ann", "bob", "ann"], ["tea", "tea", "milk"])
    >>> log.n_users, log.n_items, len(log)
    (2, 2, 3)
    >>> log.matrix().toarray()
    array([[1., 1.],
           [0., 1.]], dtype=float32)
    """

    users: np.ndarray
    items: np.ndarray
    user_vocabulary: Vocabulary
    item_vocabulary: Vocabulary
    ratings: np.ndarray | None = None
    timestamps: np.ndarray | None = None
    weights: np.ndarray | None = None

    def __post_init__(self) -> None:
        for name, vocabulary in (("users", self.user_vocabulary), ("items", self.item_vocabulary)):
            self._freeze(name, _row_numbers(name, getattr(self, name), len(vocabulary)))
        for name in ("ratings", "timestamps", "weights"):
            if getattr(self, name) is not None:
                self._freeze(name, _values(name, getattr(self, name)))

    def _freeze(self, name: str, column: np.ndarray) -> None:
        if column.ndim != 1:
            raise DataError(f"`{name}` must be one column, got shape {column.shape}")
        if len(column) != len(self.users):
            raise DataError(
                f"`{name}` must be as long as `users` ({len(self.users)}), got {len(column)}"
            )
        column.flags.writeable = False
        object.__setattr__(self, name, column.view())

    @classmethod
    def from_ids(
        cls,
        users: Iterable[Any],
        items: Iterable[Any],
        *,
        ratings: Iterable[float] | None = None,
        timestamps: Iterable[int] | None = None,
        weights: Iterable[float] | None = None,
    ) -> "Interactions":
        """Interactions of external ids. Rows are numbered in the sorted order of the ids, whatever the order of the data."""
        series = (as_series(users, "user"), as_series(items, "item"))
        # Half the time of reading a large file is spent here; polars lets the other thread run meanwhile.
        with ThreadPoolExecutor(max_workers=2) as pool:
            (user_rows, user_vocabulary), (item_rows, item_vocabulary) = pool.map(
                encode, series, ("user", "item")
            )
        optional = {"ratings": ratings, "timestamps": timestamps, "weights": weights}
        columns = {
            name: None if column is None else _array(column) for name, column in optional.items()
        }
        return cls(user_rows, item_rows, user_vocabulary, item_vocabulary, **columns)

    @property
    def n_users(self) -> int:
        """Users of the vocabulary, with or without an interaction here."""
        return len(self.user_vocabulary)

    @property
    def n_items(self) -> int:
        """Items of the vocabulary, with or without an interaction here."""
        return len(self.item_vocabulary)

    def __len__(self) -> int:
        return len(self.users)

    def __repr__(self) -> str:
        return f"Interactions({len(self):,} pairs of {self.n_users:,} users and {self.n_items:,} items)"

    def select(self, which: np.ndarray) -> "Interactions":
        """Some of the interactions, by mask or position, over the same vocabularies."""
        columns = ("users", "items", "ratings", "timestamps", "weights")
        # A mask is walked through once, not for every column again.
        positions = np.flatnonzero(which) if which.dtype == bool else which
        chosen = {
            name: getattr(self, name)[positions]
            for name in columns
            if getattr(self, name) is not None
        }
        for column in chosen.values():
            column.flags.writeable = False  # nobody else holds them, so they need not be copied
        return replace(self, **chosen)

    def sorted(self) -> "Interactions":
        """The same interactions ordered by user, then item; repeated pairs by their other columns, whatever order they had."""
        keys = self.pair_keys()
        order = np.argsort(keys, kind="stable")
        beside = [
            column for column in (self.weights, self.ratings, self.timestamps) if column is not None
        ]
        if beside and len(order) and (np.diff(keys[order]) == 0).any():
            order = np.lexsort((*beside, keys))
        return self.select(order)

    def pair_keys(self) -> np.ndarray:
        """One number per interaction that orders by user, then item, and is equal for equal pairs."""
        keys: np.ndarray = self.users.astype(np.int64) * self.n_items + self.items
        return keys

    @cached_property
    def rows(self) -> Rows:
        """The distinct items of each user, ascending; built once, whoever asks."""
        return Rows.from_keys(self.pair_keys(), n_owners=self.n_users, n_items=self.n_items)

    def user_counts(self) -> np.ndarray:
        """Interactions of each user."""
        return np.bincount(self.users, minlength=self.n_users)

    def item_counts(self) -> np.ndarray:
        """Interactions of each item: its popularity."""
        return np.bincount(self.items, minlength=self.n_items)

    def matrix(self) -> csr_matrix:
        """The user-by-item matrix: weights where there are any, else 1; repeated pairs add up."""
        values = np.ones(len(self), dtype=np.float32) if self.weights is None else self.weights
        return csr_matrix((values, (self.users, self.items)), shape=(self.n_users, self.n_items))

    def to_frame(self) -> pl.DataFrame:
        """A polars frame with external ids in the columns `user` and `item`, and what else is known."""
        columns: dict[str, Any] = {
            "user": self.user_vocabulary.series.gather(self.users),
            "item": self.item_vocabulary.series.gather(self.items),
        }
        optional = {"rating": self.ratings, "timestamp": self.timestamps, "weight": self.weights}
        columns |= {
            name: pl.Series(name, column) for name, column in optional.items() if column is not None
        }
        return pl.DataFrame(columns)


def concatenate(parts: Sequence[Interactions]) -> Interactions:
    """Interactions of all the parts, which share their vocabularies; a column that one part lacks is left out."""

    def joined(name: str) -> np.ndarray | None:
        columns = [getattr(part, name) for part in parts]
        return None if any(column is None for column in columns) else np.concatenate(columns)

    users, items = joined("users"), joined("items")
    assert users is not None
    assert items is not None
    return replace(
        parts[0],
        users=users,
        items=items,
        ratings=joined("ratings"),
        timestamps=joined("timestamps"),
        weights=joined("weights"),
    )


def encode(column: pl.Series, kind: str) -> tuple[np.ndarray, Vocabulary]:
    """Row number of each entry, and the vocabulary of the distinct entries in sorted order."""
    if column.null_count():
        raise DataError(
            f"the {kind} column has {column.null_count()} missing values; remove those rows or fill them in"
        )
    if column.dtype == pl.String:
        return _encode_strings(column, kind)
    if column.dtype.is_float() and column.is_nan().any():
        raise DataError(
            f"the {kind} column has {column.is_nan().sum()} ids that are NaN; remove those rows or fill them in"
        )
    distinct = column.unique().sort()
    return _positions(column, distinct), Vocabulary(distinct, kind=kind)


def _encode_strings(column: pl.Series, kind: str) -> tuple[np.ndarray, Vocabulary]:
    distinct = column.unique()
    ids = as_numbers(distinct)
    if ids.dtype == pl.String and (ids == "").any():
        raise DataError(
            f"the {kind} column has ids that are empty text; remove those rows or fill them in"
        )
    order = ids.arg_sort()
    distinct = distinct.gather(order)
    hashes = distinct.hash()
    vocabulary = Vocabulary(ids.gather(order), kind=kind)
    # Looking up hashes takes a third of the time of looking up text, and is exact where no two of the ids share one.
    if hashes.n_unique() == len(distinct):
        return _positions(column.hash(), hashes), vocabulary
    return _positions(column, distinct), vocabulary


def _positions(column: pl.Series, distinct: pl.Series) -> np.ndarray:
    numbered = pl.DataFrame({"id": distinct, "row": np.arange(len(distinct), dtype=np.int32)})
    return (
        column.to_frame("id")
        .join(numbered, on="id", how="left", maintain_order="left")["row"]
        .to_numpy()
    )


def as_numbers(ids: pl.Series) -> pl.Series:
    """Text ids as whole numbers if no id would lose its spelling: beside "007" all stay text.

    >>> as_numbers(pl.Series(["7", "12"])).to_list(), as_numbers(pl.Series(["007", "12"])).to_list()
    ([7, 12], ['007', '12'])
    """
    numbers = ids.cast(pl.Int64, strict=False)
    if len(ids) and numbers.null_count() == 0 and (numbers.cast(pl.String) == ids).all():
        return numbers
    return ids


def _array(column: Iterable[Any]) -> np.ndarray:
    return np.asarray(column if hasattr(column, "__array__") else list(column))


def _row_numbers(name: str, column: np.ndarray, n_rows: int) -> np.ndarray:
    array = np.asarray(column)
    if array.size and array.dtype.kind not in "iu":
        raise DataError(f"`{name}` must be row numbers, whole numbers from 0, got {array.dtype}")
    if array.size and (array.min() < 0 or array.max() >= n_rows):
        raise DataError(
            f"`{name}` must be row numbers below {n_rows}, got {array.min()} to {array.max()}"
        )
    return _own(array, np.int32)


def _values(name: str, column: np.ndarray) -> np.ndarray:
    array = np.asarray(column)
    if array.dtype.kind == "M":
        array = array.astype("datetime64[s]").astype(np.int64)
    if array.dtype.kind not in "iufb":
        raise DataError(f"`{name}` must be numbers, got {array.dtype}")
    limit = np.iinfo(np.int64).max if name == "timestamps" else np.finfo(np.float32).max
    # Also false for NaN.
    bad = ~(np.abs(array) < limit) if array.dtype.kind == "f" else np.zeros(0, dtype=bool)
    if bad.any():
        raise DataError(
            f"`{name}` must be finite, {bad.sum()} of {len(array)} are not; the first is at position {bad.argmax()}"
        )
    if name == "timestamps" and len(array) and array.min() < 0:
        raise DataError(
            f"`timestamps` must be seconds since 1970 and not negative, the least is {array.min()}"
        )
    if name == "weights" and len(array) and array.min() <= 0:
        raise DataError(
            f"`weights` must be positive, the least is {array.min()}; leave out pairs that are no interactions"
        )
    return _own(array, np.int64 if name == "timestamps" else np.float32)


def _own(array: np.ndarray, dtype: type[np.generic]) -> np.ndarray:
    # What nobody can write to may be shared; anything else could change behind our back.
    return array if array.dtype == dtype and not array.flags.writeable else array.astype(dtype)
