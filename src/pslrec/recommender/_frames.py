"""External ids in, frames out."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
import polars as pl
import torch
from scipy.sparse import issparse
from torch import Tensor

from pslrec.data import (
    Columns,
    Dataset,
    Interactions,
    Vocabulary,
    find_rows,
    load,
    read_interactions,
)
from pslrec.data.formats import is_frame
from pslrec.data.items import ItemTable
from pslrec.errors import ConfigError, DataError
from pslrec.inference import TopItems

Output = Literal["polars", "pandas", "numpy"]


def read_any(data: Any, **reading: Any) -> Interactions | Dataset:
    """Read whatever the data layer can read.

    Args:
        data: a name, a path, a frame, a sparse matrix, `Interactions` or a `Dataset`.
        reading: which column is what, and how a file is written: arguments of `load`.
    """
    if isinstance(data, str) or hasattr(data, "__fspath__"):
        return load(data, **reading)
    if isinstance(data, Dataset):
        return data
    if isinstance(data, Interactions) or issparse(data):
        # They have no columns; those of the settings are for other data.
        return read_interactions(data)
    return read_interactions(data, **reading)


def columns_of_more(data: Any, known: Columns, given: Columns, *, has_ratings: bool) -> Columns:
    """The columns of data that come after those that a model was fitted on.

    Args:
        data: a frame with other columns than known is read by the usual spellings.
        known: the columns of the first data.
        given: what the caller names now; it comes first.
        has_ratings: whether ratings are needed; times and weights never are.
    """
    names: list[str] | None = None
    if hasattr(data, "columns") and is_frame(data):
        names = [str(label) for label in data.columns]
    found = {"rating": "", "timestamp": "", "weight": ""}
    if has_ratings:
        del found["rating"]
    for role, name in known.given().items():
        is_there = names is None or name in names
        if is_there and role not in found:
            found[role] = name
    return Columns(**{**found, **given.given()})


def check_has_columns(data: Any) -> None:
    """Raise if columns are named for data that have none to choose from."""
    if isinstance(data, Interactions | Dataset) or issparse(data):
        # Ignoring them would look as if it had worked.
        kind = type(data).__name__
        raise DataError(f"`columns` has no effect on data of the type {kind}; leave it out")


def library_of(*given: Any) -> Output | None:
    """The library of the first frame or column among these; `None` if there is none.

    Args:
        given: anything that was given to a method.
    """
    for each in given:
        # By its name, as pandas need not be installed.
        library = type(each).__module__.partition(".")[0]
        if library == "pandas":
            return "pandas"
        if library == "polars":
            return "polars"
    return None


def onto(interactions: Interactions, users: Vocabulary, items: Vocabulary) -> Interactions:
    """The interactions whose user and item are both known, in the rows of other vocabularies.

    Args:
        interactions: over their own vocabularies.
        users: the known users.
        items: the known items.
    """
    user_rows = users.rows_of(interactions.user_vocabulary)[interactions.users]
    item_rows = items.rows_of(interactions.item_vocabulary)[interactions.items]
    is_known = (user_rows >= 0) & (item_rows >= 0)
    return Interactions(user_rows[is_known], item_rows[is_known], users, items)


def rows_of(
    ids: Any, vocabulary: Vocabulary, hint: str = "", *, skip_unknown: bool = False
) -> Tensor:
    """Rows of one external id or several; a whole number may be given as text.

    Args:
        ids: one id, or any list or column of them.
        vocabulary: knows the ids.
        hint: is added to the error for an unknown id.
        skip_unknown: leave unknown ids out instead of raising.
    """
    found = find_rows(as_ids(ids), vocabulary, skip_unknown=skip_unknown, hint=hint)
    return torch.tensor(found.rows, dtype=torch.int64)


def as_ids(ids: Any) -> list[Any]:
    """One id, or any column or list of ids, as a list.

    Args:
        ids: a scalar counts as one id; a text is one id, too.
    """
    if isinstance(ids, str | bytes | int) or not isinstance(ids, Iterable):
        return [ids]
    # Columns of polars and pandas have `to_list`, arrays and tensors `tolist`. Both give Python's
    # own numbers, which vocabularies compare by.
    to_list = getattr(ids, "to_list", None) or getattr(ids, "tolist", None)
    if to_list is None:
        return list(ids)
    found = to_list()
    if isinstance(found, list):
        return found
    # An array of no dimension gives its one value.
    return [found]


def histories_of(history: Any, known: Columns | None = None) -> tuple[list[Any], list[list[Any]]]:
    """Names of users, and the item ids of each.

    Args:
        history: item ids of one user, several such lists, lists by user, or interactions.
        known: columns of the training data, which interactions may have as well.
    """
    if isinstance(history, Mapping):
        return list(history), [as_ids(ids) for ids in history.values()]
    # A single column of ids can be read like a table, too, but has no columns itself.
    has_columns = is_frame(history) and hasattr(history, "columns")
    if isinstance(history, Interactions | pl.LazyFrame) or has_columns:
        columns = columns_of_more(history, known or Columns(), Columns(), has_ratings=False)
        if isinstance(history, Interactions):
            columns = Columns()
        pairs = read_interactions(history, columns=columns).to_frame()
        by_user = pairs.group_by("user", maintain_order=True).agg("item")
        return by_user["user"].to_list(), by_user["item"].to_list()
    if isinstance(history, str):
        # It is iterable as well, and would be taken for a list of letters.
        raise DataError(
            f"`history` must be a list of item ids, got the text {history!r}; "
            f"for one item write [{history!r}]"
        )
    listed = as_ids(history)
    n_lists = 0
    for entry in listed:
        if isinstance(entry, Iterable) and not isinstance(entry, str | bytes):
            n_lists += 1
    if n_lists == 0:
        return [0], [listed]
    if n_lists < len(listed):
        raise DataError("`history` must hold item ids, or lists of item ids, not both")
    return list(range(n_lists)), [as_ids(entry) for entry in listed]


def ranked_frame(
    names: pl.Series,
    top: TopItems,
    vocabulary: Vocabulary,
    columns: tuple[str, str] = ("user", "item"),
    table: ItemTable | None = None,
) -> pl.DataFrame:
    """Ranked lists as one frame with a score and a rank from 1.

    Args:
        names: external ids of the users (or items) that the lists belong to.
        top: the lists.
        vocabulary: external ids of the entries of the lists.
        columns: names of the first two columns.
        table: adds a column of titles, if it has titles.
    """
    # Lists that are shorter than the others end in -1.
    is_shown = (top.items >= 0).numpy()
    owners, places = np.nonzero(is_shown)
    owner_column, entry_column = columns
    entries = top.items.numpy()[is_shown]
    frame = pl.DataFrame(
        {
            owner_column: names.gather(owners),
            entry_column: vocabulary.series.gather(entries),
            "score": top.scores.numpy()[is_shown],
            "rank": (places + 1).astype(np.int32),
        }
    )
    if table is None or not table.has_titles:
        return frame
    return frame.with_columns(table.titles_of(entries))


def given_as(frame: pl.DataFrame, output: str) -> Any:
    """The frame in the library that was asked for.

    Args:
        frame: is returned as it is for "polars".
        output: "polars", "pandas", or "numpy" for a structured array.
    """
    if output == "polars":
        return frame
    if output == "numpy":
        return frame.to_numpy(structured=True)
    if output != "pandas":
        raise ConfigError(f"`output` must be polars, pandas or numpy, got {output!r}")
    # Imported here, as it is optional and slow to load.
    try:
        import pandas as pd
    except ImportError:
        raise ConfigError(
            '`output="pandas"` needs pandas, which is not installed: run `pip install pandas`'
        ) from None
    # Not `to_pandas`, which needs pyarrow as well.
    return pd.DataFrame({name: frame[name].to_numpy() for name in frame.columns})
