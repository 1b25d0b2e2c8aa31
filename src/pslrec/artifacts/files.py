"""Writing files that are whole or absent, even if the machine stops in the middle."""

import os
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from pslrec.errors import PslrecError


class ArtifactError(PslrecError):
    """A run directory can not be read, written or understood."""


def write_bytes(path: Path, content: bytes) -> None:
    """Write to a temporary name, sync, rename."""
    temporary = path.with_name(f".{path.name}.new")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_directory(path.parent)


def write_text(path: Path, text: str) -> None:
    """As `write_bytes`."""
    write_bytes(path, text.encode())


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write named tensors as safetensors: to a temporary name, sync, rename."""
    temporary = path.with_name(f".{path.name}.new")
    save_file(dict(tensors), temporary, dict(metadata))
    temporary.chmod(0o666 & ~_umask())  # the library makes it readable to its owner alone
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_directory(path.parent)


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
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
