"""The columns of interactions as files, which are read and written some million rows at a time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pslrec.data._interactions import Interactions
from pslrec.data._vocabulary import Vocabulary
from pslrec.errors import DataError
from pslrec.files import array_file, forget_pages, map_array, read_array, remove_file

DTYPES: dict[str, np.dtype] = {
    "users": np.dtype(np.int32),
    "items": np.dtype(np.int32),
    "ratings": np.dtype(np.float32),
    "timestamps": np.dtype(np.int64),
    "weights": np.dtype(np.float32),
}

Chunk = dict[str, np.ndarray]


@dataclass(frozen=True)
class ColumnFiles:
    """Columns of equal length, one file for each.

    Args:
        directory: where the files are.
        prefix: their names begin with it.
        names: of the columns, in the order of `DTYPES`.
        length: how many rows there are.
    """

    directory: Path
    prefix: str
    names: Sequence[str]
    length: int

    def path(self, name: str) -> Path:
        """The file of a column."""
        return self.directory / f"{self.prefix}-{name}"

    def read(self, name: str, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Some rows of a column, in memory."""
        return read_array(self.path(name), DTYPES[name], start, stop, error=DataError)

    def chunks(
        self, n_rows: int, names: Sequence[str] | None = None
    ) -> Iterator[tuple[int, Chunk]]:
        """All rows, some at a time, with the position of the first.

        Args:
            n_rows: at a time.
            names: of the columns that are needed; all if `None`.
        """
        wanted = self.names if names is None else names
        for start in range(0, self.length, n_rows):
            stop = min(start + n_rows, self.length)
            yield start, {name: self.read(name, start, stop) for name in wanted}

    def mapped(self, users: Vocabulary, items: Vocabulary) -> Interactions:
        """The rows as interactions that the system reads when they are looked at."""
        columns = {}
        for name in self.names:
            column = map_array(self.path(name), DTYPES[name], error=DataError)
            # What cannot be written need not be copied.
            column.flags.writeable = False
            columns[name] = column
        interactions = Interactions(user_vocabulary=users, item_vocabulary=items, **columns)
        for column in columns.values():
            # All of it was read for a check; a process of several needs a part.
            forget_pages(column)
        return interactions

    def remove(self) -> None:
        """Remove the files, which were of use for one step only."""
        for name in self.names:
            remove_file(self.path(name), error=DataError)


class ColumnWriter:
    """Appends rows to new columns."""

    def __init__(self, appends: Mapping[str, Callable[[np.ndarray], None]]) -> None:
        self._appends = appends
        self.length = 0

    def add(self, chunk: Mapping[str, np.ndarray]) -> None:
        """Append rows.

        Args:
            chunk: a column for each of the names.
        """
        for name, append in self._appends.items():
            append(chunk[name])
        self.length += len(chunk["users"])


@contextmanager
def written_columns(directory: Path, prefix: str, names: Sequence[str]) -> Iterator[ColumnWriter]:
    """New columns, which are there once all of their rows are written.

    Args:
        directory: where the files go.
        prefix: their names begin with it.
        names: of the columns.
    """
    with ExitStack() as stack:
        appends = {}
        for name in names:
            path = directory / f"{prefix}-{name}"
            file = array_file(path, DTYPES[name], error=DataError)
            appends[name] = stack.enter_context(file)
        yield ColumnWriter(appends)


def chunk_of(interactions: Interactions) -> Chunk:
    """The columns of interactions by name."""
    chunk = {}
    for name in DTYPES:
        column = getattr(interactions, name)
        if column is not None:
            chunk[name] = column
    return chunk
