"""The program as a person starts it, for tests: in this process, or in one of its own."""

import errno
import io
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple


class Outcome(NamedTuple):
    """What a command left: exit code, standard output and standard error."""

    code: int
    out: str
    err: str


Command = Callable[..., Outcome]


class Terminal(io.StringIO):
    """Text that is written to it as to a terminal."""

    def isatty(self) -> bool:
        return True


def start(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    """Start the program in a process of its own, with one thread, both streams piped unless told otherwise."""
    command = [sys.executable, "-c", "from pslrec.cli import main; main()", *map(str, arguments)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **options.pop("env", {})}
    return subprocess.Popen(command, text=True, env=environment, **{**streams, **options})


class Disk:
    """A disk that takes a number of calls, to `write` and `fsync` of Python's `os`, and is full from then on."""

    def __init__(self) -> None:
        self.n_calls = 0
        self.room = sys.maxsize

    def _use(self) -> None:
        self.n_calls += 1
        if self.n_calls > self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    @contextmanager
    def used(self) -> Iterator[None]:
        """All that is written meanwhile is written to it."""
        write, sync = os.write, os.fsync

        def limited_write(handle: int, data: Any) -> int:
            self._use()
            # Half of it, as a disk that is filling up may do.
            return write(handle, memoryview(data)[: max(len(data) // 2, 1)])

        def limited_sync(handle: int) -> None:
            # The sync of a directory comes after the rename, when the file is whole already.
            if stat.S_ISREG(os.fstat(handle).st_mode):
                self._use()
            sync(handle)

        os.write, os.fsync = limited_write, limited_sync
        try:
            yield
        finally:
            os.write, os.fsync = write, sync
