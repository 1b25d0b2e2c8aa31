"""Reads a table of items and finds its columns of ids and titles."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pslrec.data._columns import role_of
from pslrec.data._vocabulary import Vocabulary
from pslrec.data.formats import (
    check_readable,
    checked_encoding,
    decompressed,
    detect_separator,
    first_lines,
    in_memory,
    not_utf8_in,
    split_lines,
)
from pslrec.errors import DataError, EncodingError

TITLE_NAMES = ("title", "name", "item_name", "product_title", "movie_title", "description", "label")
# Columns with these names often hold marks such as 0 and 1, so their values have to be checked.
UNCERTAIN_TITLE_NAMES = ("description", "label")
# Numbers, shares such as 80 % and 4/5, dates, and yes or no: facts about an item, not its title.
_NO_TITLE = (
    r"(?i)^\s*([+-]?(\d+([.,]\d*)?|[.,]\d+)(e[+-]?\d+)?\s*(%|/\s*\d+)?|[+-]?(nan|inf|infinity)"
    r"|\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T\s].*)?|true|false|yes|no)\s*$"
)
ITEM_NAMES = ("id", "row", "key")
# Enough to tell which column holds ids.
SEEN_ROWS = 1000


class TableFile(NamedTuple):
    """A file with a table of items.

    Args:
        path: of a CSV, TSV, JSON lines or Parquet file.
        encoding: of a text file, such as `latin-1`; UTF-8 if `None`.
    """

    path: Path
    encoding: str | None = None


class RawTable(NamedTuple):
    """A table as it was read.

    Args:
        frame: all of its columns.
        item_column: name of the column of item ids.
        title_column: name of the column of titles, if there is one.
    """

    frame: pl.DataFrame
    item_column: str
    title_column: str | None


def read_table(source: TableFile | pl.DataFrame, items: Vocabulary) -> RawTable:
    """A table of items with the columns of ids and titles found.

    Args:
        source: a frame or a file. The ids are in the column
            called `item`, `asin`, `movieId`, `id` or similar, else in the one that holds most ids
            of the model. The titles are in the column called `title`, `name` or similar, else in
            the first column of text that differs from item to item, never in one of numbers such
            as ratings. The first line of a text file is its header if it holds one of these
            names, or neither an id of the model nor a number.
        items: ids of the model's items, which tell columns with names of their own apart.
    """
    origin = "the item table"
    if isinstance(source, pl.DataFrame):
        frame = source
    else:
        origin = str(source.path)
        frame = _table(source, items)
    if not len(frame) or frame.width < 2:
        raise DataError(
            f"{origin} must hold item ids and titles or categories, "
            f"got {len(frame)} rows of {frame.width} columns"
        )
    item, title = _columns(frame, origin, items)
    return RawTable(frame, item, title)


def _table(file: TableFile, items: Vocabulary) -> pl.DataFrame:
    path = file.path
    check_readable(path)
    encoding = checked_encoding(file.encoding)
    try:
        if path.suffix.lower() == ".parquet":
            table = pl.read_parquet(path)
        elif path.suffix.lower() in {".jsonl", ".ndjson", ".json"}:
            table = pl.read_ndjson(_text(path, encoding))
        else:
            table = _delimited(path, items, encoding)
    except EncodingError as error:
        # A log may be named by the same command, so a table has an option of its own.
        raise EncodingError(error.problem, error.guess, "--item-table-encoding") from None
    except DataError:
        raise
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{path} cannot be read as a table of items: {reason}") from error
    return table


def _text(path: Path, encoding: str | None) -> bytes:
    """The whole content, which is UTF-8: a title with wrong letters would go unnoticed."""
    content = in_memory(decompressed(path, encoding))
    try:
        content.decode()
    except UnicodeDecodeError as error:
        raise not_utf8_in(path, content, error.start) from error
    return content


def _delimited(path: Path, items: Vocabulary, encoding: str | None) -> pl.DataFrame:
    lines = [line for _, line in first_lines(path, 20, encoding)]
    separator = detect_separator(lines)
    has_header = _has_header(split_lines(lines, separator), items)
    content = _text(path, encoding)
    if len(separator) > 1:
        # polars takes a single byte only, such as this one, which is made for separating.
        content = content.replace(separator.encode(), b"\x1f")
        separator = "\x1f"

    def read(quote: str | None) -> pl.DataFrame:
        # As text: an id such as 007 must stay what it is.
        return pl.read_csv(
            content,
            separator=separator,
            has_header=has_header,
            quote_char=quote,
            infer_schema=False,
            truncate_ragged_lines=True,
        )

    try:
        return read('"')
    except pl.exceptions.PolarsError:
        # A title may begin with a word in quotes.
        return read(None)


def _has_header(lines: Sequence[Sequence[str]], items: Vocabulary) -> bool:
    first, *others = lines
    if any(_is_item(name) or name.strip().lower() in TITLE_NAMES for name in first):
        return True
    if any(_is_number(field) or items.find_given(field) is not None for field in first):
        return False
    # Names in another language: the lines below them are about items of the model.
    for line in others:
        if any(items.find_given(field) is not None for field in line):
            return True
    return False


def _is_number(field: str) -> bool:
    return re.fullmatch(r"[+-]?\d+([.,]\d+)?", field.strip()) is not None


def _is_item(name: str) -> bool:
    return role_of(name) == "item" or name.strip().lower() in ITEM_NAMES


def _columns(table: pl.DataFrame, origin: str, items: Vocabulary) -> tuple[str, str | None]:
    names = table.columns
    # A name such as `asin` is certain, one such as `id` might mean something else.
    certain = [name for name in names if role_of(name) == "item"]
    likely = [name for name in names if _is_item(name)]
    item = (certain or likely or [_column_of_ids(table, items)])[0]
    title = _title_column(table, item)
    if title is not None:
        return item, title
    # Categories will do without titles, but a log of ratings was given by mistake.
    has_categories = any(_holds_categories(table[name]) for name in names if name != item)
    if not has_categories or _is_log(names):
        shown = ", ".join(f"`{name}`" for name in names)
        raise DataError(
            f"{origin} must hold a column of titles beside the ids in `{item}`, got columns "
            f"{shown}, of which none holds text that could be titles; "
            "name the right one `title`"
        )
    return item, None


def _column_of_ids(table: pl.DataFrame, items: Vocabulary) -> str:
    """The column with most ids of the model, the first one of several; none of the names helps."""

    def n_known(name: str) -> int:
        found = items.find_all_given(table[name].head(SEEN_ROWS).to_list())
        return len(found) - found.count(None)

    return max(table.columns, key=n_known)


def _holds_categories(column: pl.Series) -> bool:
    return _holds_text(column) or column.dtype == pl.List(pl.String)


def _is_log(names: list[str]) -> bool:
    return any(role_of(name) == "user" for name in names)


def _title_column(table: pl.DataFrame, item: str) -> str | None:
    """The column that is called so, else the first column of text after the ids or before them."""
    others = [name for name in table.columns if name != item]
    for name in others:
        called = name.strip().lower()
        is_certain = called in TITLE_NAMES and called not in UNCERTAIN_TITLE_NAMES
        if is_certain or (called in TITLE_NAMES and _holds_text(table[name])):
            return name
    place = table.columns.index(item)
    after_then_before = [*table.columns[place + 1 :], *table.columns[:place]]
    for name in after_then_before:
        if role_of(name) is None and _holds_text(table[name]) and _differs(table[name]):
            return name
    return None


def _differs(column: pl.Series) -> bool:
    """Whether most items have a value of their own, as of titles and unlike categories."""
    present = column.drop_nulls()
    return 2 * present.n_unique() > len(present)


def _holds_text(column: pl.Series) -> bool:
    """Whether most of the distinct values are text, not numbers, dates and the like."""
    if column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    if column.dtype != pl.String:
        return False
    # Distinct, since a column of ratings may mark thousands of gaps by `n/a`.
    values = column.drop_nulls().unique()
    values = values.filter(values.str.strip_chars() != "")
    n_titles = len(values) - int(values.str.contains(_NO_TITLE).sum())
    return 2 * n_titles > len(values)
