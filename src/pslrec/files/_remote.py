"""Object storage: directories and files at addresses such as `s3://bucket/run`, through fsspec.

Everything else in pslrec works on files of this machine. What lies at an address is copied here
before it is read, and what is to lie there is written here first and copied when it is whole.
Credentials come from the environment, as the libraries of each provider document it.
"""

import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from pslrec.errors import PslrecError
from pslrec.files._addresses import (
    BACKENDS,
    address_of,
    is_address,
    shown_address,
    without_secrets,
)
from pslrec.files._places import FileError, is_temporary, local_path
from pslrec.files._writing import whole_file

# Signs that stand for parts of names.
_PATTERN = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class StoredFile:
    """A file at an address.

    Args:
        address: of the file.
        name: relative to what was asked for, with `/` between its parts.
        size: in bytes.
        stamp: changes whenever the content does: a checksum or a time, as the storage has it.
    """

    address: str
    name: str
    size: int
    stamp: str


def stored_files(path: str | Path, *, error: type[PslrecError] = FileError) -> list[StoredFile]:
    """The files at an address, in the order of their names: one file, a directory, or a pattern.

    Args:
        path: an address; `*`, `**`, `?` and `[...]` stand for parts of names.
        error: raised if there are none, or if the storage cannot be reached.
    """
    address = address_of(path, error=error)
    with _explained(address, "read", error):
        system, place = _file_system(address, error)
        found = _details(system, place)
        root = _fixed_part(place)
        stored = []
        for name in sorted(found):
            details = found[name]
            relative = name.removeprefix(root).strip("/") or PurePosixPath(name).name
            stamp = str(_first_of(details, ("ETag", "etag", "md5Hash", "oid", "LastModified")))
            full = str(system.unstrip_protocol(name))
            stored.append(StoredFile(full, relative, int(details.get("size") or 0), stamp))
    if not stored:
        raise error(f"{shown_address(address)}: there are no files at this address")
    return stored


def _details(system: Any, place: str) -> dict[str, dict[str, Any]]:
    if _PATTERN.search(place):
        found = system.glob(place, detail=True)
        return {name: each for name, each in found.items() if each.get("type") == "file"}
    found = system.find(place, detail=True)
    return dict(found)


def _first_of(details: dict[str, Any], names: Sequence[str]) -> object:
    for name in (*names, "mtime", "last_modified", "created"):
        if details.get(name) is not None:
            return details[name]
    return ""


def _fixed_part(place: str) -> str:
    """The directory above the first part of a pattern, or the place itself."""
    found = _PATTERN.search(place)
    if found is None:
        return place
    return place[: found.start()].rpartition("/")[0]


@contextmanager
def at_hand(path: str | Path, *, error: type[PslrecError] = FileError) -> Iterator[Path]:
    """A path of this machine: the one given, or a copy of what lies at the address given.

    Args:
        path: a path, or an address; a copy has the same last name, and is removed at the end.
        error: raised if there is nothing, or if messages about the copy are errors of this kind.
    """
    if not is_address(path):
        yield local_path(path, error=error)
        return
    with tempfile.TemporaryDirectory(prefix="pslrec-") as temporary:
        copy = fetch(path, Path(temporary), error=error)
        with named_as(path, copy):
            yield copy


@contextmanager
def named_as(path: str | Path, copy: Path) -> Iterator[None]:
    """Let messages about a copy name the address that it was made of.

    Args:
        path: the address.
        copy: the local copy, of which nobody knows.
    """
    try:
        yield
    except PslrecError as problem:
        problem.args = tuple(_renamed(part, copy, path) for part in problem.args)
        raise


def _renamed(part: object, copy: Path, path: str | Path) -> object:
    if isinstance(part, str):
        return part.replace(str(copy), shown_address(path))
    return part


def fetch(path: str | Path, directory: Path, *, error: type[PslrecError] = FileError) -> Path:
    """Copy what lies at an address to this machine; returns where it is.

    Args:
        path: an address of a file, a directory, or a pattern of names, which makes a directory.
        directory: the copy is made in it.
        error: raised if that is not possible.
    """
    address = address_of(path, error=error)
    files = stored_files(address, error=error)
    root = _fixed_part(address)
    target = directory / PurePosixPath(root).name
    is_file = len(files) == 1 and _below_scheme(files[0].address) == _below_scheme(address)
    for file in files:
        place = target
        if not is_file:
            place = target.joinpath(*PurePosixPath(file.name).parts)
        # A name from elsewhere must not lead out of the directory.
        if ".." in place.parts:
            raise error(f"{shown_address(file.address)}: `..` is not allowed in a name")
        _fetch_file(file, place, error)
    return target


def _below_scheme(address: str) -> str:
    return address.partition("://")[2].strip("/")


def _fetch_file(file: StoredFile, place: Path, error: type[PslrecError]) -> None:
    with _explained(file.address, "read", error):
        system, name = _file_system(file.address, error)
        with (
            system.open(name, "rb") as source,
            whole_file(place, make_parents=True, error=error) as target,
        ):
            shutil.copyfileobj(source, target, 1 << 24)


def holds_file(path: str | Path, name: str, *, error: type[PslrecError] = FileError) -> bool:
    """Whether there is a file of this name in the directory at an address.

    Args:
        path: the address of the directory.
        name: of the file.
        error: raised if the storage cannot be reached.
    """
    address = address_of(path, error=error)
    with _explained(address, "read", error):
        system, place = _file_system(address, error)
        return bool(system.exists(f"{place}/{name}"))


def store_directory(
    directory: Path, path: str | Path, *, last: str = "", error: type[PslrecError] = FileError
) -> None:
    """Copy the files of a directory to an address; locks and half-written files stay behind.

    Args:
        directory: of this machine.
        path: the address; files of the same name are replaced.
        last: the file that marks a complete directory, which is copied after all others.
        error: raised if that is not possible.
    """
    address = address_of(path, error=error)
    names = []
    for file in sorted(directory.iterdir()):
        if file.is_file() and file.name != "lock" and not is_temporary(file.name):
            names.append(file.name)
    names.sort(key=lambda name: name == last)
    with _explained(address, "written", error):
        system, place = _file_system(address, error)
        for name in names:
            system.put_file(str(directory / name), f"{place}/{name}")


@contextmanager
def working_directory(
    path: Path, *, resume: bool, mark: str, last: str, error: type[PslrecError] = FileError
) -> Iterator[Path]:
    """A directory of this machine to work in; for an address, its files are stored there at the end.

    Also after an error: what was written until then can be resumed. A process that is killed
    stores nothing.

    Args:
        path: of the directory, or an address.
        resume: begin with what lies at the address, if there is anything.
        mark: the file by which a directory is known that holds something already.
        last: the file that marks a complete directory.
        error: raised if the address cannot be read or written, or holds something already.
    """
    if not is_address(path):
        yield path
        return
    shown = shown_address(path)
    with tempfile.TemporaryDirectory(prefix="pslrec-") as temporary:
        directory = Path(temporary) / "run"
        # Now, not after hours of work.
        is_there = holds_file(path, mark, error=error)
        if is_there and not resume:
            raise error(f"{shown} already holds a run; resume it with --resume, or choose another")
        directory.mkdir()
        if is_there:
            for file in stored_files(path, error=error):
                _fetch_file(file, directory / PurePosixPath(file.name).name, error)
        try:
            with named_as(path, directory):
                yield directory
        finally:
            store_directory(directory, path, last=last, error=error)


def _file_system(address: str, error: type[PslrecError]) -> tuple[Any, str]:
    scheme = address.partition("://")[0]
    try:
        from fsspec.core import url_to_fs
    except ImportError as missing:
        raise error(
            f"{shown_address(address)}: object storage needs fsspec; "
            "install it with `pip install 'pslrec[remote]'`"
        ) from missing
    try:
        system, place = url_to_fs(address)
    except ImportError as missing:
        raise error(
            f"{shown_address(address)}: {scheme}:// needs {BACKENDS[scheme]}; "
            f"install it with `pip install {BACKENDS[scheme]}`"
        ) from missing
    return system, str(place).rstrip("/")


@contextmanager
def _explained(address: str, attempt: str, error: type[PslrecError]) -> Iterator[None]:
    try:
        yield
    except PslrecError:
        raise
    except Exception as failure:
        # Each provider has its own exceptions. Their messages may hold whole requests, and the
        # chain of causes is printed with its messages, so neither goes on as it is.
        reason = without_secrets(str(failure)).splitlines()
        text = f"{type(failure).__name__}: {reason[0]}" if reason else type(failure).__name__
        raise error(f"{shown_address(address)} cannot be {attempt} ({text})") from None
