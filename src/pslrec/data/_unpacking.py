"""Zips, unpacked to a temporary directory that lasts as long as it is read."""

import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from pslrec.data.formats import limited
from pslrec.errors import DataError
from pslrec.files import make_directory, whole_file


@contextmanager
def unpacked(
    path: Path, *, holds_data: Callable[[Path], bool], is_needed: Callable[[str], bool]
) -> Iterator[Path]:
    """The directory at `path`, or the one directory with data in the zip at `path`.

    Args:
        path: a directory or a zip.
        holds_data: tells whether a directory holds the data.
        is_needed: tells whether a file of this name is unpacked; the others may be of any size.
    """
    try:
        is_there = path.exists()
    except OSError as error:
        # For example a name that is longer than the file system allows.
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    if not is_there:
        raise DataError(f"{path}: no such file or directory")
    if path.is_dir():
        yield path
        return
    with TemporaryDirectory() as temporary:
        root = Path(temporary)
        _unzip(path, root, is_needed)
        directories = [place for place in (root, *root.rglob("*")) if place.is_dir()]
        found = list(filter(holds_data, directories))
        if len(found) != 1:
            raise DataError(
                f"{path}: a zip must have one directory with `train.tsv` and `test.tsv`, "
                f"this one has {len(found) or 'none'}; "
                "unpack it and give the file or directory you mean"
            )
        yield found[0]


@contextmanager
def unpacked_member(path: Path, member: str) -> Iterator[Path]:
    """One file of the zip at `path`, unpacked to a temporary directory.

    Args:
        path: a zip.
        member: the path of the file inside the zip, with slashes.
    """
    name = PurePosixPath(member).name
    with TemporaryDirectory() as temporary:
        root = Path(temporary)
        _unzip(path, root, lambda candidate: candidate == name)
        file = root / member
        if not file.is_file():
            raise DataError(
                f"{path}: there is no `{member}` in the zip; is it the file as published?"
            )
        yield file


def _unzip(path: Path, directory: Path, is_needed: Callable[[str], bool]) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            # All of them, before the first is unpacked.
            for name in archive.namelist():
                _check_safe(path, name)
            _extract(archive, path, directory, is_needed)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
        raise DataError(
            f"{path}: not a zip, or it is truncated or damaged ({error}); fetch it again"
        ) from error
    except (RuntimeError, NotImplementedError) as error:
        raise DataError(
            f"{path}: the zip is encrypted or packed in an unusual way ({error}); unpack it by hand"
        ) from error


def _check_safe(path: Path, name: str) -> None:
    # Such a path would write outside of the directory, on this system or on Windows.
    inside = PurePosixPath(name.replace("\\", "/"))
    if inside.is_absolute() or ".." in inside.parts or ":" in name:
        raise DataError(
            f"{path}: the zip has an unsafe path `{name}` and was not unpacked; "
            "get it from elsewhere"
        )


def _extract(
    archive: zipfile.ZipFile, path: Path, directory: Path, is_needed: Callable[[str], bool]
) -> None:
    n_unpacked = 0
    for member in archive.infolist():
        inside = PurePosixPath(member.filename)
        if member.is_dir() or not is_needed(inside.name):
            continue
        target = directory.joinpath(*inside.parts)
        make_directory(target.parent, error=DataError)
        # Bytes are counted as they come: the sizes that a zip states need not be true.
        with archive.open(member) as packed, whole_file(target, error=DataError) as file:
            for piece in limited(packed, path, already=n_unpacked):
                file.write(piece)
                n_unpacked += len(piece)
