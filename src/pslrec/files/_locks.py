"""Locks that the system drops with the process, however that ends."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pslrec.errors import PslrecError
from pslrec.files._places import FileError, explained, make_directory
from pslrec.files._reading import check_regular

try:
    import fcntl
except ImportError:  # a system without it goes without locks
    fcntl = None  # type: ignore[assignment]

CAN_LOCK = fcntl is not None


@contextmanager
def exclusive(path: Path, *, wait: bool, error: type[PslrecError] = FileError) -> Iterator[bool]:
    """Hold a lock file; gives whether it was free.

    Args:
        path: of the file; it is made if it is not there, and it stays behind.
        wait: for whoever holds it.
        error: what is raised if the file cannot be made.
    """
    make_directory(path.parent, error=error)
    with explained(path, "written", error=error):
        if path.exists():
            # Opening a device or a pipe may do more than open it.
            check_regular(path, error=error)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        yield take_lock(handle, wait=wait)
    finally:
        os.close(handle)


def take_lock(handle: int, *, wait: bool) -> bool:
    """Lock an open file for as long as it is open; whether that was possible.

    Args:
        handle: of the file.
        wait: for whoever holds the lock.
    """
    if not CAN_LOCK:
        return True
    operation = fcntl.LOCK_EX
    if not wait:
        operation |= fcntl.LOCK_NB
    try:
        fcntl.flock(handle, operation)
    except OSError:
        return False
    return True
