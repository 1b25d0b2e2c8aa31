"""The bytes of a file, decompressed if need be, with clear errors for what can go wrong on the way."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pslrec.errors import DataError

GZIP_MAGIC = b"\x1f\x8b"


def decompressed(path: Path) -> bytes | Path:
    """The content of a gzipped file, or the path itself where a reader can take the file as it is."""
    if not is_gzipped(path):
        return as_it_is(path)
    with clear_gzip_errors(path), gzip.open(path, "rb") as file:
        return file.read()


def as_it_is(path: Path) -> bytes | Path:
    """The path itself, or the bytes where polars would take its name for a pattern of names."""
    return path.read_bytes() if any(character in str(path) for character in "*?[") else path


def in_memory(content: bytes | Path) -> bytes:
    """The bytes themselves, for the slow second look at a file in which something is wrong."""
    return content.read_bytes() if isinstance(content, Path) else content


def first_lines(path: Path, count: int) -> list[tuple[int, str]]:
    """The first lines that are not blank, without their ends, each with its number in the file."""
    opener = gzip.open if is_gzipped(path) else open
    lines: list[tuple[int, str]] = []
    with clear_gzip_errors(path), opener(path, "rt", encoding="utf-8-sig", errors="replace", newline="\n") as file:
        for number, line in enumerate(file, start=1):
            if "\0" in line:
                raise DataError(
                    f"{path}: line {number} is not UTF-8 text but binary or UTF-16; convert the file to UTF-8"
                )
            if line.strip():
                lines.append((number, line.rstrip("\r\n")))
            if len(lines) == count:
                break
    if not lines:
        raise DataError(f"{path}: the file is empty")
    if len(lines) == 1 and "\r" in lines[0][1]:
        raise DataError(f"{path}: its lines end with carriage returns only; convert them to line feeds")
    return lines


def is_gzipped(path: Path) -> bool:
    """Whether the content is compressed, whatever the name; raises where there is no file to read, or it is no gzip."""
    check_readable(path)
    with path.open("rb") as file:
        start = file.read(len(GZIP_MAGIC))
    if path.suffix.lower() == ".gz" and start and start != GZIP_MAGIC:
        raise DataError(f"{path}: the name ends in .gz but the content is not gzip; fetch it again, or rename it")
    return start == GZIP_MAGIC


@contextmanager
def clear_gzip_errors(path: Path) -> Iterator[None]:
    """Turn what goes wrong in unpacking into one clear sentence."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: the gzip file is truncated or damaged ({error}); fetch it again") from error


def check_readable(path: Path) -> None:
    """Raise a clear error where there is no file to read."""
    try:
        if path.is_dir():
            raise DataError(f"{path} is a directory, a file was expected")
        if not path.exists():
            raise DataError(f"{path}: no such file")
        if not path.is_file():
            raise DataError(f"{path} is a pipe or a device, which can not be read twice; save it to a file first")
        path.open("rb").close()
    except OSError as error:
        raise DataError(f"{path} can not be read: {error.strerror}") from error
