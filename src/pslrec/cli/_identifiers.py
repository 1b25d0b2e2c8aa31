"""External ids as people type them; a number arrives as text."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pslrec.data import Vocabulary


def typed(text: str, vocabulary: "Vocabulary") -> Any:
    """The id that a text stands for: an integer if the ids of the data are integers."""
    has_integer_ids = vocabulary.series.dtype.is_integer()
    if has_integer_ids and text.strip().lstrip("-").isdecimal():
        return int(text)
    # A text that is not a number stays one, so that the error about an unknown id can quote it.
    return text


def ids_in(path: Path, vocabulary: "Vocabulary") -> list[Any]:
    """Read ids from a file.

    Args:
        path: a text file with one id per line, or a CSV or Parquet file with a column named
            after the kind of id (`user` or `item`).
        vocabulary: the ids of the model; says which kind is wanted and whether ids are numbers.
    """
    import polars as pl

    from pslrec.errors import DataError

    try:
        if path.suffix in (".parquet", ".csv"):
            texts = _column(path, vocabulary.kind)
        else:
            lines = path.read_text(encoding="utf-8").splitlines()
            texts = [line.strip() for line in lines if line.strip()]
    except (OSError, UnicodeDecodeError, pl.exceptions.PolarsError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{path} cannot be read: {reason}") from error
    return [typed(text, vocabulary) for text in texts]


def _column(path: Path, name: str) -> list[str]:
    import polars as pl

    from pslrec.errors import DataError

    # Everything in a CSV file as text: polars would read the id 007 as the number 7.
    is_parquet = path.suffix == ".parquet"
    frame = pl.read_parquet(path) if is_parquet else pl.read_csv(path, infer_schema=False)
    if name not in frame.columns:
        found = ", ".join(frame.columns)
        raise DataError(f"{path} has no column `{name}`; its columns are {found}")
    return [str(each) for each in frame[name].to_list()]
