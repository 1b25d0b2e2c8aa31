"""The files of a fitted recommender, wherever they are: in memory, in a directory, in a pickle."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pslrec.artifacts import write_item_table
from pslrec.data.items import ItemTable
from pslrec.errors import ConfigError
from pslrec.experiment import RunResult, copy_run, save_run
from pslrec.files import (
    at_hand,
    holds_file,
    is_address,
    local_path,
    replaced_directory,
    shown_address,
    store_directory,
    whole_directory,
    write_bytes,
)
from pslrec.training import EpochFinished

# The one file that every run directory has.
MARK = "format"


class Storage(Protocol):
    """Writes the run directory of a fitted recommender."""

    def write(self, path: Path, table: ItemTable | None = None) -> None:
        """Write the run, with an item table, to a directory that does not exist yet."""
        ...


@dataclass(frozen=True, eq=False)
class TrainedHere:
    """A run that was trained in this process.

    Args:
        result: of the run.
        epochs: of its training.
    """

    result: RunResult
    epochs: Sequence[EpochFinished]

    def write(self, path: Path, table: ItemTable | None = None) -> None:
        """Write the run, with an item table, to a directory that does not exist yet."""
        if (path / MARK).is_file():
            raise ConfigError(
                f"{path} already holds a run; choose another directory, or replace the run in it "
                "with `overwrite=True`"
            )
        save_run(self.result, path, epochs=self.epochs, item_table=table)


@dataclass(frozen=True)
class LoadedFrom:
    """A run that was loaded from a directory.

    Args:
        origin: the directory, or its address.
    """

    origin: Path

    def write(self, path: Path, table: ItemTable | None = None) -> None:
        """Write the run, with an item table, to a directory that does not exist yet."""
        if path.exists():
            raise ConfigError(
                f"{path} exists already; choose another directory, or replace the run in it with "
                "`overwrite=True`"
            )
        with at_hand(self.origin, error=ConfigError) as origin:
            if not origin.is_dir():
                raise ConfigError(
                    f"{origin}, from which this Recommender was loaded, no longer exists"
                )
            copy_run(origin, path, item_table=table)


@dataclass(frozen=True)
class Pickled:
    """The files of a run as a pickle carries them.

    Args:
        files: their bytes by name.
    """

    files: Mapping[str, bytes]

    def write(self, path: Path, table: ItemTable | None = None) -> None:
        """Write the run, with an item table, to a directory that does not exist yet."""
        with whole_directory(path, error=ConfigError) as place:
            self.unpack(place)
            write_item_table(place, table)

    def unpack(self, place: Path) -> None:
        """Write all files into a directory, the item table of the pickle among them."""
        for name, content in self.files.items():
            # A pickle may come from anywhere; its files stay in the directory.
            if Path(name).name != name:
                raise ConfigError(f"`{name}` in the pickle is not the name of a file")
            write_bytes(place / name, content, error=ConfigError)


def pickled(storage: Storage, table: ItemTable | None) -> Pickled:
    """The files of a run as bytes.

    Args:
        storage: writes them.
        table: goes with them.
    """
    files = {}
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory) / "run"
        storage.write(place, table)
        for file in sorted(place.iterdir()):
            # Locks of the processes that wrote are nobody else's business.
            if file.name != "lock":
                files[file.name] = file.read_bytes()
    return Pickled(files)


def save(storage: Storage, table: ItemTable | None, place: Path | str, *, overwrite: bool) -> None:
    """Write a run to a directory, or to an address.

    Args:
        storage: writes it.
        table: goes with it.
        place: the directory, or the address.
        overwrite: whether a run that is there already is replaced.
    """
    if is_address(place):
        _save_at_address(storage, table, place, overwrite=overwrite)
        return
    path = local_path(place, error=ConfigError)
    if not overwrite or not path.exists():
        storage.write(path, table)
        return
    is_empty = path.is_dir() and not any(path.iterdir())
    # Never anything else: a mistyped path must not cost somebody a directory of documents.
    if not (path / MARK).is_file() and not is_empty:
        raise ConfigError(f"{path} is not a run directory, so it is not overwritten")
    with replaced_directory(path, error=ConfigError) as place:
        storage.write(place, table)


def _save_at_address(
    storage: Storage, table: ItemTable | None, address: Path | str, *, overwrite: bool
) -> None:
    is_there = holds_file(address, MARK, error=ConfigError)
    if is_there and not overwrite:
        raise ConfigError(
            f"{shown_address(address)} already holds a run; choose another address, or replace "
            "the run in it with `overwrite=True`"
        )
    with tempfile.TemporaryDirectory(prefix="pslrec-") as temporary:
        place = Path(temporary) / "run"
        storage.write(place, table)
        store_directory(place, address, last=MARK, error=ConfigError)
