"""Raw files of the published data sets, read by the readers of `pslrec.data.formats`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from zipfile import is_zipfile

import polars as pl

from pslrec.data._cleaning import to_interactions
from pslrec.data._columns import Columns
from pslrec.data._interactions import Interactions
from pslrec.data._unpacking import unpacked_member
from pslrec.data.formats import ReadOptions, Table, read_unquoted
from pslrec.errors import DataError


def read_fields(
    path: Path,
    names: Sequence[str],
    *,
    separator: str,
    whole_numbers: Sequence[str],
    member: str | None = None,
) -> Interactions:
    """Read a text file without a header, in which a quotation mark is a character like any other.

    Args:
        path: the file, plain or gzipped, or a zip.
        names: the fields of each line, in order. `user`, `item`, `rating` and `timestamp` are used,
            the others are skipped.
        separator: the text between two fields.
        whole_numbers: the fields that hold whole numbers and nothing else.
        member: the file to read where `path` is a zip.
    """
    columns = Columns(
        user="user",
        item="item",
        rating="rating" if "rating" in names else "",
        timestamp="timestamp",
        weight="",
    )
    options = ReadOptions(columns, separator=separator, names=tuple(names))
    # `is_zipfile` looks for the end of a zip, so it does not recognise one that was cut off.
    is_zip = is_zipfile(path) or path.suffix == ".zip"
    if member is None or not is_zip:
        return to_interactions(_with_whole_numbers(read_unquoted(path, options), whole_numbers))
    place = f"{path}: {PurePosixPath(member).name}"
    with unpacked_member(path, member) as file:
        try:
            table = replace(read_unquoted(file, options), origin=place)
            return to_interactions(_with_whole_numbers(table, whole_numbers))
        except DataError as error:
            # Nobody knows the temporary file: name the zip it came from.
            raise DataError(str(error).replace(str(file), place)) from error


def _with_whole_numbers(table: Table, names: Sequence[str]) -> Table:
    numbers = table.frame.with_columns(pl.col(names).cast(pl.Int64, strict=False))
    for name in names:
        texts = table.frame[name]
        # An empty field is left to the check for gaps, which every column passes.
        is_wrong = numbers[name].is_null() & (texts != "").fill_null(False)
        position = is_wrong.arg_max()
        if position is not None and is_wrong[position]:
            raise DataError(
                f"{table.origin}: {table.place_of(position)}: "
                f"`{name}` must be a whole number, got `{texts[position]}`"
            )
    return replace(table, frame=numbers)
