"""The files of a fitted recommender, wherever they are: in memory, in a directory, in a pickle."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pslrec.errors import ConfigError
from pslrec.experiment import RunResult, copy_run, save_run
from pslrec.files import replaced_directory, whole_directory, write_bytes
from pslrec.training import EpochFinished

# The one file that every run directory has.
MARK = "format"


class Storage(Protocol):
    """Writes the run directory of a fitted recommender."""

    def write(self, path: Path) -> None:
        """Write the run to a directory that does not exist yet."""
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

    def write(self, path: Path) -> None:
        """Write the run to a directory that does not exist yet."""
        save_run(self.result, path, epochs=self.epochs)


@dataclass(frozen=True)
class LoadedFrom:
    """A run that was loaded from a directory.

    Args:
        origin: the directory.
    """

    origin: Path

    def write(self, path: Path) -> None:
        """Write the run to a directory that does not exist yet."""
        if path.exists():
            raise ConfigError(
                f"{path} exists already; choose another directory, or replace the run in it with "
                "`overwrite=True`"
            )
        if not self.origin.is_dir():
            raise ConfigError(
                f"{self.origin}, from which this Recommender was loaded, no longer exists"
            )
        copy_run(self.origin, path)


@dataclass(frozen=True)
class Pickled:
    """The files of a run as a pickle carries them.

    Args:
        files: their bytes by name.
    """

    files: Mapping[str, bytes]

    def write(self, path: Path) -> None:
        """Write the run to a directory that does not exist yet."""
        with whole_directory(path, error=ConfigError) as place:
            for name, content in self.files.items():
                # A pickle may come from anywhere; its files stay in the directory.
                if Path(name).name != name:
                    raise ConfigError(f"`{name}` in the pickle is not the name of a file")
                write_bytes(place / name, content, error=ConfigError)


def pickled(storage: Storage) -> Pickled:
    """The files of a run as bytes.

    Args:
        storage: writes them.
    """
    if isinstance(storage, Pickled):
        return storage
    files = {}
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory) / "run"
        storage.write(place)
        for file in sorted(place.iterdir()):
            # Locks of the processes that wrote are nobody else's business.
            if file.name != "lock":
                files[file.name] = file.read_bytes()
    return Pickled(files)


def save(storage: Storage, path: Path, *, overwrite: bool) -> None:
    """Write a run to a directory.

    Args:
        storage: writes it.
        path: the directory.
        overwrite: whether a run that is there already is replaced.
    """
    if not overwrite or not path.exists():
        storage.write(path)
        return
    is_empty = path.is_dir() and not any(path.iterdir())
    # Never anything else: a mistyped path must not cost somebody a directory of documents.
    if not (path / MARK).is_file() and not is_empty:
        raise ConfigError(f"{path} is not a run directory, so it is not overwritten")
    with replaced_directory(path, error=ConfigError) as place:
        storage.write(place)
