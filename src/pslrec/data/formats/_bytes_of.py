"""The bytes of a file, unpacked if need be, with a clear error for whatever can go wrong."""

import gzip
import io
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from pslrec.data.formats._encodings import NUL, as_utf8, not_utf8, wrong_encoding
from pslrec.errors import DataError

GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LIMIT_VARIABLE = "PSLREC_UNPACK_LIMIT"
DEFAULT_LIMIT = "4GB"
LIMIT_UNITS = {"MB": 10**6, "GB": 10**9, "TB": 10**12}
# No table of interactions has a longer line. Without a limit, a packed file of one endless line
# would fill the memory.
LONGEST_LINE = 1 << 26
PIECE = 1 << 24


def decompressed(path: Path, encoding: str | None = None) -> bytes | Path:
    """The content of a gzipped file, or the path itself where a reader can open the file.

    Args:
        path: the file.
        encoding: of its text, which is then converted; `None` for UTF-8.
    """
    content = _unpacked(path)
    if encoding is None:
        return content
    return as_utf8(in_memory(content), encoding, path)


def _unpacked(path: Path) -> bytes | Path:
    if not is_gzipped(path):
        return as_it_is(path)
    try:
        with clear_gzip_errors(path), gzip.open(path, "rb") as file:
            return b"".join(limited(file, path))
    except MemoryError as error:
        raise DataError(
            f"{path}: unpacked, it does not fit into memory; split it into smaller files"
        ) from error


def as_it_is(path: Path) -> bytes | Path:
    """The path itself, or the bytes where polars would take its name for a pattern of names."""
    if any(character in str(path) for character in "*?["):
        return path.read_bytes()
    return path


def in_memory(content: bytes | Path) -> bytes:
    """The bytes themselves, for a slow second look at a file in which something is wrong."""
    if isinstance(content, Path):
        return content.read_bytes()
    return content


def unpack_limit() -> int:
    """How many bytes a packed file may unpack to.

    The environment variable `PSLREC_UNPACK_LIMIT` sets it.

    >>> unpack_limit()
    4000000000
    """
    text = os.environ.get(LIMIT_VARIABLE, DEFAULT_LIMIT)
    parts = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(MB|GB|TB)\s*", text, flags=re.IGNORECASE)
    if parts is None:
        raise DataError(f"`{LIMIT_VARIABLE}` must be a size such as 500MB or 20GB, got `{text}`")
    number, unit = parts.groups()
    return int(float(number) * LIMIT_UNITS[unit.upper()])


def limited(file: IO[bytes] | gzip.GzipFile, path: Path, *, already: int = 0) -> Iterator[bytes]:
    """The unpacked content in pieces, up to the limit.

    A small packed file may unpack to more than any disk holds.

    Args:
        file: what to read from.
        path: the packed file, for messages.
        already: bytes of the same archive that were unpacked before.
    """
    limit = unpack_limit()
    size = already
    while piece := file.read(PIECE):
        size += len(piece)
        if size > limit:
            raise DataError(too_large(path, limit))
        yield piece


def too_large(path: Path, limit: int) -> str:
    """The message about a file that unpacks to more than the limit."""
    return (
        f"{path}: it unpacks to more than {limit / 1e9:g} GB, which is refused; "
        f"if it is meant to be that large, raise the limit with the environment variable "
        f"{LIMIT_VARIABLE}, for example {LIMIT_VARIABLE}=50GB"
    )


def numbered_lines(path: Path, encoding: str | None = None) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, in UTF-8, each with its number in the file.

    Line ends and a byte-order mark are left out.

    Args:
        path: the file, perhaps gzipped.
        encoding: of its text; `None` for UTF-8.
    """
    number = 0
    size = 0
    packed = is_gzipped(path)
    limit = unpack_limit()
    with clear_gzip_errors(path), gzip.open(path, "rb") if packed else path.open("rb") as file:
        for line in _lines_of(file, path, encoding):
            number += 1
            size += len(line)
            if packed and size > limit:
                raise DataError(too_large(path, limit))
            if len(line) == LONGEST_LINE:
                megabytes = LONGEST_LINE >> 20
                raise DataError(
                    f"{path}: line {number} is longer than {megabytes} MB; this is not a table"
                )
            # UTF-16 has a zero byte in every ASCII character, and text in UTF-8 has none.
            if NUL in line:
                raise not_utf8(path, number, line)
            text = line.rstrip(b"\r\n")
            if number == 1:
                text = text.removeprefix(BYTE_ORDER_MARK)
            if text.strip():
                yield number, text


def _lines_of(file: IO[bytes] | gzip.GzipFile, path: Path, encoding: str | None) -> Iterator[bytes]:
    """The lines with their ends, in UTF-8 if they are in the encoding that was named."""
    if encoding is None:
        while line := file.readline(LONGEST_LINE):
            yield line
        return
    # A line ends with a line feed only, as in UTF-8.
    text = io.TextIOWrapper(file, encoding=encoding, newline="\n")
    try:
        while decoded := text.readline(LONGEST_LINE):
            yield decoded.encode()
    except UnicodeError as error:
        raise wrong_encoding(path, encoding) from error
    finally:
        # Whoever opened the file closes it.
        text.detach()


def first_lines(path: Path, count: int, encoding: str | None = None) -> list[tuple[int, str]]:
    """The first lines that are not blank, without their ends, each with its number in the file.

    Args:
        path: the file, perhaps gzipped.
        count: how many lines, if there are as many.
        encoding: of its text; `None` for UTF-8.
    """
    lines: list[tuple[int, str]] = []
    for number, line in numbered_lines(path, encoding):
        try:
            lines.append((number, line.decode()))
        except UnicodeDecodeError as error:
            raise not_utf8(path, number, line) from error
        if len(lines) == count:
            break
    if not lines:
        raise DataError(f"{path}: the file is empty")
    if len(lines) == 1 and "\r" in lines[0][1]:
        raise DataError(
            f"{path}: its lines end with carriage returns only; convert them to line feeds"
        )
    return lines


def is_gzipped(path: Path) -> bool:
    """Whether the content is compressed, whatever the name.

    Raises where there is no file to read, or where only the name says that it is gzip.
    """
    check_readable(path)
    with path.open("rb") as file:
        start = file.read(len(GZIP_MAGIC))
    # An empty file is reported as empty, not as damaged.
    if path.suffix.lower() == ".gz" and start and start != GZIP_MAGIC:
        raise DataError(
            f"{path}: the name ends in .gz but the content is not gzip; "
            "fetch it again, or rename it"
        )
    return start == GZIP_MAGIC


@contextmanager
def clear_gzip_errors(path: Path) -> Iterator[None]:
    """Turn whatever goes wrong in unpacking into one clear sentence."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"{path}: the gzip file is truncated or damaged ({error}); fetch it again"
        ) from error


def check_readable(path: Path) -> None:
    """Raise a clear error where there is no file to read."""
    try:
        if path.is_dir():
            raise DataError(f"{path} is a directory, a file was expected")
        if not path.exists():
            raise DataError(f"{path}: no such file")
        if not path.is_file():
            raise DataError(
                f"{path} is a pipe or a device, which cannot be read twice; save it to a file first"
            )
        # Opening is the only reliable test of permissions.
        path.open("rb").close()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
