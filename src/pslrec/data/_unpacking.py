"""Zips, unpacked to a directory that lasts as long as it is read."""

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
    """The directory at `path`, or the one directory that holds the data in the zip at `path`.

    Args:
        path: a directory or a zip.
        holds_data: whether a directory is the one that is looked for.
        is_needed: whether a file of this name is unpacked; others may be of any size.
    """
    try:
        is_there = path.exists()
    except OSError as error:
        raise DataError(f"{path} can not be read: {error.strerror}") from error
    if not is_there:
        raise DataError(f"{path}: no such file or directory")
    if path.is_dir():
        yield path
        return
    with TemporaryDirectory() as temporary:
        root = Path(temporary)
        _unzip(path, root, is_needed)
        found = [
            directory
            for directory in sorted([root, *root.rglob("*")])
            if directory.is_dir() and holds_data(directory)
        ]
        if len(found) != 1:
            raise DataError(
                f"{path}: a zip must have one directory with `train.tsv` and `test.tsv`, this one has {len(found) or 'none'}; "
                "unpack it and give the file or directory you mean"
            )
        yield found[0]


def _unzip(path: Path, directory: Path, is_needed: Callable[[str], bool]) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
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
    inside = PurePosixPath(name.replace("\\", "/"))
    if inside.is_absolute() or ".." in inside.parts or ":" in name:
        raise DataError(
            f"{path}: the zip has an unsafe path `{name}` and was not unpacked; get it from elsewhere"
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
        # Bytes are counted as they come: the sizes that a zip states of its files need not be true.
        with archive.open(member) as packed, whole_file(target, error=DataError) as file:
            for piece in limited(packed, path, already=n_unpacked):
                file.write(piece)
                n_unpacked += len(piece)
