"""What is to be prepared, by which settings, and whether it is large enough to go out of core."""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pslrec.data._loading import is_name
from pslrec.data._many_files import files_of
from pslrec.data._preparation import Preparation
from pslrec.data._published import is_published_split
from pslrec.data.formats import ReadOptions
from pslrec.data.splits import ValidationRule
from pslrec.errors import DataError
from pslrec.files import explained, is_address, stored_files

# Raised whenever the same plan gives other files.
VERSION = 2
# From these sizes of all files together, a log is prepared out of core unless somebody asks
# otherwise. In memory, a pair takes about a hundred bytes while it is prepared; in a Parquet file
# four to ten, in a text about thirty.
LARGE_PARQUET = 100_000_000
LARGE_TEXT = 1_000_000_000


@dataclass(frozen=True)
class Plan:
    """Where a log is, what is kept of it, and how it is divided.

    Args:
        source: a file, a directory, a pattern of names, or an address.
        options: how to read it.
        format: name of the format; follows from the end of the names if `None`.
        preparation: what to keep; `None` keeps all but repetitions.
        split: name of the split.
        train_fraction: share that is kept for training; the default of the split if `None`.
        split_seed: of the split.
        validation: name of the rule for the validation part.
        validation_seed: of the validation part.
    """

    source: str
    options: ReadOptions = field(default_factory=ReadOptions)
    format: str | None = None
    preparation: Preparation | None = None
    split: str = "iid"
    train_fraction: float | None = None
    split_seed: int = 0
    validation: ValidationRule = "none"
    validation_seed: int = 2024

    def record(self) -> dict[str, Any]:
        """The settings by name, as JSON holds them."""
        return asdict(self)


@dataclass(frozen=True)
class SourceFile:
    """One file of a log, and what changes when its content does.

    Args:
        name: path or address.
        size: in bytes.
        stamp: time of the last change, or a checksum where the storage has one.
    """

    name: str
    size: int
    stamp: str


def source_files(source: str) -> list[SourceFile]:
    """The files behind a path, a pattern or an address.

    Args:
        source: as in `Plan`.
    """
    if is_address(source):
        stored = stored_files(source, error=DataError)
        return [SourceFile(file.address, file.size, file.stamp) for file in stored]
    found = []
    for file in files_of(Path(source)):
        with explained(file, "read", error=DataError):
            status = file.stat()
        found.append(SourceFile(str(file.resolve()), status.st_size, str(status.st_mtime_ns)))
    return found


def is_large(source: str) -> bool:
    """Whether a log is prepared out of core unless somebody asks otherwise.

    This is so from 100 MB of Parquet files and from 1 GB of text.

    Args:
        source: a name, a file, a directory, a pattern of names, or an address.
    """
    if not can_be_out_of_core(source):
        return False
    files = source_files(source)
    n_bytes = sum(file.size for file in files)
    if files[0].name.lower().endswith(".parquet"):
        return n_bytes >= LARGE_PARQUET
    return n_bytes >= LARGE_TEXT


def can_be_out_of_core(source: str) -> bool:
    """Whether these are interactions that are still to be split, in files that can be listed.

    Args:
        source: as in `is_large`.
    """
    if is_address(source):
        # One with a training part in it comes split.
        names = [Path(file.name).name for file in stored_files(source, error=DataError)]
        return not any(name.startswith("train.") or name.endswith(".zip") for name in names)
    if is_name(source) or is_published_split(Path(source)):
        return False
    files = files_of(Path(source))
    return all(file.is_file() for file in files)


def key_of(plan: Plan, files: list[SourceFile]) -> str:
    """A name for what a plan makes of these files; another content or setting gives another name.

    Args:
        plan: the settings.
        files: as `source_files` lists them.
    """
    everything = {
        "version": VERSION,
        "plan": plan.record(),
        "files": [asdict(file) for file in files],
    }
    text = json.dumps(everything, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
