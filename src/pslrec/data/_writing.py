"""Writing interactions and split data sets, completely or not at all."""

from pathlib import Path
from typing import Literal

import polars as pl

from pslrec.data._dataset import Dataset
from pslrec.data._interactions import Interactions
from pslrec.errors import DataError
from pslrec.files import explained, local_path, whole_directory, whole_file

SUFFIXES = (".csv", ".tsv", ".parquet")


def write_interactions(interactions: Interactions, path: str | Path) -> None:
    """Write a table with external ids as CSV, TSV or Parquet.

    Args:
        interactions: what to write.
        path: where to; the end of the name decides the format. An existing file is replaced in one
            step.
    """
    path = Path(path)
    check_new_file(path)
    frame = interactions.to_frame()
    if path.suffix == ".parquet":
        with whole_file(path, make_parents=True, error=DataError) as file:
            frame.write_parquet(file)
    elif path.suffix == ".csv":
        _write_text(frame, path, ",")
    else:
        _write_text(frame, path, "\t")


def write_dataset(dataset: Dataset, directory: str | Path) -> None:
    """Write a split data set as a directory that `read_published` reads.

    It holds `train.tsv`, `test.tsv` and perhaps `validation.tsv`, all by row number, and lists of
    the original ids.

    Args:
        dataset: what to write.
        directory: where to; it must not exist yet, or be empty, and appears complete or not at all.
    """
    directory = Path(directory)
    check_new_directory(directory)
    with whole_directory(directory, error=DataError) as temporary:
        for name, part in dataset.parts().items():
            _write_text(_part_frame(part), temporary / f"{name}.tsv", "\t")
        vocabularies = {"user": dataset.user_vocabulary, "item": dataset.item_vocabulary}
        for kind, vocabulary in vocabularies.items():
            rows = pl.int_range(len(vocabulary), eager=True)
            listed = pl.DataFrame({f"{kind}_orgid": vocabulary.series, f"{kind}_procid": rows})
            _write_text(listed, temporary / f"{kind}_list.tsv", "\t")


def check_new_file(path: Path) -> None:
    """Raise where `write_interactions` would, before any work is done."""
    if path.suffix not in SUFFIXES:
        raise DataError(
            f"{path}: interactions are written as .csv, .tsv or .parquet, not as `{path.suffix}`"
        )
    local_path(path, error=DataError)
    with explained(path, "written", error=DataError):
        if path.is_dir():
            raise DataError(f"{path} is a directory; give the name of a file in it")


def check_new_directory(directory: Path) -> None:
    """Raise where `write_dataset` would, before any work is done."""
    local_path(directory, error=DataError)
    with explained(directory, "written", error=DataError):
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            raise DataError(
                f"{directory} exists already and is not empty; choose another place or remove it"
            )


def _write_text(frame: pl.DataFrame, path: Path, separator: str) -> None:
    with whole_file(path, make_parents=True, error=DataError) as file:
        frame.write_csv(file, separator=separator, quote_style=_quote_style(frame))


def _quote_style(frame: pl.DataFrame) -> Literal["necessary", "non_numeric"]:
    # Polars does not quote a carriage return or spaces at an end, which would not come back
    # otherwise, so then all text is quoted.
    for column in frame.iter_columns():
        if column.dtype == pl.String and column.str.contains(r"\r|^\s|\s$").any():
            return "non_numeric"
    return "necessary"


def _part_frame(part: Interactions) -> pl.DataFrame:
    columns = {
        "user_procid": part.users,
        "item_procid": part.items,
        "rating": part.ratings,
        "timestamp": part.timestamps,
        "weight": part.weights,
    }
    return pl.DataFrame({name: column for name, column in columns.items() if column is not None})
