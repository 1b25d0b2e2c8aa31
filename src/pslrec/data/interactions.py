"""Who did what: immutable columns of row numbers with the vocabularies that give them meaning."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from scipy.sparse import csr_matrix

from pslrec.data.vocabulary import Vocabulary
from pslrec.errors import DataError


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
        columns = {
            "users": np.int32,
            "items": np.int32,
            "ratings": np.float32,
            "timestamps": np.int64,
            "weights": np.float32,
        }
        for name, dtype in columns.items():
            column = getattr(self, name)
            if column is None:
                continue
            column = np.asarray(column).astype(dtype, copy=False).view()
            if column.shape != np.shape(self.users):
                raise DataError(f"`{name}` must be as long as `users` ({len(self.users)}), got shape {column.shape}")
            column.flags.writeable = False
            object.__setattr__(self, name, column)
        for name, vocabulary in (("users", self.user_vocabulary), ("items", self.item_vocabulary)):
            column = getattr(self, name)
            if len(column) and (column.min() < 0 or column.max() >= len(vocabulary)):
                raise DataError(
                    f"`{name}` must be row numbers below {len(vocabulary)}, got {column.min()} to {column.max()}"
                )

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
        user_rows, user_vocabulary = encode(_series(users), kind="user")
        item_rows, item_vocabulary = encode(_series(items), kind="item")
        optional = {"ratings": ratings, "timestamps": timestamps, "weights": weights}
        columns = {name: None if column is None else np.asarray(column) for name, column in optional.items()}
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
        chosen = {name: getattr(self, name)[which] for name in columns if getattr(self, name) is not None}
        return replace(self, **chosen)

    def sorted(self) -> "Interactions":
        """The same interactions ordered by user, then item."""
        return self.select(np.argsort(self.pair_keys(), kind="stable"))

    def pair_keys(self) -> np.ndarray:
        """One number per interaction that orders by user, then item, and is equal for equal pairs."""
        keys: np.ndarray = self.users.astype(np.int64) * self.n_items + self.items
        return keys

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
        columns |= {name: pl.Series(name, column) for name, column in optional.items() if column is not None}
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
    distinct = column.unique().sort()
    rows = column.to_frame("id").join(
        pl.DataFrame({"id": distinct, "row": np.arange(len(distinct), dtype=np.int32)}),
        on="id",
        how="left",
        maintain_order="left",
    )
    return rows["row"].to_numpy(), Vocabulary(distinct, kind=kind)


def _encode_strings(column: pl.Series, kind: str) -> tuple[np.ndarray, Vocabulary]:
    # Categories of their own are dense codes by first appearance: every string is hashed once, and sorting
    # touches the distinct ones only.
    codes = column.cast(pl.Categorical(pl.Categories.random())).to_physical().to_numpy()
    first = np.empty(int(codes.max()) + 1 if len(codes) else 0, dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    distinct = _as_numbers(column.gather(first))
    order = distinct.arg_sort().to_numpy()
    row_of_code = np.empty(len(distinct), dtype=np.int32)
    row_of_code[order] = np.arange(len(order), dtype=np.int32)
    return row_of_code[codes], Vocabulary(distinct.gather(order), kind=kind)


def _as_numbers(ids: pl.Series) -> pl.Series:
    # "7" becomes 7 only if no id would lose its spelling: "007" stays a string, and so do all others beside it.
    numbers = ids.cast(pl.Int64, strict=False)
    if len(ids) and numbers.null_count() == 0 and (numbers.cast(pl.String) == ids).all():
        return numbers
    return ids


def _series(column: Iterable[Any]) -> pl.Series:
    if isinstance(column, pl.Series):
        return column
    return pl.Series(values=column if isinstance(column, np.ndarray) else list(column))
