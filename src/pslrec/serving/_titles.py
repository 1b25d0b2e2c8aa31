"""Titles of items, read from a table, for people who look at recommendations."""

from pathlib import Path
from typing import Any

import polars as pl

from pslrec.data import role_of
from pslrec.data.formats import (
    check_readable,
    decompressed,
    detect_separator,
    first_lines,
    in_memory,
    split_lines,
)
from pslrec.errors import DataError
from pslrec.serving._identifiers import Identifiers

TITLE_NAMES = ("title", "name", "item_name", "product_title", "movie_title", "description", "label")
# Columns with these names often hold marks such as 0 and 1, so their values have to be checked.
UNCERTAIN_TITLE_NAMES = ("description", "label")
# Numbers, shares such as 80 % and 4/5, dates, and yes or no: facts about an item, not its title.
_NO_TITLE = (
    r"(?i)^\s*([+-]?(\d+([.,]\d*)?|[.,]\d+)(e[+-]?\d+)?\s*(%|/\s*\d+)?|[+-]?(nan|inf|infinity)"
    r"|\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T\s].*)?|true|false|yes|no)\s*$"
)
ITEM_NAMES = ("id", "row", "key")
LONGEST_TITLE = 300


def read_titles(path: Path, items: Identifiers) -> list[str | None]:
    """The titles of items by row; `None` where the table has none.

    Args:
        path: CSV, TSV, JSON lines or Parquet with a column of item ids and one of titles. The ids
            are in the column called `item`, `asin`, `movieId`, `id` or similar, else in the first
            one. The titles are in the column called `title`, `name` or similar, else in the first
            column of text after the ids, never in one of numbers such as ratings. A text file whose
            first line holds none of these names has no header.
        items: the ids to find titles for; other ids in the table are ignored.
    """
    table = _table(path)
    item_column, title_column = _columns(table, path)
    titles: list[str | None] = [None] * len(items)
    n_found = 0
    ids = table[item_column].to_list()
    for identifier, title in zip(ids, table[title_column].to_list(), strict=True):
        if identifier is None or title is None:
            continue
        row = items.find(_key(identifier))
        if row is not None:
            # A title with line breaks would tear lists apart.
            one_line = " ".join(str(title).split())
            titles[row] = one_line[:LONGEST_TITLE] or None
            n_found += 1
    if not n_found:
        raise DataError(
            f"{path}: no id in column `{item_column}` is an item of the model; "
            f"the first is `{ids[0]}`, the model's first is `{items.names[0]}`"
        )
    return titles


def _key(identifier: Any) -> int | str:
    # In Python a bool is an int.
    if isinstance(identifier, int) and not isinstance(identifier, bool):
        return identifier
    return str(identifier)


def _table(path: Path) -> pl.DataFrame:
    check_readable(path)
    try:
        if path.suffix.lower() == ".parquet":
            table = pl.read_parquet(path)
        elif path.suffix.lower() in {".jsonl", ".ndjson", ".json"}:
            table = pl.read_ndjson(path)
        else:
            table = _delimited(path)
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{path} cannot be read as a table of titles: {reason}") from error
    if not len(table) or table.width < 2:
        raise DataError(
            f"{path} must hold item ids and titles, got {len(table)} rows of {table.width} columns"
        )
    return table


def _delimited(path: Path) -> pl.DataFrame:
    lines = [line for _, line in first_lines(path, 20)]
    separator = detect_separator(lines)
    header = split_lines(lines[:1], separator)[0]
    content = in_memory(decompressed(path))
    if len(separator) > 1:
        # polars takes a single byte only, such as this one, which is made for separating.
        content = content.replace(separator.encode(), b"\x1f")
        separator = "\x1f"
    has_header = any(_is_item(name) or name.strip().lower() in TITLE_NAMES for name in header)

    def read(quote: str | None) -> pl.DataFrame:
        # As text: an id such as 007 must stay what it is.
        return pl.read_csv(
            content,
            separator=separator,
            has_header=has_header,
            quote_char=quote,
            infer_schema=False,
            encoding="utf8-lossy",
            truncate_ragged_lines=True,
        )

    try:
        return read('"')
    except pl.exceptions.PolarsError:
        # A title may begin with a word in quotes.
        return read(None)


def _is_item(name: str) -> bool:
    return role_of(name) == "item" or name.strip().lower() in ITEM_NAMES


def _columns(table: pl.DataFrame, path: Path) -> tuple[str, str]:
    names = table.columns
    # A name such as `asin` is certain, one such as `id` might mean something else.
    certain = [name for name in names if role_of(name) == "item"]
    likely = [name for name in names if _is_item(name)]
    item = (certain or likely or names)[0]
    title = _title_column(table, item)
    if title is None:
        shown = ", ".join(f"`{name}`" for name in names)
        raise DataError(
            f"{path} must hold a column of titles beside the ids in `{item}`, got columns {shown}, "
            "of which none holds text that could be titles; name the right one `title`"
        )
    return item, title


def _title_column(table: pl.DataFrame, item: str) -> str | None:
    """The column that is called so, else the first column of text after the ids or before them."""
    others = [name for name in table.columns if name != item]
    for name in others:
        called = name.strip().lower()
        is_certain = called in TITLE_NAMES and called not in UNCERTAIN_TITLE_NAMES
        if is_certain or (called in TITLE_NAMES and _holds_titles(table[name])):
            return name
    place = table.columns.index(item)
    after_then_before = [*table.columns[place + 1 :], *table.columns[:place]]
    for name in after_then_before:
        if role_of(name) is None and _holds_titles(table[name]):
            return name
    return None


def _holds_titles(column: pl.Series) -> bool:
    """Whether most of the distinct values are text that could be titles."""
    if column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    if column.dtype != pl.String:
        return False
    # Distinct, since a column of ratings may mark thousands of gaps by `n/a`.
    values = column.drop_nulls().unique()
    values = values.filter(values.str.strip_chars() != "")
    n_titles = len(values) - int(values.str.contains(_NO_TITLE).sum())
    return 2 * n_titles > len(values)
