"""Writing files that are whole or absent, even if the machine stops in the middle."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from pslrec.errors import PslrecError


class ArtifactError(PslrecError):
    """A run directory can not be read, written or understood."""


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A temporary name to write to, which takes the place of the file once that has gone well."""
    temporary = path.with_name(f".{path.name}.new")
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_directory(path.parent)
    except (OSError, SafetensorError) as error:
        temporary.unlink(missing_ok=True)
        raise ArtifactError(f"{path} can not be written: {getattr(error, 'strerror', None) or error}") from error


def write_bytes(path: Path, content: bytes) -> None:
    """Write to a temporary name, sync, rename."""
    with _replacing(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """As `write_bytes`."""
    write_bytes(path, text.encode())


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write named tensors as safetensors: to a temporary name, sync, rename."""
    with _replacing(path) as temporary:
        save_file(dict(tensors), temporary, dict(metadata))
        temporary.chmod(0o666 & ~_umask())  # the library makes it readable to its owner alone


def append_line(path: Path, text: str) -> None:
    """Add a line and sync; a sudden end may leave it cut short."""
    try:
        with path.open("a") as file:
            file.write(f"{text}\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise ArtifactError(f"{path} can not be written: {error.strerror}") from error


def read_text(path: Path) -> str:
    """The text of a file of ours."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ArtifactError(f"{path} can not be read: {getattr(error, 'strerror', None) or error}") from error


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Named tensors and metadata of a safetensors file; nothing in it is ever executed."""
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise ArtifactError(f"{path} is not a file that can be read: {error}") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def sync_directory(directory: Path) -> None:
    """Make a rename last."""
    if os.name == "nt":  # where a directory can not be opened
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
