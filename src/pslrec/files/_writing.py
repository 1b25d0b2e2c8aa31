"""The one way in which pslrec writes: under a temporary name, synced, then renamed.

So a file is whole or absent. Several processes may write one file at the same time: the last one
wins, and nobody ever sees half of it. What a killed process left behind is removed by the next one
that writes beside it. Libraries write to a `WholeFile` and never to a path: then it does not matter
what each of them makes of a full disk.
"""

import io
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

from pslrec.errors import PslrecError
from pslrec.files._locks import CAN_LOCK_DIRECTORIES, take_lock
from pslrec.files._places import (
    FileError,
    explained,
    is_temporary,
    local_path,
    temporary_name,
)
from pslrec.files._reading import check_regular


class WholeFile(io.RawIOBase):
    """Bytes on their way to a file; it remembers the error of the system, if there was one.

    Args:
        handle: of the open file, which is closed with it.
    """

    def __init__(self, handle: int) -> None:
        super().__init__()
        self._handle = handle
        self.failure: OSError | None = None

    def writable(self) -> bool:
        """Always true; libraries ask."""
        return True

    def seekable(self) -> bool:
        """Always true: writers of archives go back to fill in lengths."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to another place.

        Args:
            offset: in bytes.
            whence: from where, as `os.lseek` takes it.
        """
        return os.lseek(self._handle, offset, whence)

    def write(self, data: Any) -> int:
        """Write all of the bytes.

        Args:
            data: anything that holds bytes.
        """
        if self.closed:
            raise ValueError("the file is written already")
        rest = memoryview(data).cast("B")
        n_bytes = len(rest)
        try:
            # The system may take the bytes in several pieces.
            while rest:
                n_written = os.write(self._handle, rest)
                rest = rest[n_written:]
        except OSError as failure:
            self.failure = failure
            raise
        return n_bytes

    def sync(self) -> None:
        """Wait until all of it is on the disk; raises if a write failed, even one that was ignored."""
        if self.failure is not None:
            raise self.failure
        os.fsync(self._handle)

    def close(self) -> None:
        """Close the file; more than once does no harm."""
        if not self.closed:
            os.close(self._handle)
        super().close()


@contextmanager
def whole_file(
    path: str | Path, *, make_parents: bool = False, error: type[PslrecError] = FileError
) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the place of the one at `path` once it is written and synced.

    If anything goes wrong, the old file stays as it was and nothing is left beside it.

    Args:
        path: of the file; a link is followed.
        make_parents: whether to make the directories above it; otherwise they must exist.
        error: raised if the file cannot be written.
    """
    target = _target(path, error)
    with explained(path, "written", error=error):
        if make_parents:
            target.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(target.parent)
        temporary, file = _temporary_file(target)
        try:
            yield cast(IO[bytes], file)
            # Before the rename: a sudden end must not leave an empty file under the final name.
            file.sync()
            if os.name == "nt":  # where an open file cannot be renamed
                file.close()
            temporary.replace(target)
            sync_directory(target.parent)
        except BaseException as stop:
            # Libraries make all kinds of exceptions of a full disk; the file knows better.
            if file.failure is None or file.failure is stop:
                raise
            raise file.failure from stop
        finally:
            file.close()
            temporary.unlink(missing_ok=True)


def write_bytes(path: str | Path, content: bytes, *, error: type[PslrecError] = FileError) -> None:
    """Write a file, whole or not at all; see `whole_file`."""
    with whole_file(path, error=error) as file:
        file.write(content)


def write_text(path: str | Path, text: str, *, error: type[PslrecError] = FileError) -> None:
    """Write a text, whole or not at all; see `whole_file`."""
    write_bytes(path, text.encode(), error=error)


def append_line(path: Path, text: str, *, error: type[PslrecError] = FileError) -> None:
    """Add a line and sync; if that fails, the file stays as it was.

    A sudden end may leave the line cut short.

    Args:
        path: of the file; it is made if it does not exist.
        text: the line.
        error: raised if it cannot be written.
    """
    if path.exists():
        # Opening a pipe would block until somebody reads from it.
        check_regular(path, error=error)
    with explained(path, "written", error=error), path.open("ab", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        rest = memoryview(f"{text}\n".encode())
        try:
            while rest:
                n_written = os.write(file.fileno(), rest)
                rest = rest[n_written:]
            os.fsync(file.fileno())
        except OSError:
            file.truncate(size)
            raise


def drop_torn_line(path: Path, *, error: type[PslrecError] = FileError) -> None:
    """Remove what follows the last line break: the line that a sudden end has cut short.

    Args:
        path: of the file; the caller keeps others from writing to it.
        error: raised if it cannot be written.
    """
    with explained(path, "written", error=error), path.open("rb+") as file:
        size = file.seek(0, os.SEEK_END)
        end = size
        while end:
            file.seek(end - 1)
            if file.read(1) == b"\n":
                break
            end -= 1
        if end < size:
            file.truncate(end)


@contextmanager
def whole_directory(path: str | Path, *, error: type[PslrecError] = FileError) -> Iterator[Path]:
    """A directory to put files into, which appears at `path` once all of them are there.

    If anything goes wrong, none of them does.

    Args:
        path: of the directory; those above it are made. If it exists, files are put beside those
            that it holds, each by a rename.
        error: raised if the directory cannot be written.
    """
    directory = Path(os.path.realpath(local_path(path, error=error)))
    with explained(path, "written", error=error):
        directory.parent.mkdir(parents=True, exist_ok=True)
        exists = directory.is_dir()
        if exists:
            # It may be a mounted one, or in a place where only it may be written to.
            place = directory
            name = temporary_name("")
        else:
            place = directory.parent
            name = temporary_name(directory.name)
        remove_leftovers(place)
        temporary, handle = _temporary_directory(place / name)
        try:
            yield temporary
            if exists:
                for each in sorted(temporary.iterdir()):
                    each.replace(directory / each.name)
            else:
                temporary.replace(directory)
            sync_directory(place)
        finally:
            if handle is not None:
                os.close(handle)
            shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def replaced_directory(path: Path, *, error: type[PslrecError] = FileError) -> Iterator[Path]:
    """A place for a new directory, which then takes that of the one at `path`.

    If anything goes wrong before, the old directory stays as it was. The two are exchanged by two
    renames: a sudden end between them leaves neither at `path`, but nothing half-written.

    Args:
        path: of the directory to replace, which is removed with all that is in it.
        error: raised if the directory cannot be written.
    """
    target = Path(os.path.realpath(path))
    with explained(path, "written", error=error):
        remove_leftovers(target.parent)
        temporary, handle = _temporary_directory(target.parent / temporary_name(target.name))
        try:
            yield temporary / "new"
            target.replace(temporary / "old")
            (temporary / "new").replace(target)
            sync_directory(target.parent)
        finally:
            if handle is not None:
                os.close(handle)
            shutil.rmtree(temporary, ignore_errors=True)


def remove_leftovers(directory: Path) -> None:
    """Remove what killed processes left half-written in a directory.

    Args:
        directory: only files with temporary names are looked at; one that another process is
            writing is locked, and stays.
    """
    if not CAN_LOCK_DIRECTORIES:
        return
    with os.scandir(directory) as entries:
        names = [entry.name for entry in entries if is_temporary(entry.name)]
    for name in names:
        path = directory / name
        # It may be finished or removed at any moment, or belong to somebody else.
        with suppress(OSError):
            is_directory = path.is_dir()
            # Directories cannot be opened for writing. Whatever is there must not be followed
            # elsewhere, and must not keep us waiting.
            flags = os.O_RDONLY if is_directory else os.O_RDWR
            handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                if not take_lock(handle, wait=False):
                    continue
                if is_directory:
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink()
            finally:
                os.close(handle)


def remove_file(path: Path, *, error: type[PslrecError] = FileError) -> None:
    """Remove a file that is of no use any more.

    Args:
        path: of the file; it may be gone already.
        error: raised if it cannot be removed.
    """
    with explained(path, "removed", error=error):
        path.unlink(missing_ok=True)


def remove_directory(path: Path, *, error: type[PslrecError] = FileError) -> None:
    """Remove a directory with all that is in it.

    It gets a temporary name first: what is left of it after a sudden end is never taken for whole.

    Args:
        path: of the directory; it may be gone already.
        error: raised if it cannot be removed.
    """
    with explained(path, "removed", error=error):
        if not path.exists():
            return
        doomed = path.with_name(temporary_name(path.name))
        path.replace(doomed)
        shutil.rmtree(doomed)


def sync_directory(directory: Path) -> None:
    """Make a rename last, where the system can.

    Without it, a sudden end may bring the old file back, which is whole as well.

    Args:
        directory: in which something was renamed.
    """
    if os.name == "nt":  # where a directory cannot be opened
        return
    with suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _target(path: str | Path, error: type[PslrecError]) -> Path:
    """The file that is going to be replaced."""
    target = Path(os.path.realpath(local_path(path, error=error)))
    with explained(path, "written", error=error):
        try:
            mode = target.stat().st_mode
        except FileNotFoundError:
            return target
    if stat.S_ISDIR(mode):
        raise error(f"{path} is a directory; give the name of a file in it")
    if not stat.S_ISREG(mode):
        # Renaming something over a device would remove the device.
        raise error(
            f"{path} must be a regular file or absent, got a device, a pipe or a socket; choose "
            "another place"
        )
    return target


def _temporary_file(target: Path) -> tuple[Path, WholeFile]:
    """A new file beside the target, locked as long as it is open."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        temporary = target.with_name(temporary_name(target.name))
        handle = os.open(temporary, flags, 0o666)
        take_lock(handle, wait=True)
        if os.fstat(handle).st_nlink:
            return temporary, WholeFile(handle)
        # Between the two calls another process took it for a leftover and removed it.
        os.close(handle)


def _temporary_directory(path: Path) -> tuple[Path, int | None]:
    """A new directory, locked as long as the handle beside it is open."""
    while True:
        path.mkdir()
        if not CAN_LOCK_DIRECTORIES:
            return path, None
        try:
            handle = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            # Another process took it for a leftover.
            continue
        take_lock(handle, wait=True)
        if os.fstat(handle).st_nlink:
            return path, handle
        os.close(handle)
