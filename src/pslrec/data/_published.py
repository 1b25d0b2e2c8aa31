"""Data sets that come split: a directory or zip with `train` and `test`, and perhaps lists of the original ids."""

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
from pslrec.errors import DataError

PARTS = {"train": ("train",), "validation": ("validation", "valid"), "test": ("test",)}
LISTS = ("user_list.tsv", "item_list.tsv")
SUFFIXES = (".tsv", ".csv", ".txt", ".parquet", ".inter", ".jsonl")


def is_published_split(path: Path) -> bool:
    """Whether this is a zip, or a directory with a `train` file in it."""
    return path.suffix.lower() == ".zip" or (path.is_dir() and _holds_data(path))


def read_published(
    path: str | Path,
    *,
    options: ReadOptions | None = None,
    format: str | None = None,  # noqa: A002 - the word users look for
    repair: bool = False,
) -> Dataset:
    """Read a data set that is already split.

    Ids are the original ones where `user_list.tsv` and `item_list.tsv` give them, and rows are numbered as in these lists.

    Args:
        path: a directory or zip with `train.tsv` and `test.tsv` (also `.csv`, `.txt`, `.parquet`, `.inter`, `.jsonl`, and
            gzipped), and perhaps `validation.tsv`.
        options: how to read the parts, where it should not be found out.
        format: of the parts, where the ends of their names do not tell.
        repair: remove from validation and test what is already in an earlier part, and from test what was never seen
            before, instead of refusing.
    """
    path = Path(path)
    with unpacked(path, holds_data=_holds_data, is_needed=_is_needed) as directory:
        files = {part: _find(directory, part) for part in PARTS}
        format = format or _common_format(files)  # noqa: A001
        columns = {
            part: _read_part(file, format, options, origin=path)
            for part, file in files.items()
            if file
        }
        missing = [part for part in ("train", "test") if part not in columns]
        if missing:
            raise DataError(
                f"{path}: there is no `{missing[0]}.tsv` in it, nor one that ends in {', '.join(SUFFIXES[1:])}"
            )
        vocabularies = {
            kind: _vocabulary(directory, path, kind, list(columns.values()))
            for kind in ("user", "item")
        }
    parts = {name: _encode_part(part, vocabularies, path) for name, part in columns.items()}
    dataset = Dataset(parts["train"], parts["test"], parts.get("validation"), name=path.stem)
    return drop_leaks(dataset) if repair else check_leaks(dataset, str(path))


def _holds_data(directory: Path) -> bool:
    return _find(directory, "train") is not None


def _is_needed(name: str) -> bool:
    return name in LISTS or any(name in _names(part) for part in PARTS)


def _find(directory: Path, part: str) -> Path | None:
    return next((directory / name for name in _names(part) if (directory / name).is_file()), None)


def _names(part: str) -> list[str]:
    return [
        stem + suffix + packed
        for stem in PARTS[part]
        for suffix in SUFFIXES
        for packed in ("", ".gz")
    ]


def _common_format(files: dict[str, Path | None]) -> str | None:
    # Each line of one part may happen to have the same number of items; the other part tells that it is LightGCN's format.
    texts = [file for file in files.values() if file is not None and ".txt" in file.suffixes]
    return "lightgcn" if len(texts) > 1 and "lightgcn" in map(format_of, texts) else None


def _read_part(
    file: Path,
    format: str | None,  # noqa: A002
    options: ReadOptions | None,
    origin: Path,
) -> CleanColumns:
    place = f"{origin}: {file.name}"
    try:
        return clean(
            replace(
                FORMATS[format or format_of(file)](file, options or ReadOptions()), origin=place
            )
        )
    except DataError as error:
        # The file lies in a temporary directory if it came in a zip.
        raise DataError(str(error).replace(str(file), place)) from error


def _vocabulary(
    directory: Path, origin: Path, kind: str, parts: list[CleanColumns]
) -> tuple[pl.Series, Vocabulary]:
    """The ids used in the parts, in row order, and the vocabulary they stand for."""
    listed = directory / f"{kind}_list.tsv"
    if listed.exists():
        return _listed_vocabulary(listed, origin, kind)
    ids = pl.concat([getattr(part, f"{kind}s").cast(pl.String) for part in parts])
    vocabulary = encode(ids, kind=kind)[1]
    return vocabulary.series.cast(pl.String), vocabulary


def _listed_vocabulary(listed: Path, origin: Path, kind: str) -> tuple[pl.Series, Vocabulary]:
    place = f"{origin}: {listed.name}"
    try:
        table = clean(replace(read_delimited(listed, _list_options(listed)), origin=place))
        used = Vocabulary(table.items.cast(pl.String), kind=f"new {kind}").series
        return used, Vocabulary(as_numbers(table.users.cast(pl.String)), kind=kind)
    except DataError as error:
        message = str(error).replace(str(listed), place)
        raise DataError(message if message.startswith(place) else f"{place}: {message}") from error


def _list_options(listed: Path) -> ReadOptions:
    header = split_lines([first_lines(listed, 1)[0][1]], "\t")[0]
    if len(header) != 2 or header[0] == header[1]:
        raise DataError(
            "it must have a header and two columns, original id and new id, tab separated"
        )
    original, new = header
    return ReadOptions(Columns(original, new, "", "", ""), separator="\t", header=True)


def _encode_part(
    columns: CleanColumns, vocabularies: dict[str, tuple[pl.Series, Vocabulary]], origin: Path
) -> Interactions:
    rows = {}
    for kind, ids in (("user", columns.users), ("item", columns.items)):
        used, _ = vocabularies[kind]
        lookup = pl.DataFrame({"id": used, "row": np.arange(len(used), dtype=np.int32)})
        found = (
            ids.cast(pl.String)
            .to_frame("id")
            .join(lookup, on="id", how="left", maintain_order="left")["row"]
        )
        if found.null_count():
            missing = ids[int(found.is_null().arg_max() or 0)]
            raise DataError(
                f"{origin}: {kind} `{missing}` is not in {kind}_list.tsv; add it there or remove that file"
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
