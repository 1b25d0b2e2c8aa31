"""Writing files that are whole or absent, even if the machine stops in the middle."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from pslrec.errors import PslrecError

_DTYPES = {torch.float64: "F64", torch.float32: "F32", torch.int64: "I64", torch.int32: "I32", torch.bool: "BOOL"}


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
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise ArtifactError(f"{path} can not be written: {error.strerror or error}") from error


def write_bytes(path: Path, content: bytes) -> None:
    """Write to a temporary name, sync, rename."""
    with _replacing(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """As `write_bytes`."""
    write_bytes(path, text.encode())


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write named tensors as safetensors: to a temporary name, sync, rename.

    The library writes to a temporary name of its own, of which every kill would leave a copy; so the format is written here:
    the length of the header in 8 bytes, the header as JSON, then one tensor after the other.
    """
    # Wide types first, so that every tensor lies where its type may begin.
    ordered = sorted(tensors.items(), key=lambda entry: (-entry[1].element_size(), entry[0]))
    header: dict[str, object] = {"__metadata__": dict(metadata)}
    end = 0
    for name, tensor in ordered:
        begin, end = end, end + tensor.nbytes
        header[name] = {"dtype": _DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with _replacing(path) as temporary, temporary.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _, tensor in ordered:
            file.write(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().data)


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


def sync_directory(directory: Path) -> None:
    """Make a rename last."""
    if os.name == "nt":  # where a directory can not be opened
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
