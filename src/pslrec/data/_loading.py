"""Data by name or path: what the command line and the configuration call DATA."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pslrec.data._columns import Columns
from pslrec.data._dataset import Dataset
from pslrec.data._interactions import Interactions
from pslrec.data._many_files import is_pattern
from pslrec.data._preparation import Preparation, prepare
from pslrec.data._published import is_published_split, read_published
from pslrec.data._reading import check_no_columns, read_interactions
from pslrec.data._synthetic import planted_tastes
from pslrec.data.embedded import debian_packages
from pslrec.data.formats import ReadOptions
from pslrec.data.sources import SOURCES, find
from pslrec.errors import DataError
from pslrec.files import at_hand, is_address


def _synthetic() -> Interactions:
    return planted_tastes().interactions


EMBEDDED = {"debian": debian_packages, "synthetic": _synthetic}


def load(
    data: str | Path,
    *,
    columns: Columns | Mapping[str, str] | None = None,
    format: str | None = None,  # noqa: A002 - the word users look for
    separator: str | None = None,
    header: bool | None = None,
    encoding: str | None = None,
    repair: bool = False,
) -> Interactions | Dataset:
    """Load data by name or path: a `Dataset` where it comes split, else `Interactions`.

    Args:
        data: `debian` or `synthetic` (they come with the package), the name of a source such as
            `gowalla` (its published split if that is on this machine, else its raw file, prepared
            as in the paper), or the path of a file, directory or zip, a pattern of names such as
            `log/*.parquet`, or an address such as `s3://bucket/log`.
        columns: as in `read_interactions`.
        format: as in `read_interactions`.
        separator: as in `read_interactions`.
        header: as in `read_interactions`.
        encoding: as in `read_interactions`.
        repair: as in `read_published`.

    >>> load("debian")
    Interactions(150,559 pairs of 15,877 users and 5,077 items)
    """
    columns = Columns.of(columns)
    options = ReadOptions(columns, separator, header, encoding=encoding)
    if is_address(data):
        with at_hand(data, error=DataError) as copy:
            return _load_path(copy, options, format, repair=repair)
    path = Path(data)
    name = str(data)
    if is_name(name):
        check_no_columns(columns, f"the data set {name}")
    if name in EMBEDDED:
        return EMBEDDED[name]()
    if is_name(name):
        return _load_source(name)
    # Without an ending it is more likely a misspelt name than a file.
    if not _exists(path) and path.suffix == "" and not is_pattern(path):
        names = ", ".join([*EMBEDDED, *SOURCES])
        raise DataError(
            f"{data}: no such file, and no data set of that name; the names are {names}"
        )
    return _load_path(path, options, format, repair=repair)


def _load_path(
    path: Path,
    options: ReadOptions,
    format: str | None,  # noqa: A002
    *,
    repair: bool,
) -> Interactions | Dataset:
    if is_published_split(path):
        loaded: Interactions | Dataset = read_published(
            path, options=options, format=format, repair=repair
        )
    else:
        loaded = read_interactions(
            path,
            columns=options.columns,
            format=format,
            separator=options.separator,
            header=options.header,
            encoding=options.encoding,
        )
    check_variety(loaded, path)
    return loaded


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:
        # For example a name that is longer than the file system allows.
        raise DataError(f"{path} cannot be read: {error.strerror}") from error


def is_name(data: str) -> bool:
    """Whether `load` takes this as the name of data, not as a path.

    >>> is_name("debian"), is_name("log.csv")
    (True, False)
    """
    if data in EMBEDDED:
        return True
    # A file that happens to have the name of a source is what the user sees and means.
    return data in SOURCES and not _exists(Path(data))


def check_variety(loaded: Interactions | Dataset, path: Path | str) -> None:
    """Raise where all interactions are of one user or one item.

    Args:
        loaded: its vocabularies are looked at.
        path: what messages call it.
    """
    for vocabulary in (loaded.user_vocabulary, loaded.item_vocabulary):
        if len(vocabulary) < 2:
            kind = vocabulary.kind
            identifier = vocabulary.ids([0])[0]
            raise DataError(
                f"{path}: all interactions are of one {kind}, `{identifier}`, and nothing can be "
                f"learnt from that; give more data, or name another {kind} column in `columns=` "
                f"(on the command line `--{kind}-column`)"
            )


def load_interactions(data: str | Path, **options: Any) -> Interactions:
    """As `load`, but a split data set is joined again, with each pair of several parts once.

    Args:
        data: as in `load`.
        options: further arguments of `load`.
    """
    # Joined, a pair that is in two parts would count twice; repairing removes the second.
    loaded = load(data, repair=True, **options)
    if isinstance(loaded, Dataset):
        return loaded.whole()
    return loaded


def _load_source(name: str) -> Interactions | Dataset:
    source = SOURCES[name]
    path = find(name)
    # A published split is prepared already. The zip of MovieLens has another name.
    if path.suffix == ".zip" and path.stem == source.stem:
        return read_published(path)
    return prepare(source.read_raw(path), Preparation(source.min_rating, source.k_core))
