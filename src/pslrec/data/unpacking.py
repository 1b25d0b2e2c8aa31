"""Zips, unpacked to a directory that lasts as long as it is read."""

import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from pslrec.errors import DataError


@contextmanager
def unpacked(path: Path, *, holds_data: Callable[[Path], bool]) -> Iterator[Path]:
    """The directory at `path`, or the one directory that holds the data in the zip at `path`."""
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
        _unzip(path, root)
        found = [
            directory for directory in sorted([root, *root.rglob("*")]) if directory.is_dir() and holds_data(directory)
        ]
        if len(found) != 1:
            raise DataError(
                f"{path}: a zip must have one directory with `train.tsv` and `test.tsv`, this one has {len(found) or 'none'}; "
                "unpack it and give the file or directory you mean"
            )
        yield found[0]


def _unzip(path: Path, directory: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                inside = PurePosixPath(name.replace("\\", "/"))
                if inside.is_absolute() or ".." in inside.parts or ":" in name:
                    raise DataError(
                        f"{path}: the zip has an unsafe path `{name}` and was not unpacked; get it from elsewhere"
                    )
            archive.extractall(directory)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
        raise DataError(f"{path}: not a zip, or it is truncated or damaged ({error}); fetch it again") from error
    except (RuntimeError, NotImplementedError) as error:
        raise DataError(
            f"{path}: the zip is encrypted or packed in an unusual way ({error}); unpack it by hand"
        ) from error
