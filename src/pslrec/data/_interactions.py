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
from pslrec.rows import Rows, counted


@dataclass(frozen=True, eq=False)
class Interactions:
    """User-item pairs, one per position, with optional columns beside them.

    Row numbers index the vocabularies; several `Interactions` (the parts of a split) share the same
    two vocabularies. Build one from external ids with `Interactions.from_ids`, from a file with
    `pslrec.data.read_interactions`.

    Args:
        users: row number of the user of each interaction.
        items: row number of the item.
        user_vocabulary: external user ids by row.
        item_vocabulary: external item ids by row.
        ratings: how much the user liked the item, if known.
        timestamps: seconds since 1970, if known.
        weights: confidence in each interaction, if it is not 1 for all.

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
        self._freeze("users", _row_numbers("users", self.users, self.n_users))
        self._freeze("items", _row_numbers("items", self.items, self.n_items))
        for name in ("ratings", "timestamps", "weights"):
            column = getattr(self, name)
            if column is not None:
                self._freeze(name, _values(name, column))

    def _freeze(self, name: str, column: np.ndarray) -> None:
        if column.ndim != 1:
            raise DataError(f"`{name}` must be one column, got shape {column.shape}")
        if len(column) != len(self.users):
            raise DataError(
                f"`{name}` must be as long as `users` ({len(self.users)}), got {len(column)}"
            )
        column.flags.writeable = False
        # A view of a frozen array cannot be made writeable again by whoever gets hold of it.
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
        """Interactions of external ids.

        Rows are numbered in the sorted order of the ids, whatever the order of the data.

        Args:
            users: external id of the user of each interaction.
            items: external id of the item.
            ratings: how much the user liked the item, if known.
            timestamps: seconds since 1970, if known.
            weights: confidence in each interaction, if it is not 1 for all.
        """
        user_series = as_series(users, "user")
        item_series = as_series(items, "item")
        # Half the time of reading a large file is spent here, and polars lets go of the interpreter
        # lock, so that both columns are encoded at the same time.
        with ThreadPoolExecutor(max_workers=2) as pool:
            encoding_users = pool.submit(encode, user_series, "user")
            encoding_items = pool.submit(encode, item_series, "item")
        user_rows, user_vocabulary = encoding_users.result()
        item_rows, item_vocabulary = encoding_items.result()
        return cls(
            user_rows,
            item_rows,
            user_vocabulary,
            item_vocabulary,
            ratings=_array(ratings),
            timestamps=_array(timestamps),
            weights=_array(weights),
        )

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
        return (
            f"Interactions({len(self):,} pairs of {self.n_users:,} users and "
            f"{self.n_items:,} items)"
        )

    def select(self, which: np.ndarray) -> "Interactions":
        """Some of the interactions, by mask or position, over the same vocabularies."""
        positions = which
        if which.dtype == bool:
            # A mask is walked through once, not again for every column.
            positions = np.flatnonzero(which)
        chosen = {}
        for name in ("users", "items", "ratings", "timestamps", "weights"):
            column = getattr(self, name)
            if column is not None:
                chosen[name] = column[positions]
                # Nobody else holds the new array, and what cannot be written need not be copied.
                chosen[name].flags.writeable = False
        return replace(self, **chosen)

    def sorted(self) -> "Interactions":
        """The same interactions ordered by user, then item.

        Repeated pairs are ordered by their other columns, so the order of the rows does not matter.
        """
        keys = self.pair_keys()
        order = np.argsort(keys, kind="stable")
        optional = (self.weights, self.ratings, self.timestamps)
        beside = [column for column in optional if column is not None]
        # Sorting by several keys takes several times as long, and only repeated pairs need it.
        if beside and (np.diff(keys[order]) == 0).any():
            order = np.lexsort((*beside, keys))
        return self.select(order)

    def pair_keys(self) -> np.ndarray:
        """One number per interaction: equal for equal pairs, and ordered by user, then item."""
        # In 64 bits: the product of users and items exceeds 32 bits even for small data sets.
        keys: np.ndarray = self.users.astype(np.int64) * self.n_items + self.items
        return keys

    @cached_property
    def rows(self) -> Rows:
        """The distinct items of each user, ascending; built once, whoever asks."""
        return Rows.from_keys(self.pair_keys(), n_owners=self.n_users, n_items=self.n_items)

    def with_rows(self, rows: Rows) -> "Interactions":
        """The same interactions with their `rows` made already.

        Args:
            rows: what `rows` would give, for example mapped from a file.
        """
        same = replace(self)
        # Where `cached_property` keeps what it has computed.
        same.__dict__["rows"] = rows
        return same

    def user_counts(self) -> np.ndarray:
        """Number of interactions of each user."""
        return counted(self.users, self.n_users)

    def item_counts(self) -> np.ndarray:
        """Number of interactions of each item: its popularity."""
        return counted(self.items, self.n_items)

    def matrix(self) -> csr_matrix:
        """The user-by-item matrix: weights where there are any, else 1; repeated pairs add up."""
        values = self.weights
        if values is None:
            values = np.ones(len(self), dtype=np.float32)
        return csr_matrix((values, (self.users, self.items)), shape=(self.n_users, self.n_items))

    def to_frame(self) -> pl.DataFrame:
        """A polars frame: external ids as `user` and `item`, and the other columns there are."""
        columns: dict[str, Any] = {
            "user": self.user_vocabulary.series.gather(self.users),
            "item": self.item_vocabulary.series.gather(self.items),
        }
        optional = {"rating": self.ratings, "timestamp": self.timestamps, "weight": self.weights}
        for name, column in optional.items():
            if column is not None:
                columns[name] = pl.Series(name, column)
        return pl.DataFrame(columns)


def concatenate(parts: Sequence[Interactions]) -> Interactions:
    """Interactions of all parts, which must share their vocabularies.

    A column that one of the parts lacks is left out.
    """
    joined: dict[str, Any] = {}
    for name in ("users", "items", "ratings", "timestamps", "weights"):
        columns = [getattr(part, name) for part in parts]
        is_complete = all(column is not None for column in columns)
        joined[name] = np.concatenate(columns) if is_complete else None
    return replace(parts[0], **joined)


def encode(column: pl.Series, kind: str) -> tuple[np.ndarray, Vocabulary]:
    """Row number of each entry, and the vocabulary of the distinct entries in sorted order."""
    if column.null_count():
        raise DataError(
            f"the {kind} column has {column.null_count()} missing values; "
            "remove those rows or fill them in"
        )
    if column.dtype.is_float() and column.is_nan().any():
        raise DataError(
            f"the {kind} column has {column.is_nan().sum()} ids that are NaN; "
            "remove those rows or fill them in"
        )
    encoder = Encoder(column.unique(), kind)
    return encoder.rows(column), encoder.vocabulary


class Encoder:
    """Row numbers of ids as they are spelled in the data.

    Args:
        distinct: every id that occurs, once, in any order.
        kind: what the ids name, for messages: "user" or "item".
    """

    def __init__(self, distinct: pl.Series, kind: str) -> None:
        ids = distinct
        if distinct.dtype == pl.String:
            # Among the distinct ids only, which are few: converting the column would take far
            # longer.
            ids = as_numbers(distinct)
        if ids.dtype == pl.String and (ids == "").any():
            raise DataError(
                f"the {kind} column has ids that are empty text; remove those rows or fill them in"
            )
        order = ids.arg_sort()
        spelled = distinct.gather(order)
        self.vocabulary = Vocabulary(ids.gather(order), kind=kind)
        self._dtype = spelled.dtype
        # Looking up hashes takes a third of the time of looking up text, and is exact where no two
        # ids share one.
        self._is_hashed = False
        if spelled.dtype == pl.String:
            hashes = spelled.hash()
            self._is_hashed = hashes.n_unique() == len(spelled)
            if self._is_hashed:
                spelled = hashes
        rows = np.arange(len(spelled), dtype=np.int32)
        self._numbered = pl.DataFrame({"id": spelled, "row": rows})

    def rows(self, column: pl.Series) -> np.ndarray:
        """Row number of each entry.

        Args:
            column: ids that are all known; whole numbers are looked up as text where ids are text.
        """
        entries = column.cast(self._dtype)
        if self._is_hashed:
            entries = entries.hash()
        found = entries.to_frame("id").join(
            self._numbered, on="id", how="left", maintain_order="left"
        )
        return found["row"].to_numpy()


def as_numbers(ids: pl.Series) -> pl.Series:
    """Text ids as whole numbers if no id would lose its spelling: beside "007" all stay text.

    >>> as_numbers(pl.Series(["7", "12"])).to_list(), as_numbers(pl.Series(["007", "12"])).to_list()
    ([7, 12], ['007', '12'])
    """
    numbers = ids.cast(pl.Int64, strict=False)
    if len(ids) and numbers.null_count() == 0 and (numbers.cast(pl.String) == ids).all():
        return numbers
    return ids


def _array(column: Iterable[Any] | None) -> np.ndarray | None:
    if column is None:
        return None
    # numpy would take an iterator for a single object.
    if not hasattr(column, "__array__"):
        column = list(column)
    return np.asarray(column)


def _row_numbers(name: str, column: np.ndarray, n_rows: int) -> np.ndarray:
    array = np.asarray(column)
    # An empty list becomes an array of floats, which is not the caller's mistake.
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
    if array.dtype.kind == "f":
        _check_finite(name, array)
    if name == "timestamps" and len(array) and array.min() < 0:
        raise DataError(
            f"`timestamps` must be seconds since 1970 and not negative, the least is {array.min()}"
        )
    if name == "weights" and len(array) and array.min() <= 0:
        raise DataError(
            f"`weights` must be positive, the least is {array.min()}; "
            "leave out pairs that are not interactions"
        )
    if name == "timestamps":
        return _own(array, np.int64)
    return _own(array, np.float32)


def _check_finite(name: str, array: np.ndarray) -> None:
    limit: Any = np.finfo(np.float32).max
    if name == "timestamps":
        limit = np.iinfo(np.int64).max
    # The comparison is false for NaN too.
    bad = ~(np.abs(array) < limit)
    if bad.any():
        raise DataError(
            f"`{name}` must be finite, {bad.sum()} of {len(array)} are not; "
            f"the first is at position {bad.argmax()}"
        )


def _own(array: np.ndarray, dtype: type[np.generic]) -> np.ndarray:
    # An array that nobody can write to may be shared; any other could change behind our back.
    if array.dtype == dtype and not array.flags.writeable:
        return array
    return array.astype(dtype)
