"""External ids in row order, as Parquet files with one column `id`."""

from pathlib import Path

import polars as pl

from pslrec.data._vocabulary import Vocabulary
from pslrec.errors import PslrecError
from pslrec.files import FileError, check_regular, whole_file


def write_ids(
    vocabulary: Vocabulary, directory: Path, *, error: type[PslrecError] = FileError
) -> None:
    """Write `users.parquet` or `items.parquet`, completely or not at all.

    Args:
        vocabulary: the ids, and whether they are users or items.
        directory: where the file goes.
        error: the exception to raise if it cannot be written.
    """
    with whole_file(directory / f"{vocabulary.kind}s.parquet", error=error) as file:
        pl.DataFrame({"id": vocabulary.series}).write_parquet(file)


def read_ids(
    directory: Path, kind: str, *, n_rows: int | None = None, error: type[PslrecError] = FileError
) -> Vocabulary:
    """The ids of `users.parquet` or `items.parquet`.

    Args:
        directory: where the file is.
        kind: `user` or `item`.
        n_rows: how many ids there must be; any number if `None`.
        error: the exception to raise if it is not such a file.
    """
    path = directory / f"{kind}s.parquet"
    check_regular(path, error=error)
    try:
        # Everything that the footer of the file says is checked before any data is unpacked.
        columns = list(pl.read_parquet_schema(path))
        found = int(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item())
        expected = n_rows
        if expected is None:
            expected = found
        if columns != ["id"] or found != expected:
            raise error(
                f"{path} must hold one column `id` with {expected} ids, got {columns} with {found}"
            )
        ids = pl.read_parquet(path, glob=False)["id"]
        if ids.dtype.is_nested() or ids.dtype in (pl.Binary, pl.Null):
            raise error(f"{path}: ids must be whole numbers or text, got {ids.dtype}")
        return Vocabulary(ids, kind=kind)
    except (
        OSError,
        ValueError,
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
    ) as failure:
        # Our own errors may be of a kind that is caught here.
        if isinstance(failure, error):
            raise
        reason = str(failure).splitlines()[0][:200]
        raise error(f"{path} cannot be read: {reason}") from failure
