"""External ids as people type them; a number arrives as text."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    from pslrec.data import Vocabulary

TABLES = (".parquet", ".csv")


def ids_in(path: Path, vocabulary: "Vocabulary") -> list[str]:
    """Read ids from a file, as text.

    Args:
        path: a text file with one id per line, or a CSV or Parquet file with a column named
            after the kind of id (`user` or `item`).
        vocabulary: the ids of the model; says which kind is wanted.
    """
    with _explained(path):
        if path.suffix in TABLES:
            return _column(_table(path), vocabulary.kind, path)
        lines = path.read_text(encoding="utf-8").splitlines()
        return [line.strip() for line in lines if line.strip()]


def pairs_in(path: Path, users: "Vocabulary", items: "Vocabulary") -> list[tuple[str, str]] | None:
    """Read pairs of users and items from a table; `None` if it is no table or names no users.

    Args:
        path: a CSV or Parquet file with the columns `user` and `item`.
        users: says what the column of users is called.
        items: says what the column of items is called.
    """
    if path.suffix not in TABLES:
        return None
    with _explained(path):
        table = _table(path)
        if users.kind not in table.columns:
            return None
        owners = _column(table, users.kind, path)
        return list(zip(owners, _column(table, items.kind, path), strict=True))


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    import polars as pl

    from pslrec.errors import DataError

    try:
        yield
    except (OSError, UnicodeDecodeError, pl.exceptions.PolarsError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{path} cannot be read: {reason}") from error


def _table(path: Path) -> "pl.DataFrame":
    import polars as pl

    if path.suffix == ".parquet":
        return pl.read_parquet(path)
    # Everything in a CSV file as text: polars would read the id 007 as the number 7.
    return pl.read_csv(path, infer_schema=False)


def _column(table: "pl.DataFrame", name: str, path: Path) -> list[str]:
    from pslrec.errors import DataError

    if name not in table.columns:
        found = ", ".join(table.columns)
        raise DataError(f"{path} has no column `{name}`; its columns are {found}")
    return [str(each) for each in table[name].to_list()]
