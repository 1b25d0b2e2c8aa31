"""Reading files that may hold anything.

Such a file may be a pipe that never ends, a text that fills the memory, or a table where a name
should be.
"""

import json
import os
import stat
import tomllib
from pathlib import Path
from typing import Any

from pslrec.errors import PslrecError
from pslrec.files._places import FileError, explained, local_path

# Configurations and metrics take a few thousand bytes.
LARGEST_TEXT = 2**24
# A line of a log takes about 150 bytes: this is a million epochs.
LARGEST_LOG = 2**28


def check_regular(path: Path, *, error: type[PslrecError] = FileError) -> None:
    """Raise unless there is a regular file, or a link to one.

    Reading a pipe or a device may never end.

    Args:
        path: of the file.
        error: raised if it is missing or something else.
    """
    with explained(path, "read", error=error):
        mode = path.stat().st_mode
    _check_mode(mode, path, error)


def _check_mode(mode: int, path: Path, error: type[PslrecError]) -> None:
    if stat.S_ISREG(mode):
        return
    kind = "a device, a pipe or a socket"
    if stat.S_ISDIR(mode):
        kind = "a directory"
    raise error(f"{path} must be a regular file, got {kind}; remove it or put the file back")


def read_text(
    path: Path,
    *,
    limit: int = LARGEST_TEXT,
    may_be_pipe: bool = False,
    damaged: str = "strict",
    error: type[PslrecError] = FileError,
) -> str:
    """The text of a file.

    Args:
        path: of the file, which must be a regular one.
        limit: bytes that it may have.
        may_be_pipe: whether a pipe is accepted, and read until its end.
        damaged: what to do with bytes that are not text, as `bytes.decode` takes it; "strict"
            raises.
        error: raised if it cannot be read or is too long.
    """
    local_path(path, error=error)
    # A pipe that is expected is waited for.
    opener = None if may_be_pipe else _open_at_once
    with explained(path, "read", error=error), open(path, "rb", opener=opener) as file:
        if not may_be_pipe:
            # Of the open file: at the path there may be another one by now.
            _check_mode(os.fstat(file.fileno()).st_mode, path, error)
        # One byte more than allowed tells a file that is too long from one that just fits.
        content = file.read(limit + 1)
    if len(content) > limit:
        raise error(f"{path} is too large: it must have at most {limit:,} bytes")
    try:
        return content.decode("utf-8", errors=damaged)
    except UnicodeDecodeError as failure:
        raise error(
            f"{path} cannot be read: it is not text in UTF-8 ({failure.reason})"
        ) from failure


def _open_at_once(path: str, flags: int) -> int:
    # Opening a pipe would block until somebody writes to it.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def read_json(path: Path, *, error: type[PslrecError] = FileError) -> dict[str, Any]:
    """The names and values of a file with a JSON object.

    Args:
        path: of the file.
        error: raised if it holds anything else.
    """
    return parsed_json(read_text(path, error=error), path, error=error)


def parsed_json(
    text: str, where: str | Path, *, error: type[PslrecError] = FileError
) -> dict[str, Any]:
    """The names and values of a JSON object.

    Args:
        text: as it was read.
        where: it was found, for messages.
        error: raised if it is anything else.
    """
    try:
        found = json.loads(text)
    # Thousands of brackets inside each other are JSON, but too much for the reader.
    except (ValueError, RecursionError) as failure:
        raise error(f"{where} is not JSON: {failure}") from failure
    if not isinstance(found, dict):
        raise error(f"{where} must hold a JSON object, got {type(found).__name__}")
    return found


def read_toml(path: Path, *, error: type[PslrecError] = FileError) -> dict[str, Any]:
    """The sections of a TOML file.

    Args:
        path: of the file.
        error: raised if it is not TOML.
    """
    return parsed_toml(read_text(path, error=error), path, error=error)


def parsed_toml(
    text: str, where: str | Path, *, error: type[PslrecError] = FileError
) -> dict[str, Any]:
    """The sections of a TOML text.

    Args:
        text: as it was read.
        where: it was found, for messages.
        error: raised if it is not TOML.
    """
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError, OverflowError) as failure:
        raise error(f"{where} is not TOML: {failure}") from failure
