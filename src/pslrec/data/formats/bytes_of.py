"""The bytes of a file, decompressed if need be, with clear errors for what can go wrong on the way."""

import gzip
import zlib
from pathlib import Path

from pslrec.errors import DataError


def decompressed(path: Path) -> bytes | Path:
    """The content of a gzipped file, or the path itself where a reader can take the file as it is."""
    check_readable(path)
    if path.suffix != ".gz":
        return path
    try:
        return gzip.decompress(path.read_bytes())
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: the gzip file is truncated or damaged ({error}); fetch it again") from error


def first_lines(path: Path, count: int) -> tuple[list[str], int]:
    """The first lines that are not blank, without their ends, and how many blank ones stand before them."""
    check_readable(path)
    opener = gzip.open if path.suffix == ".gz" else open
    lines: list[str] = []
    blank_lines = 0
    try:
        with opener(path, "rt", encoding="utf-8-sig", errors="replace", newline=None) as file:
            for line in file:
                if line.strip():
                    lines.append(line.rstrip("\r\n"))
                blank_lines += not lines
                if len(lines) == count:
                    break
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: the gzip file is truncated or damaged ({error}); fetch it again") from error
    return lines, blank_lines


def check_readable(path: Path) -> None:
    """Raise a clear error where there is no file to read."""
    if path.is_dir():
        raise DataError(f"{path} is a directory, a file was expected")
    if not path.exists():
        raise DataError(f"{path}: no such file")
    try:
        path.open("rb").close()
    except OSError as error:
        raise DataError(f"{path} can not be read: {error.strerror}") from error
