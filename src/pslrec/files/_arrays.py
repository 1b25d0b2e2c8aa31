"""Columns of numbers as plain files: written piece by piece, read in pieces, or mapped into memory."""

import mmap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from pslrec.errors import PslrecError
from pslrec.files._places import FileError, explained
from pslrec.files._writing import whole_file

Append = Callable[[np.ndarray], None]


@contextmanager
def array_file(
    path: Path, dtype: np.dtype, *, error: type[PslrecError] = FileError
) -> Iterator[Append]:
    """A function that appends numbers to a new file, which is there once all of them are written.

    Args:
        path: of the file.
        dtype: of the numbers; those given are converted.
        error: raised if the file cannot be written.
    """
    with whole_file(path, error=error) as file:

        def append(numbers: np.ndarray) -> None:
            file.write(np.ascontiguousarray(numbers, dtype=dtype).data)

        yield append


def read_array(
    path: Path,
    dtype: np.dtype,
    start: int = 0,
    stop: int | None = None,
    *,
    error: type[PslrecError] = FileError,
) -> np.ndarray:
    """Some of the numbers in a file, read into memory.

    Args:
        path: of the file.
        dtype: of the numbers.
        start: position of the first.
        stop: position after the last; the end of the file if `None`.
        error: raised if the file cannot be read.
    """
    count = -1
    if stop is not None:
        count = max(stop - start, 0)
    with explained(path, "read", error=error):
        return np.fromfile(path, dtype=dtype, count=count, offset=start * dtype.itemsize)


def map_array(path: Path, dtype: np.dtype, *, error: type[PslrecError] = FileError) -> np.ndarray:
    """All numbers of a file, which the system reads when they are looked at and may forget again.

    Args:
        path: of the file.
        dtype: of the numbers.
        error: raised if the file cannot be read.
    """
    with explained(path, "read", error=error):
        # A file without bytes cannot be mapped.
        if path.stat().st_size == 0:
            return np.empty(0, dtype=dtype)
        # Pages that are written to become the process's own. Nobody writes, but torch warns of
        # arrays that cannot be written.
        mapped = np.memmap(path, dtype=dtype, mode="c")
    return np.asarray(mapped)


def forget_pages(array: np.ndarray) -> None:
    """Give back the memory of what was read of a mapped file; reading it again reads the file.

    Args:
        array: as `map_array` gives it, or a view of it; others are left alone.
    """
    below: Any = array
    while isinstance(below, np.ndarray):
        below = below.base
    # Not every system has it, and none needs it.
    if isinstance(below, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        below.madvise(mmap.MADV_DONTNEED)
