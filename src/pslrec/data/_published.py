"""Data sets that come split: a directory or zip with `train` and `test`, perhaps lists of ids."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from pslrec.data._cleaning import CleanColumns, clean
from pslrec.data._columns import Columns
from pslrec.data._dataset import Dataset
from pslrec.data._interactions import Interactions, as_numbers, encode
from pslrec.data._leaks import check_leaks, drop_leaks
from pslrec.data._unpacking import unpacked
from pslrec.data._vocabulary import Vocabulary
from pslrec.data.formats import (
    FORMATS,
    ReadOptions,
    first_lines,
    format_of,
    read_delimited,
    split_lines,
)
from pslrec.errors import ColumnsError, DataError

PARTS = {"train": ("train",), "validation": ("validation", "valid"), "test": ("test",)}
LISTS = ("user_list.tsv", "item_list.tsv")
SUFFIXES = (".tsv", ".csv", ".txt", ".parquet", ".inter", ".jsonl")


def is_published_split(path: Path) -> bool:
    """Whether this is a zip, or a directory with a `train` file in it."""
    if path.suffix.lower() == ".zip":
        return True
    return path.is_dir() and _holds_data(path)


def read_published(
    path: str | Path,
    *,
    options: ReadOptions | None = None,
    format: str | None = None,  # noqa: A002 - the word users look for
    repair: bool = False,
) -> Dataset:
    """Read a data set that is already split.

    Ids are the original ones where `user_list.tsv` and `item_list.tsv` give them, and rows are
    numbered as in these lists.

    Args:
        path: a directory or zip with `train.tsv` and `test.tsv` (also `.csv`, `.txt`, `.parquet`,
            `.inter`, `.jsonl`, and gzipped), and perhaps `validation.tsv`.
        options: how to read the parts; detected if `None`.
        format: the format of the parts; follows from the ends of their names if `None`.
        repair: whether to remove pairs from validation and test that are in an earlier part too,
            and pairs from test that are never trained on, instead of refusing the data set.
    """
    path = Path(path)
    options = options or ReadOptions()
    with unpacked(path, holds_data=_holds_data, is_needed=_is_needed) as directory:
        files = {}
        for part in PARTS:
            file = _find(directory, part)
            if file is not None:
                files[part] = file
        format = format or _common_format(list(files.values()), options.encoding)  # noqa: A001
        columns = {}
        for part, file in files.items():
            columns[part] = _read_part(file, format, options, origin=path)
        for part in ("train", "test"):
            if part not in files:
                endings = ", ".join(SUFFIXES[1:])
                raise DataError(
                    f"{path}: there is no `{part}.tsv` in it, nor one that ends in {endings}"
                )
        vocabularies = {}
        for kind in ("user", "item"):
            listed = directory / f"{kind}_list.tsv"
            if listed.exists():
                vocabularies[kind] = _listed_vocabulary(listed, path, kind, options.encoding)
            else:
                vocabularies[kind] = _vocabulary(kind, list(columns.values()))
    # All parts are encoded by the same vocabularies, so row numbers mean the same in each.
    parts = {name: _encode_part(part, vocabularies, path) for name, part in columns.items()}
    dataset = Dataset(parts["train"], parts["test"], parts.get("validation"), name=path.stem)
    if repair:
        return drop_leaks(dataset)
    return check_leaks(dataset, str(path))


def _holds_data(directory: Path) -> bool:
    return _find(directory, "train") is not None


def _is_needed(name: str) -> bool:
    return name in LISTS or any(name in _names(part) for part in PARTS)


def _find(directory: Path, part: str) -> Path | None:
    for name in _names(part):
        path = directory / name
        if path.is_file():
            return path
    return None


def _names(part: str) -> list[str]:
    names = []
    for stem in PARTS[part]:
        for suffix in SUFFIXES:
            names.append(stem + suffix)
            names.append(stem + suffix + ".gz")
    return names


def _common_format(files: Sequence[Path], encoding: str | None) -> str | None:
    # All lines of one part may happen to have the same number of items, and look like a table. The
    # other part then shows that both are in LightGCN's format.
    texts = [file for file in files if ".txt" in file.suffixes]
    if len(texts) < 2:
        return None
    if any(format_of(text, encoding) == "lightgcn" for text in texts):
        return "lightgcn"
    return None


def _read_part(
    file: Path,
    format: str | None,  # noqa: A002
    options: ReadOptions,
    origin: Path,
) -> CleanColumns:
    place = f"{origin}: {file.name}"
    try:
        read = FORMATS[format or format_of(file, options.encoding)]
        table = read(file, options)
        return clean(replace(table, origin=place))
    # A file from a zip lies in a temporary directory, of which the user knows nothing.
    except ColumnsError as error:
        problem = error.problem.replace(str(file), place)
        raise ColumnsError(problem, error.guess, error.hint) from error
    except DataError as error:
        raise DataError(str(error).replace(str(file), place)) from error


def _vocabulary(kind: str, parts: list[CleanColumns]) -> tuple[pl.Series, Vocabulary]:
    """The ids used in the parts, in row order, and the vocabulary they stand for."""
    # As text, because one part may have numbers only where another has names.
    texts = [getattr(part, f"{kind}s").cast(pl.String) for part in parts]
    _, vocabulary = encode(pl.concat(texts), kind=kind)
    return vocabulary.series.cast(pl.String), vocabulary


def _listed_vocabulary(
    listed: Path, origin: Path, kind: str, encoding: str | None
) -> tuple[pl.Series, Vocabulary]:
    place = f"{origin}: {listed.name}"
    try:
        options = _list_options(listed, encoding)
        table = clean(replace(read_delimited(listed, options), origin=place))
        used = Vocabulary(table.items.cast(pl.String), kind=f"new {kind}").series
        return used, Vocabulary(as_numbers(table.users.cast(pl.String)), kind=kind)
    except DataError as error:
        message = str(error).replace(str(listed), place)
        if not message.startswith(place):
            message = f"{place}: {message}"
        raise DataError(message) from error


def _list_options(listed: Path, encoding: str | None) -> ReadOptions:
    header = split_lines([first_lines(listed, 1, encoding)[0][1]], "\t")[0]
    if len(header) != 2 or header[0] == header[1]:
        raise DataError(
            "it must have a header and two columns, original id and new id, tab separated"
        )
    original, new = header
    columns = Columns(original, new, "", "", "")
    return ReadOptions(columns, separator="\t", header=True, encoding=encoding)


def _encode_part(
    columns: CleanColumns, vocabularies: dict[str, tuple[pl.Series, Vocabulary]], origin: Path
) -> Interactions:
    rows = {}
    for kind, ids in (("user", columns.users), ("item", columns.items)):
        used, _ = vocabularies[kind]
        lookup = pl.DataFrame({"id": used, "row": np.arange(len(used), dtype=np.int32)})
        entries = ids.cast(pl.String).to_frame("id")
        found = entries.join(lookup, on="id", how="left", maintain_order="left")["row"]
        # Only a list can lack an id: a vocabulary made from the parts has them all.
        if found.null_count():
            position = int(found.is_null().arg_max() or 0)
            raise DataError(
                f"{origin}: {kind} `{ids[position]}` is not in {kind}_list.tsv; "
                "add it there or remove that file"
            )
        rows[kind] = found.to_numpy()
    return Interactions(
        rows["user"],
        rows["item"],
        vocabularies["user"][1],
        vocabularies["item"][1],
        columns.ratings,
        columns.timestamps,
        columns.weights,
    )
