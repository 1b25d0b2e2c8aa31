"""Finding the files of a source on this machine, and downloading those that are missing."""

import os
from pathlib import Path

from pslrec.data._download import Progress, UnwritableError, cache_directory, download, matches
from pslrec.data._interactions import Interactions
from pslrec.data.sources._base import SOURCES, Source
from pslrec.errors import DownloadError

IID = "iid"


def find(name: str, directory: Path | None = None) -> Path:
    """The file of a source: its published split where there is one, else its raw file.

    It is looked for in `directory`, then in `PSLREC_DATA_DIR`, then in the cache. If it is in none
    of them, the error says what to download and where to put it.
    """
    source = SOURCES[name]
    for place in _places(directory):
        # The split first: it is what the published numbers were made with.
        path = _split_in(source, place, IID) or _raw_in(source, place)
        if path is not None:
            return path
    raise _missing(source, directory)


def find_raw(name: str, directory: Path | None = None) -> Path | None:
    """The raw file of a source as its publishers made it, if it is on this machine."""
    source = SOURCES[name]
    for place in _places(directory):
        path = _raw_in(source, place)
        if path is not None:
            return path
    return None


def find_split(name: str, directory: Path | None = None, *, variant: str = IID) -> Path | None:
    """The published train/test split of a source, if it is on this machine.

    Args:
        name: which source.
        directory: searched before `PSLREC_DATA_DIR` and the cache.
        variant: "iid", or the shift of an out-of-distribution split: "popularity", "temporal".
    """
    source = SOURCES[name]
    for place in _places(directory):
        path = _split_in(source, place, variant)
        if path is not None:
            return path
    return None


def read_source(name: str, directory: Path | None = None) -> Interactions:
    """All interactions of a source's raw file as published: unfiltered, with repeated pairs."""
    path = find_raw(name, directory)
    if path is None:
        raise _missing(SOURCES[name], directory)
    return SOURCES[name].read_raw(path)


def fetch(name: str, directory: Path | None = None, *, on_progress: Progress | None = None) -> Path:
    """Return the raw file of a source, and download it first if it is not on this machine.

    Args:
        name: which source.
        directory: where the file must be. Without one, a file in `PSLREC_DATA_DIR` or the cache is
            good enough, and a download goes to the cache.
        on_progress: called with the bytes received so far and the bytes expected.
    """
    source = SOURCES[name]
    if directory is None:
        present = find_raw(name)
        target = cache_directory()
    else:
        present = _raw_in(source, directory)
        target = directory
    if present is not None:
        _check_present(source, present)
        return present
    if source.url is None:
        raise DownloadError(f"{source.title} has no direct address: {source.instructions(target)}")
    try:
        return download(
            source.url, target / source.raw_file, checksum=source.checksum, on_progress=on_progress
        )
    except UnwritableError:
        # Downloading by hand would not help where nothing can be written.
        raise
    except DownloadError as error:
        raise DownloadError(
            f"{error}. By hand: {source.instructions(target)} ({source.page})"
        ) from error


def _check_present(source: Source, path: Path) -> None:
    # The checksum belongs to the published file, not to what somebody unpacked from it.
    if path.name != source.raw_file or source.checksum is None:
        return
    if not matches(path, source.checksum):
        raise DownloadError(
            f"{path} does not have the checksum {source.checksum}; delete it and fetch it again"
        )


def _places(directory: Path | None) -> list[Path]:
    """The directories to search, in order."""
    places = []
    if directory:
        places.append(directory)
    chosen = os.environ.get("PSLREC_DATA_DIR")
    if chosen:
        places.append(Path(chosen).expanduser())
    places.append(cache_directory())
    return places


def _raw_in(source: Source, directory: Path) -> Path | None:
    return _first_file(directory, ("", "raw", source.name), (source.raw_file, *source.other_files))


def _split_in(source: Source, directory: Path, variant: str) -> Path | None:
    if variant == IID:
        return _first_file(directory, ("", IID), (f"{source.stem}.zip",))
    return _first_file(directory, ("", "ood"), (f"{source.stem}-{variant}.zip",))


def _first_file(directory: Path, folders: tuple[str, ...], names: tuple[str, ...]) -> Path | None:
    for folder in folders:
        for name in names:
            path = directory / folder / name
            if path.is_file():
                return path
    return None


def _missing(source: Source, directory: Path | None) -> DownloadError:
    places = ", ".join(map(str, _places(directory)))
    automatic = ""
    if source.url:
        automatic = f"run `pslrec data fetch {source.name}`, or "
    target = directory or cache_directory()
    return DownloadError(
        f"{source.title} is not in {places}: {automatic}{source.instructions(target)}"
    )
