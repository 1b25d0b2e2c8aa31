"""A log in many files: a directory, partitions such as `day=2024-05-01`, or a pattern of names."""

from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path

import numpy as np
import polars as pl

from pslrec.data._columns import Columns
from pslrec.data.formats import FORMATS, SUFFIXES, ReadOptions, Table, format_of
from pslrec.errors import DataError
from pslrec.files import explained

PATTERN_CHARACTERS = "*?["


def is_pattern(path: Path) -> bool:
    """Whether this stands for several files, and is not the name of one."""
    has_characters = any(character in str(path) for character in PATTERN_CHARACTERS)
    return has_characters and not path.exists()


def files_of(path: Path) -> list[Path]:
    """The files behind a path: itself, the tables below a directory, or what matches a pattern.

    Names that begin with a point or an underscore are left out: programs keep such files beside
    their tables.

    Args:
        path: of this machine.
    """
    with explained(path, "read", error=DataError):
        is_several = is_pattern(path)
        is_directory = path.is_dir()
    if is_several:
        files = [match for match in _matches(path) if match.is_file()]
        if not files:
            raise DataError(f"{path}: no file has a name of this pattern")
        return _of_one_format(files, path)
    if not is_directory:
        return [path]
    files = []
    for file in sorted(path.rglob("*")):
        below = file.relative_to(path).parts
        is_hidden = any(part.startswith((".", "_")) for part in below)
        if not is_hidden and file.is_file() and _ending(file) in SUFFIXES:
            files.append(file)
    if not files:
        raise DataError(
            f"{path}: there is no `train.tsv` in this directory; give a file, or a directory with "
            f"train and test, or with tables that end in {', '.join(SUFFIXES)}"
        )
    return _of_one_format(files, path)


def _matches(pattern: Path) -> list[Path]:
    parts = pattern.parts
    n_fixed = 0
    while not any(character in parts[n_fixed] for character in PATTERN_CHARACTERS):
        n_fixed += 1
    directory = Path(*parts[:n_fixed])
    return sorted(directory.glob("/".join(parts[n_fixed:])))


def _of_one_format(files: list[Path], path: Path) -> list[Path]:
    endings = sorted({_ending(file) for file in files})
    if len(endings) > 1:
        raise DataError(
            f"{path}: the files must have one format, they end in {', '.join(endings)}; "
            f"choose one by a pattern such as {path / f'**/*{endings[0]}'}"
        )
    return files


def _ending(file: Path) -> str:
    name = file.name.lower().removesuffix(".gz")
    return Path(name).suffix


def read_tables(
    files: Sequence[Path],
    options: ReadOptions,
    format: str | None,  # noqa: A002 - the word users look for
    origin: Path,
) -> Table:
    """Read the tables in one or several files as one.

    Args:
        files: of one format.
        options: how to read each of them.
        format: name of the format; follows from the end of the names if `None`.
        origin: what messages call all of them.
    """
    tables = []
    for file in files:
        read = FORMATS[format or format_of(file, options.encoding)]
        tables.append(read(file, options))
    if len(tables) == 1:
        return tables[0]
    columns = tables[0].columns
    for table in tables[1:]:
        check_same_columns(columns, table.columns, tables[0].origin, table.origin)
    # A file without rows has no types to compare.
    filled = [table for table in tables if len(table.frame)] or tables[:1]
    frames = [table.frame.select(columns.present()) for table in filled]
    try:
        whole = pl.concat(frames, how="vertical_relaxed")
    except pl.exceptions.PolarsError as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{origin}: the files must have columns of one type ({reason})") from error
    return Table(whole, columns, str(origin), _place_in(filled))


def check_same_columns(first: Columns, other: Columns, origin: str, other_origin: str) -> None:
    """Raise unless two files of one log have the same columns.

    Args:
        first: of one file.
        other: of another.
        origin: what messages call the one.
        other_origin: what messages call the other.
    """
    if first != other:
        raise DataError(
            f"{other_origin} has the columns {_listed(other)}, {origin} has {_listed(first)}; "
            "the files of a log must have the same, or name those to read"
        )


def _listed(columns: Columns) -> str:
    return ", ".join(f"`{name}`" for name in columns.present())


def _place_in(tables: Sequence[Table]) -> Callable[[int], str]:
    ends = list(accumulate(len(table.frame) for table in tables))

    def place_of(row: int) -> str:
        number = int(np.searchsorted(ends, row, side="right"))
        table = tables[number]
        before = ends[number] - len(table.frame)
        return f"{table.origin}: {table.place_of(row - before)}"

    return place_of
