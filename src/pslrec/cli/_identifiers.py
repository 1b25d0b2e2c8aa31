"""External ids as they are typed, where a number arrives as text."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pslrec.data import Vocabulary


def typed(text: str, vocabulary: "Vocabulary") -> Any:
    """The id that a text stands for: a whole number where the ids are whole numbers."""
    is_number = vocabulary.series.dtype.is_integer()
    return int(text) if is_number and text.strip().lstrip("-").isdecimal() else text


def ids_in(path: Path, vocabulary: "Vocabulary") -> list[Any]:
    """Ids of a text file, one in a line, or of the column of a CSV or Parquet file that is named after them."""
    import polars as pl

    from pslrec.errors import DataError

    try:
        if path.suffix in (".parquet", ".csv"):
            frame = (
                pl.read_parquet(path)
                if path.suffix == ".parquet"
                else pl.read_csv(path, infer_schema=False)
            )
            if vocabulary.kind not in frame.columns:
                raise DataError(
                    f"{path} has no column `{vocabulary.kind}`; its columns are {', '.join(frame.columns)}"
                )
            return [typed(str(each), vocabulary) for each in frame[vocabulary.kind].to_list()]
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError, pl.exceptions.PolarsError) as error:
        raise DataError(
            f"{path} can not be read: {getattr(error, 'strerror', None) or error}"
        ) from error
    return [typed(line.strip(), vocabulary) for line in lines if line.strip()]
