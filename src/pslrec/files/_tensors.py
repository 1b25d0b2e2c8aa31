"""Named tensors in safetensors files; nothing in such a file is ever executed."""

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from pslrec.errors import PslrecError
from pslrec.files._places import FileError
from pslrec.files._reading import check_regular
from pslrec.files._writing import whole_file

_DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.bool: "BOOL",
}


def write_tensors(
    path: Path,
    tensors: Mapping[str, Tensor],
    metadata: Mapping[str, str],
    *,
    error: type[PslrecError] = FileError,
) -> None:
    """Write named tensors, whole or not at all; see `whole_file`.

    The library itself writes to paths only. So the format is written here: the length of the header
    in 8 bytes, the header as JSON, then one tensor after the other.

    Args:
        path: of the file.
        tensors: by name.
        metadata: texts by name.
        error: raised if the file cannot be written.
    """
    # Wide types first, so that every tensor lies where its type may begin.
    ordered = sorted(tensors.items(), key=lambda entry: (-entry[1].element_size(), entry[0]))
    header: dict[str, object] = {"__metadata__": dict(metadata)}
    end = 0
    for name, tensor in ordered:
        begin = end
        end = begin + tensor.nbytes
        header[name] = {
            "dtype": _DTYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    # Spaces, which JSON ignores, let the first tensor begin at a multiple of 8 bytes.
    text += b" " * (-len(text) % 8)
    with whole_file(path, error=error) as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _, tensor in ordered:
            flat = tensor.detach().contiguous().reshape(-1)
            # The bytes where they lie: a copy would need the memory of the model once more.
            file.write(flat.view(torch.uint8).numpy().data)


def read_tensors(
    path: Path, *, error: type[PslrecError] = FileError
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Named tensors and metadata.

    Args:
        path: of the file.
        error: raised if it is not such a file.
    """
    check_regular(path, error=error)
    try:
        with safe_open(path, framework="pt") as file:
            names = list(file.keys())
            tensors = {name: file.get_tensor(name) for name in names}
            return tensors, file.metadata() or {}
    # What the library raises for a damaged file depends on the damage.
    except (
        SafetensorError,
        OSError,
        ValueError,
        TypeError,
        RuntimeError,
        OverflowError,
        AttributeError,
    ) as failure:
        raise error(f"{path} is not a file of tensors that can be read: {failure}") from failure
