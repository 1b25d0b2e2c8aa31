"""Locks that the system drops with the process, however that ends."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from errno import ENOSYS
from pathlib import Path

from filelock import lock_descriptor

from pslrec.errors import PslrecError
from pslrec.files._places import FileError, explained, make_directory
from pslrec.files._reading import check_regular

# Windows cannot open a directory, so what is half-written in one cannot be told from a leftover.
CAN_LOCK_DIRECTORIES = os.name != "nt"
# Locks on temporary files are contended for a moment, those on results for as long as a file takes
# to be written: neither should wait much longer than that.
POLL_SECONDS = 0.01


@contextmanager
def exclusive(path: Path, *, wait: bool, error: type[PslrecError] = FileError) -> Iterator[bool]:
    """Hold a lock file; yields whether it was free.

    Args:
        path: of the file; it is made if it does not exist, and it stays behind. Removing it would
            let two processes lock two files of the same name.
        wait: until the lock is free.
        error: raised if the file cannot be made.
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
        # The lock goes with the handle.
        os.close(handle)


def take_lock(handle: int, *, wait: bool) -> bool:
    """Lock an open file for as long as it is open; whether that was possible.

    Args:
        handle: of the file. The caller opens it, not the library, which follows no links and can
            lock neither a directory nor a file that is about to be renamed.
        wait: until the lock is free.
    """
    try:
        return lock_descriptor(handle, blocking=wait, poll_interval=POLL_SECONDS)
    except OSError as failure:
        # A system without locks goes without them; a file system that refuses counts as taken.
        return failure.errno == ENOSYS
