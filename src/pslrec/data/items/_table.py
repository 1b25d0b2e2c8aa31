"""What is known about the items of a model: their titles, and columns to choose them by."""

import logging
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pslrec.data._vocabulary import Vocabulary
from pslrec.data.formats import is_frame
from pslrec.data.items._columns import ItemColumn
from pslrec.data.items._comparisons import unknown_column
from pslrec.data.items._conditions import Condition
from pslrec.data.items._reading import RawTable, TableFile, read_table
from pslrec.errors import ConfigError, DataError, PslrecError
from pslrec.files import FileError, check_regular, whole_file

logger = logging.getLogger(__name__)

LONGEST_TITLE = 300
# Conditions are mostly few and repeated; these masks take one byte per item each.
KEPT_MASKS = 64


class ItemTable:
    """A table of items in the row order of a model.

    Args:
        raw: the table as it was read.
        items: ids of the model's items; other ids in the table are ignored.
        origin: what messages call the table.

    Attributes:
        titles: by row of the item; `None` where an item has none.
        title_column: name of the column of titles; `None` if the table has none.
        has_titles: whether the table has a column of titles.
        columns: every column but the ids, by name.

    >>> frame = pl.DataFrame(
    ...     {"item": [1, 2, 3], "title": ["Up", "Alien", "Big"], "year": [2009, 1979, 1988]}
    ... )
    >>> table = ItemTable.read(frame, Vocabulary([3, 1, 7], kind="item"))
    >>> table.titles
    ['Big', 'Up', None]
    >>> table.where("year >= 1985")
    array([ True,  True, False])
    """

    def __init__(self, raw: RawTable, items: Vocabulary, origin: str = "the item table") -> None:
        self._raw = raw
        self._origin = origin
        self.items = items
        aligned = _aligned(raw, items, origin)
        self.title_column = raw.title_column
        self.has_titles = raw.title_column is not None
        self.titles: list[str | None] = [None] * len(items)
        if raw.title_column is not None:
            self.titles = [_one_line(title) for title in aligned[raw.title_column].to_list()]
        self.columns: dict[str, ItemColumn] = {}
        for name in aligned.columns:
            column = ItemColumn.from_series(aligned[name])
            if column is not None and name != raw.item_column:
                self.columns[name] = column
        self._masks: OrderedDict[str, np.ndarray] = OrderedDict()

    @classmethod
    def read(cls, source: Any, items: Vocabulary) -> "ItemTable":
        """Read a table of items.

        Args:
            source: a CSV, TSV, JSON lines or Parquet file, a `TableFile` with its encoding, or a
                polars or pandas frame. The ids are in the column called `item`, `movieId`, `id` or similar, else in the one that
                holds most ids of the model; titles in the column called `title`, `name` or similar, else in the first column of
                text that differs from item to item. All columns can be used in conditions.
            items: ids of the model's items.
        """
        if isinstance(source, str) or hasattr(source, "__fspath__"):
            source = TableFile(Path(source))
        if isinstance(source, TableFile):
            return cls(read_table(source, items), items, str(source.path))
        return cls(read_table(_frame_of(source), items), items)

    @classmethod
    def saved_in(
        cls, path: Path, items: Vocabulary, *, error: type[PslrecError] = FileError
    ) -> "ItemTable":
        """Read a table that `save` wrote.

        Args:
            path: the file.
            items: ids of the model's items.
            error: the exception to raise if it is not such a file.
        """
        check_regular(path, error=error)
        try:
            frame = pl.read_parquet(path, glob=False)
            return cls(read_table(frame, items), items, str(path))
        except (
            OSError,
            ValueError,
            DataError,
            pl.exceptions.PolarsError,
            pl.exceptions.PanicException,
        ) as failure:
            reason = str(failure).splitlines()[0][:200]
            raise error(
                f"{path} cannot be read as a table of items: {reason}; "
                "remove it, and give the table anew"
            ) from failure

    def save(self, path: Path, *, error: type[PslrecError] = FileError) -> None:
        """Write the table as it was read, completely or not at all, as Parquet.

        Lines about items that the model does not know are written too: a later model may know them.

        Args:
            path: the file.
            error: the exception to raise if it cannot be written.
        """
        frame = self._raw.frame
        # A column of anything else can neither be written nor used.
        usable = [name for name in frame.columns if ItemColumn.is_usable(frame[name])]
        with whole_file(path, error=error) as file:
            frame.select(usable).write_parquet(file)

    def for_items(self, items: Vocabulary) -> "ItemTable":
        """The same table in the row order of other items.

        Args:
            items: ids of the other model's items.
        """
        if items is self.items:
            return self
        return ItemTable(self._raw, items, self._origin)

    def where(self, condition: str) -> np.ndarray:
        """For each item whether it meets a condition.

        Args:
            condition: such as `genre == "Comedy" and year >= 1990`; see `Condition`.
        """
        mask = self._masks.get(condition)
        if mask is None:
            mask = Condition.parse(condition).mask(self.columns)
            mask.flags.writeable = False
            self._masks[condition] = mask
            if len(self._masks) > KEPT_MASKS:
                self._masks.popitem(last=False)
        return mask

    def column(self, name: str) -> ItemColumn:
        """A column by its name.

        Args:
            name: of the column.
        """
        if name not in self.columns:
            raise ConfigError(f"`at_most` names {unknown_column(self.columns, name)}")
        return self.columns[name]

    def details(self, row: int) -> dict[str, Any]:
        """What the table says about an item beside its title; columns without a value are left out.

        Args:
            row: of the item.
        """
        found = {}
        for name, column in self.columns.items():
            value = column.value(row)
            if value is not None and name != self.title_column:
                found[name] = value
        return found

    def titles_of(self, rows: Iterable[int]) -> pl.Series:
        """The titles of some items as a column.

        Args:
            rows: of the items.
        """
        return pl.Series("title", [self.titles[row] for row in rows], dtype=pl.String)


def _frame_of(source: Any) -> pl.DataFrame:
    if isinstance(source, pl.LazyFrame):
        return source.collect()
    if isinstance(source, pl.DataFrame):
        return source
    if hasattr(source, "iterrows"):
        # Not `from_pandas`, which needs pyarrow; pandas marks gaps by NaN, which is unlike itself.
        columns = {}
        for name in source.columns:
            values = source[name].tolist()
            columns[str(name)] = [None if value != value else value for value in values]
        return pl.DataFrame(columns, strict=False)
    if not is_frame(source):
        raise DataError(f"`item_table` must be a file or a frame, got {type(source).__name__}")
    return pl.DataFrame(source)


def _aligned(raw: RawTable, items: Vocabulary, origin: str) -> pl.DataFrame:
    """One line per item of the model, empty where the table has none for it."""
    places: list[int | None] = [None] * len(items)
    repeated = []
    facts = raw.frame.drop(raw.item_column)
    ids = raw.frame[raw.item_column].to_list()
    for place, identifier in enumerate(ids):
        row = items.find_given(identifier)
        if row is None or identifier is None:
            continue
        before = places[row]
        # As text, in which a missing number equals another one.
        if before is not None and str(facts.row(before)) != str(facts.row(place)):
            repeated.append(identifier)
        places[row] = place
    if repeated:
        logger.warning(
            "%s has several lines about %s, such as `%s`, which differ; the last one of each counts",
            origin,
            "one item" if len(set(repeated)) == 1 else f"each of {len(set(repeated)):,} items",
            repeated[0],
        )
    if all(place is None for place in places):
        first = items.ids([0])[0]
        raise DataError(
            f"{origin}: no id in column `{raw.item_column}` is an item of the model; "
            f"the first is `{ids[0]}`, the model's first is `{first}`"
        )
    return raw.frame.select(pl.all().gather(pl.Series(places, dtype=pl.UInt32)))


def _one_line(title: Any) -> str | None:
    if title is None:
        return None
    # A title with line breaks would tear lists apart.
    one_line = " ".join(str(title).split())
    return one_line[:LONGEST_TITLE] or None
