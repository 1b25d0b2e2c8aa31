"""Data sets that come split: a directory or zip with `train` and `test`, and perhaps lists of the original ids."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

from pslrec.data.cleaning import CleanColumns, clean
from pslrec.data.dataset import Dataset
from pslrec.data.formats import FORMATS, ReadOptions, format_of
from pslrec.data.interactions import Interactions, encode
from pslrec.data.vocabulary import Vocabulary
from pslrec.errors import DataError

PARTS = {"train": ("train",), "validation": ("validation", "valid"), "test": ("test",)}
SUFFIXES = (".tsv", ".csv", ".txt", ".parquet", ".inter", ".jsonl")


def is_published_split(path: Path) -> bool:
    """Whether this is a zip, or a directory with a `train` file in it."""
    return path.suffix == ".zip" or (path.is_dir() and _find(path, "train") is not None)


def read_published(path: Path, *, repair: bool = False) -> Dataset:
    """Read a data set that is already split.

    Ids are the original ones where `user_list.tsv` and `item_list.tsv` give them, and rows are numbered as in these lists.

    Args:
        path: a directory or zip with `train.tsv` and `test.tsv` (also `.csv`, `.txt`, `.parquet`, `.inter`, `.jsonl`), and
            perhaps `validation.tsv`.
        repair: remove from validation and test what is already in an earlier part, and what training never saw,
            instead of refusing.
    """
    with _unpacked(path) as directory:
        columns = {part: _read_part(directory, part, origin=path) for part in PARTS}
        vocabularies = _vocabularies(directory, path, [part for part in columns.values() if part is not None])
    parts = {name: None if part is None else _encode_part(part, vocabularies, path) for name, part in columns.items()}
    train, test = parts["train"], parts["test"]
    assert train is not None
    assert test is not None
    dataset = Dataset(train, test, parts["validation"], name=path.stem)
    return drop_leaks(dataset) if repair else check_leaks(dataset, str(path))


def leaks(dataset: Dataset) -> dict[str, np.ndarray]:
    """For validation and test: a mask of the pairs that are in an earlier part, or whose user or item has no training data."""
    known = np.unique(dataset.train.pair_keys())
    trained_users, trained_items = dataset.train.user_counts() > 0, dataset.train.item_counts() > 0
    found: dict[str, np.ndarray] = {}
    for name, part in (("validation", dataset.validation), ("test", dataset.test)):
        if part is not None:
            keys = part.pair_keys()
            found[f"{name} pairs that are in an earlier part"] = np.isin(keys, known)
            found[f"{name} items that are never trained on"] = ~trained_items[part.items]
            found[f"{name} users that are never trained on"] = ~trained_users[part.users]
            known = np.union1d(known, keys)
    return found


def check_leaks(dataset: Dataset, origin: str) -> Dataset:
    """The data set itself, or an error that counts what would spoil an evaluation."""
    for problem, mask in leaks(dataset).items():
        if mask.any():
            part = dataset.test if problem.startswith("test") else dataset.validation
            assert part is not None
            row = part.to_frame().row(int(mask.argmax()))
            raise DataError(
                f"{origin}: {int(mask.sum()):,} {problem}, the first is user `{row[0]}` with item `{row[1]}`; "
                "remove them, or read with `repair=True` (on the command line --repair)"
            )
    return dataset


def drop_leaks(dataset: Dataset) -> Dataset:
    """The data set without the validation and test pairs that `check_leaks` refuses."""
    kept = {}
    for name, part in (("validation", dataset.validation), ("test", dataset.test)):
        masks = [mask for problem, mask in leaks(dataset).items() if problem.startswith(name)]
        kept[name] = part if part is None else part.select(~np.logical_or.reduce(masks))
    assert kept["test"] is not None
    return Dataset(dataset.train, kept["test"], kept["validation"], name=dataset.name)


def _find(directory: Path, part: str) -> Path | None:
    names = (stem + suffix for stem in PARTS[part] for suffix in SUFFIXES)
    return next((directory / name for name in names if (directory / name).is_file()), None)


def _read_part(directory: Path, part: str, origin: Path) -> CleanColumns | None:
    path = _find(directory, part)
    if path is None:
        if part == "validation":
            return None
        raise DataError(f"{origin}: there is no `{part}.tsv` in it")
    table = FORMATS[format_of(path)](path, ReadOptions())
    return clean(replace(table, origin=f"{origin}: {path.name}"))


@contextmanager
def _unpacked(path: Path) -> Iterator[Path]:
    if not path.exists():
        raise DataError(f"{path}: no such file or directory")
    if path.is_dir():
        yield path
        return
    with TemporaryDirectory() as directory:
        _unzip(path, Path(directory))
        found = sorted(Path(directory).rglob("train.*"))
        if len(found) != 1:
            raise DataError(f"{path}: a `train.tsv` was expected in the zip, found {len(found)}")
        yield found[0].parent


def _unzip(path: Path, directory: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                inside = PurePosixPath(name.replace("\\", "/"))
                if inside.is_absolute() or ".." in inside.parts or ":" in name:
                    raise DataError(f"{path}: the zip has an unsafe path `{name}`; it was not unpacked")
            archive.extractall(directory)
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise DataError(f"{path}: not a zip, or it is truncated ({error}); fetch it again") from error


def _vocabularies(directory: Path, origin: Path, parts: list[CleanColumns]) -> dict[str, tuple[pl.Series, Vocabulary]]:
    """For users and items: the ids used in the parts, in row order, and the vocabulary they stand for."""
    result = {}
    for kind in ("user", "item"):
        listed = directory / f"{kind}_list.tsv"
        if listed.exists():
            frame = pl.read_csv(listed, separator="\t", infer_schema=False)
            if frame.width != 2:
                raise DataError(
                    f"{origin}: {listed.name} must have two columns, original id and new id, got {frame.width}"
                )
            result[kind] = (frame.to_series(1), Vocabulary(frame.to_series(0), kind=kind))
        else:
            ids = pl.concat([getattr(part, f"{kind}s").cast(pl.String) for part in parts])
            vocabulary = encode(ids, kind=kind)[1]
            result[kind] = (vocabulary.series.cast(pl.String), vocabulary)
    return result


def _encode_part(
    columns: CleanColumns, vocabularies: dict[str, tuple[pl.Series, Vocabulary]], origin: Path
) -> Interactions:
    rows = {}
    for kind, ids in (("user", columns.users), ("item", columns.items)):
        used, _ = vocabularies[kind]
        lookup = pl.DataFrame({"id": used, "row": np.arange(len(used), dtype=np.int32)})
        found = ids.cast(pl.String).to_frame("id").join(lookup, on="id", how="left", maintain_order="left")["row"]
        if found.null_count():
            missing = ids[int(found.is_null().arg_max() or 0)]
            raise DataError(f"{origin}: {kind} `{missing}` is not in {kind}_list.tsv")
        rows[kind] = found.to_numpy()
    return Interactions(
        rows["user"],
        rows["item"],
        vocabularies["user"][1],
        vocabularies["item"][1],
        columns.ratings,
        columns.timestamps,
    )
