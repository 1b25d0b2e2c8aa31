"""Writing interactions and split data sets, whole or not at all."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from pslrec.data.dataset import Dataset
from pslrec.data.interactions import Interactions
from pslrec.errors import DataError


def write_interactions(interactions: Interactions, path: Path) -> None:
    """Write a table with external ids as CSV, TSV or Parquet, by the end of the name; an existing file is replaced at once."""
    frame = interactions.to_frame()
    with replaced_file(path) as temporary:
        if path.suffix == ".parquet":
            frame.write_parquet(temporary)
        elif path.suffix in (".csv", ".tsv"):
            frame.write_csv(temporary, separator="," if path.suffix == ".csv" else "\t")
        else:
            raise DataError(f"{path}: interactions are written as .csv, .tsv or .parquet, not `{path.suffix}`")


def write_dataset(dataset: Dataset, directory: Path) -> None:
    """Write a split data set as a directory that `read_published` reads.

    It holds `train.tsv`, `test.tsv`, perhaps `validation.tsv`, all by row number, and the lists of the original ids. The
    directory appears complete or not at all, and must not exist yet.
    """
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise DataError(f"{directory} exists already and is not empty; choose another place or remove it")
    with _replaced_directory(directory) as temporary:
        for name, part in dataset.parts().items():
            _part_frame(part).write_csv(temporary / f"{name}.tsv", separator="\t")
        for vocabulary in (dataset.user_vocabulary, dataset.item_vocabulary):
            kind = vocabulary.kind
            rows = pl.int_range(len(vocabulary), eager=True)
            listed = pl.DataFrame({f"{kind}_orgid": vocabulary.series, f"{kind}_procid": rows})
            listed.write_csv(temporary / f"{kind}_list.tsv", separator="\t")


def _part_frame(part: Interactions) -> pl.DataFrame:
    columns = {
        "user_procid": part.users,
        "item_procid": part.items,
        "rating": part.ratings,
        "timestamp": part.timestamps,
    }
    return pl.DataFrame({name: column for name, column in columns.items() if column is not None})


@contextmanager
def replaced_file(path: Path) -> Iterator[Path]:
    """A temporary path whose file takes the place of `path` once it is written and synced; on an error nothing is left."""
    with writable(path.parent):
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
            # mkstemp is private to its owner; a written result has the usual permissions.
            temporary.chmod(0o666 & ~_umask())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def _replaced_directory(directory: Path) -> Iterator[Path]:
    with writable(directory.parent):
        temporary = Path(tempfile.mkdtemp(dir=directory.parent, prefix=f".{directory.name}."))
        try:
            yield temporary
            temporary.chmod(0o777 & ~_umask())
            temporary.replace(directory)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def writable(directory: Path) -> Iterator[None]:
    """Make the directory if need be, and turn what the system says into one clear sentence."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise DataError(f"{directory} can not be written to: {error.strerror or error}") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
