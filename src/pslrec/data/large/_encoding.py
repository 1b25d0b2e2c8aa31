"""The two passes over a log: which ids there are, and the row numbers of each interaction."""

import logging
from pathlib import Path

import numpy as np
import polars as pl

from pslrec.data._cleaning import CleanColumns
from pslrec.data._interactions import Encoder
from pslrec.data.large._chunks import Cleaner, Log
from pslrec.data.large._columns import ColumnFiles, written_columns
from pslrec.errors import DataError

logger = logging.getLogger(__name__)
# Ids that are gathered before they are merged with the known ones, at least.
FEWEST_PENDING = 1_000_000


class _Distinct:
    """The distinct ids of many pieces."""

    def __init__(self) -> None:
        self._known: pl.Series | None = None
        self._pending: list[pl.Series] = []
        self._n_pending = 0

    def add(self, ids: pl.Series) -> None:
        new = ids.unique()
        self._pending.append(new)
        self._n_pending += len(new)
        n_known = 0
        if self._known is not None:
            n_known = len(self._known)
        # Merging looks at all known ids, so it waits until there are as many new ones.
        if self._n_pending >= max(n_known, FEWEST_PENDING):
            self._merge()

    def _merge(self) -> None:
        parts = list(self._pending)
        if self._known is not None:
            parts.append(self._known)
        if len({part.dtype for part in parts}) > 1:
            # Numbers here and names there: all of them are text, as they would be in one table.
            parts = [part.cast(pl.String) for part in parts]
        self._known = pl.concat(parts).unique()
        self._pending = []
        self._n_pending = 0

    def all(self) -> pl.Series:
        self._merge()
        assert self._known is not None
        return self._known


def read_encoders(log: Log, n_rows: int) -> tuple[Encoder, Encoder, int]:
    """The first pass: the ids of users and items, and how many rows there are.

    Args:
        log: the files.
        n_rows: that are read at a time.
    """
    users = _Distinct()
    items = _Distinct()
    cleaner = Cleaner()
    count = 0
    for table in log.tables(n_rows):
        columns = cleaner.clean(table)
        users.add(columns.users)
        items.add(columns.items)
        count += len(columns.users)
    if count == 0:
        raise DataError(f"{log.files[0]}: there are no interactions in it")
    assert cleaner.columns is not None
    found = ", ".join(f"{role} = `{name}`" for role, name in cleaner.columns.roles().items())
    logger.info("%s: read %s", log.files[0], found)
    return Encoder(users.all(), "user"), Encoder(items.all(), "item"), count


def write_encoded(
    log: Log,
    encoders: tuple[Encoder, Encoder],
    directory: Path,
    *,
    n_rows: int,
    minimum_rating: float | None,
) -> ColumnFiles:
    """The second pass: the row numbers of all interactions, in the order of the log.

    Args:
        log: the files.
        encoders: of users and items.
        directory: where the columns go.
        n_rows: that are read at a time.
        minimum_rating: interactions rated lower are left out.
    """
    cleaner = Cleaner()
    highest = -np.inf
    tables = log.tables(n_rows)
    first = cleaner.clean(next(tables))
    names = _names_of(first)
    with written_columns(directory, "log", names) as writer:
        columns: CleanColumns | None = first
        while columns is not None:
            chunk = _encoded(columns, encoders)
            if minimum_rating is not None and "ratings" in chunk:
                highest = max(highest, float(chunk["ratings"].max()))
                kept = chunk["ratings"] >= minimum_rating
                chunk = {name: column[kept] for name, column in chunk.items()}
            writer.add(chunk)
            table = next(tables, None)
            columns = None if table is None else cleaner.clean(table)
    if writer.length == 0:
        raise DataError(
            f"no interaction has a rating of at least {minimum_rating:g}, "
            f"the highest is {highest:g}"
        )
    return ColumnFiles(directory, "log", names, writer.length)


def _names_of(columns: CleanColumns) -> list[str]:
    names = ["users", "items"]
    for name in ("ratings", "timestamps", "weights"):
        if getattr(columns, name) is not None:
            names.append(name)
    return names


def _encoded(columns: CleanColumns, encoders: tuple[Encoder, Encoder]) -> dict[str, np.ndarray]:
    users, items = encoders
    chunk = {"users": users.rows(columns.users), "items": items.rows(columns.items)}
    if columns.ratings is not None:
        # As `Interactions` hold them: a threshold must cut the same rows.
        chunk["ratings"] = columns.ratings.astype(np.float32)
    if columns.timestamps is not None:
        chunk["timestamps"] = columns.timestamps
    if columns.weights is not None:
        chunk["weights"] = columns.weights
    return chunk
