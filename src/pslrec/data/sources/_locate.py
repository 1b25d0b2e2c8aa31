"""Finding the files of a source on this machine, and fetching what is missing."""

import os
from pathlib import Path

from pslrec.data._download import Progress, UnwritableError, cache_directory, download, matches
from pslrec.data._interactions import Interactions
from pslrec.data.sources._base import SOURCES, Source
from pslrec.errors import DownloadError

IID = "iid"


def find(name: str, directory: Path | None = None) -> Path:
    """The file of a source: its published split where there is one, else its raw file.

    Looked for in `directory`, then in `PSLREC_DATA_DIR`, then in the cache. If it is nowhere, the error says
    what to download and where to put it.
    """
    source = SOURCES[name]
    for place in _places(directory):
        path = _split_in(source, place, IID) or _raw_in(source, place)
        if path is not None:
            return path
    raise _missing(source, directory)


def find_raw(name: str, directory: Path | None = None) -> Path | None:
    """The raw file of a source as its publishers made it, if it is on this machine."""
    return next(
        (path for place in _places(directory) if (path := _raw_in(SOURCES[name], place))), None
    )


def find_split(name: str, directory: Path | None = None, *, variant: str = IID) -> Path | None:
    """The published train/test split of a source, if it is on this machine.

    Args:
        name: of the source.
        directory: looked into before `PSLREC_DATA_DIR` and the cache.
        variant: "iid", or the shift of an out-of-distribution split: "popularity", "temporal".
    """
    return next(
        (
            path
            for place in _places(directory)
            if (path := _split_in(SOURCES[name], place, variant))
        ),
        None,
    )


def read_source(name: str, directory: Path | None = None) -> Interactions:
    """All interactions of a source's raw file, as published: nothing filtered, repeated pairs kept."""
    path = find_raw(name, directory)
    if path is None:
        raise _missing(SOURCES[name], directory)
    return SOURCES[name].read_raw(path)


def fetch(name: str, directory: Path | None = None, *, on_progress: Progress | None = None) -> Path:
    """Have the raw file of a source on this machine: at once if it is there already, else by downloading it.

    Args:
        name: of the source.
        directory: where the file shall be; without one, what is in `PSLREC_DATA_DIR` or the cache will do,
            and a download goes to the cache.
        on_progress: called with the bytes at hand and the bytes in all.
    """
    source = SOURCES[name]
    present = find_raw(name) if directory is None else _raw_in(source, directory)
    if present is not None:
        _check_present(source, present)
        return present
    target = cache_directory() if directory is None else directory
    if source.url is None:
        raise DownloadError(f"{source.title} has no direct address: {source.instructions(target)}")
    try:
        return download(
            source.url, target / source.raw_file, checksum=source.checksum, on_progress=on_progress
        )
    except UnwritableError:
        raise
    except DownloadError as error:
        raise DownloadError(
            f"{error}. By hand: {source.instructions(target)} ({source.page})"
        ) from error


def _check_present(source: Source, path: Path) -> None:
    # The checksum is that of the published file, not of what somebody unpacked from it.
    if path.name == source.raw_file and source.checksum and not matches(path, source.checksum):
        raise DownloadError(
            f"{path} does not have the checksum {source.checksum}; delete it and fetch it again"
        )


def _places(directory: Path | None) -> list[Path]:
    chosen = os.environ.get("PSLREC_DATA_DIR")
    return [
        *([directory] if directory else []),
        *([Path(chosen).expanduser()] if chosen else []),
        cache_directory(),
    ]


def _raw_in(source: Source, directory: Path) -> Path | None:
    return _first_file(directory, ("", "raw", source.name), (source.raw_file, *source.other_files))


def _split_in(source: Source, directory: Path, variant: str) -> Path | None:
    if variant == IID:
        return _first_file(directory, ("", IID), (f"{source.stem}.zip",))
    return _first_file(directory, ("", "ood"), (f"{source.stem}-{variant}.zip",))


def _first_file(directory: Path, folders: tuple[str, ...], names: tuple[str, ...]) -> Path | None:
    candidates = (directory / folder / name for folder in folders for name in names)
    return next((path for path in candidates if path.is_file()), None)


def _missing(source: Source, directory: Path | None) -> DownloadError:
    places = ", ".join(map(str, _places(directory)))
    automatic = f"run `pslrec data fetch {source.name}`, or " if source.url else ""
    target = directory or cache_directory()
    return DownloadError(
        f"{source.title} is not in {places}: {automatic}{source.instructions(target)}"
    )
