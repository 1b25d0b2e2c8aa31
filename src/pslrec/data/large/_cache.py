"""Prepared data sets that are kept: written once, checked by their hashes, and used again."""

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pslrec.data._dataset import Dataset
from pslrec.data._download import cache_directory
from pslrec.data._id_files import read_ids
from pslrec.data.large._columns import ColumnFiles
from pslrec.data.large._dividing import Divided, PartFiles, mapped_dataset
from pslrec.data.large._plan import Plan
from pslrec.errors import DataError
from pslrec.files import explained, is_temporary, read_json, remove_directory, write_text

MANIFEST = "manifest.json"


def prepared_directory() -> Path:
    """Where prepared data sets are kept, within `cache_directory`."""
    return cache_directory() / "prepared"


@dataclass(frozen=True)
class CachedDataset:
    """A prepared data set on this machine.

    Args:
        path: its directory.
        source: where its log was.
        made: when it was prepared, as text.
        n_bytes: of all its files.
        n_pairs: by part.
    """

    path: Path
    source: str
    made: str
    n_bytes: int
    n_pairs: dict[str, int]


def write_manifest(directory: Path, plan: Plan, divided: Divided) -> None:
    """Write what a directory holds, with a hash of every file.

    Args:
        directory: of the prepared data set.
        plan: it was made by.
        divided: its parts.
    """
    parts = {}
    for name, part in divided.parts.items():
        parts[name] = {
            "columns": list(part.columns.names),
            "length": part.columns.length,
            "has_rows": part.has_rows,
        }
    files = {}
    for file in sorted(directory.iterdir()):
        if file.is_file() and not is_temporary(file.name):
            files[file.name] = {"bytes": file.stat().st_size, "sha256": _hash(file)}
    record = {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "plan": plan.record(),
        "n_left_out": divided.n_left_out,
        "parts": parts,
        "files": files,
    }
    write_text(directory / MANIFEST, json.dumps(record, indent=2) + "\n", error=DataError)


def open_dataset(directory: Path, name: str) -> Dataset:
    """A prepared data set, after checking that its files are as they were written.

    Args:
        directory: where it is.
        name: what reports call it.
    """
    record = read_json(directory / MANIFEST, error=DataError)
    for file, expected in record["files"].items():
        path = directory / file
        with explained(path, "read", error=DataError):
            is_same = path.stat().st_size == expected["bytes"] and _hash(path) == expected["sha256"]
        if not is_same:
            raise DataError(f"{path} has changed since it was written; remove {directory}")
    parts = {}
    for part, facts in record["parts"].items():
        columns = ColumnFiles(directory, part, tuple(facts["columns"]), facts["length"])
        parts[part] = PartFiles(columns, facts["has_rows"])
    users = read_ids(directory, "user", error=DataError)
    items = read_ids(directory, "item", error=DataError)
    return mapped_dataset(Divided(parts, record["n_left_out"]), (users, items), name)


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cached_datasets() -> list[CachedDataset]:
    """The prepared data sets that are kept on this machine, oldest first."""
    found = []
    directory = prepared_directory()
    if not directory.is_dir():
        return []
    for path in directory.iterdir():
        if not (path / MANIFEST).is_file():
            continue
        record: dict[str, Any] = read_json(path / MANIFEST, error=DataError)
        n_pairs = {name: part["length"] for name, part in record["parts"].items()}
        n_bytes = sum(file["bytes"] for file in record["files"].values())
        source = record["plan"]["source"]
        found.append(CachedDataset(path, source, record["made"], n_bytes, n_pairs))
    return sorted(found, key=lambda each: (each.made, each.path))


def clean_cache() -> list[CachedDataset]:
    """Remove all prepared data sets; returns what was removed.

    They are made again when they are needed.
    """
    removed = cached_datasets()
    for each in removed:
        remove_directory(each.path, error=DataError)
    return removed
