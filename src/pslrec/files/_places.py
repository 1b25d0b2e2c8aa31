"""Where files may lie, and what people are told when the system refuses."""

import errno
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pslrec.errors import PslrecError

# `Path` makes one slash of two, so one is enough to know an address by. A single letter is a drive
# of Windows.
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
# The name of a file that is being written, which ends with the name that it is going to have.
_TEMPORARY = re.compile(r"\.pslrec-[0-9a-f]{16}-")
# File systems allow 255 bytes, of which the prefix of a temporary name needs some.
_LONGEST_NAME = 200
# A disk, a quota or the largest file that a process may write.
_IS_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class FileError(PslrecError):
    """A file or directory cannot be read, written or understood."""


def local_path(path: str | Path, *, error: type[PslrecError] = FileError) -> Path:
    """The path, after checking that it can be one of this machine.

    Args:
        path: as a person gave it.
        error: raised for addresses such as `s3://`, and for names that the system cannot store.

    >>> local_path("runs/first").name
    'first'
    >>> local_path("s3://bucket/first")
    Traceback (most recent call last):
    pslrec.files._places.FileError: `path` must be on this machine, got s3://bucket/first; \
copy it from or to there yourself
    """
    text = os.fspath(path)
    address = _ADDRESS.match(text)
    if address:
        rest = text[address.end() :].removeprefix("/")
        # Without a password or a query, which would end up in a log.
        host, slash, below = rest.partition("/")
        rest = re.sub(r"^[^@]*:[^@]*@", "", host) + slash + re.sub(r"\?[^/?]*=.*", "", below)
        raise error(
            f"`path` must be on this machine, got {address[1]}://{rest}; copy it from or to there "
            "yourself"
        )
    is_name = "\0" not in text
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        is_name = False
    if not is_name:
        raise error(
            f"`path` must be a name that the system can store, got {text!r}; choose another name"
        )
    return Path(path)


def make_directory(path: str | Path, *, error: type[PslrecError] = FileError) -> Path:
    """Make a directory and those above it, unless they exist; returns its path.

    Args:
        path: of the directory.
        error: raised if that is not possible.
    """
    directory = local_path(path, error=error)
    with explained(directory, "written to", error=error):
        directory.mkdir(parents=True, exist_ok=True)
    return directory


@contextmanager
def explained(
    path: str | Path, attempt: str, *, error: type[PslrecError] = FileError
) -> Iterator[None]:
    """Turn errors of the system into one sentence about a file.

    Args:
        path: what the work inside is about.
        attempt: what cannot be done with it: "read", "written".
        error: raised in place of the system's.
    """
    try:
        yield
    except BrokenPipeError:
        # The reader of our output went away. That is about no file, and the command line knows what
        # to do.
        raise
    except OSError as failure:
        sentence = f"{_shown(path)} cannot be {attempt}: {reason_of(failure)}"
        if attempt.startswith("written"):
            sentence += f"; {_advice(failure)}"
        raise error(sentence) from failure


def is_about_room(error: BaseException) -> bool:
    """Whether an error of `explained` says that the disk is full, so that continuing is pointless.

    Args:
        error: as it was caught.
    """
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno in _IS_FULL


def reason_of(failure: OSError) -> str:
    """What the system said, to stand within a sentence.

    Args:
        failure: the system's error.

    >>> reason_of(OSError(28, "No space left on device"))
    'no space left on device'
    """
    # Libraries raise OSError with a text of their own, or with none at all.
    reason = failure.strerror or str(failure) or type(failure).__name__
    return f"{reason[:1].lower()}{reason[1:]}"


def _advice(failure: OSError) -> str:
    if failure.errno in _IS_FULL:
        return "make room or choose another place"
    return "choose another place"


def temporary_name(name: str) -> str:
    """A name that nothing else has, for a file while it is being written.

    Args:
        name: that the file is going to have.

    >>> is_temporary(temporary_name("model")), is_temporary("model")
    (True, False)
    """
    # Letter by letter: a cut between bytes might leave half a character.
    while len(os.fsencode(name)) > _LONGEST_NAME:
        name = name[:-1]
    return f".pslrec-{secrets.token_hex(8)}-{name}"


def is_temporary(name: str) -> bool:
    """Whether a name is one of `temporary_name`."""
    return _TEMPORARY.match(name) is not None


def _shown(path: str | Path) -> Path:
    """The path as a person knows it, also within a directory that still has a temporary name."""
    parts = [_TEMPORARY.sub("", part) for part in Path(path).parts]
    return Path(*parts)
