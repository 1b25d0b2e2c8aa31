"""External ids in, frames out."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
import polars as pl
import torch
from torch import Tensor

from pslrec.data import Dataset, Interactions, Vocabulary, load, read_interactions
from pslrec.data.formats import is_frame
from pslrec.errors import ConfigError, DataError, UnknownNameError
from pslrec.inference import TopItems

Output = Literal["polars", "pandas", "numpy"]


def read_any(data: Any) -> Interactions | Dataset:
    """Whatever the data layer reads: a name, a path, a frame, a sparse matrix, or what it has read already."""
    if isinstance(data, Dataset):
        return data
    return (
        load(data)
        if isinstance(data, str) or hasattr(data, "__fspath__")
        else read_interactions(data)
    )


def onto(interactions: Interactions, users: Vocabulary, items: Vocabulary) -> Interactions:
    """The interactions whose user and item are both known, over other vocabularies."""
    user_rows, item_rows = (
        np.array(
            [-1 if (row := known.find(each)) is None else row for each in own.series.to_list()],
            dtype=np.int64,
        )
        for own, known in (
            (interactions.user_vocabulary, users),
            (interactions.item_vocabulary, items),
        )
    )
    new_users, new_items = user_rows[interactions.users], item_rows[interactions.items]
    kept = (new_users >= 0) & (new_items >= 0)
    return Interactions(new_users[kept], new_items[kept], users, items)


def rows_of(ids: Any, vocabulary: Vocabulary, hint: str = "") -> Tensor:
    """Rows of one external id or many."""
    listed = as_ids(ids)
    found = [vocabulary.find(each) for each in listed]
    unknown = [each for each, row in zip(listed, found, strict=True) if row is None]
    if unknown:
        others = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        raise UnknownNameError(f"unknown {vocabulary.kind} `{unknown[0]}`{others}{hint}")
    return torch.tensor([row for row in found if row is not None], dtype=torch.int64)


def as_ids(ids: Any) -> list[Any]:
    """One id, or any column or list of them, as a list."""
    if isinstance(ids, str | bytes | int) or not isinstance(ids, Iterable):
        return [ids]
    to_list = getattr(ids, "to_list", None) or getattr(ids, "tolist", None)
    found = to_list() if to_list is not None else list(ids)
    return found if isinstance(found, list) else [found]


def histories_of(history: Any) -> tuple[list[Any], list[list[Any]]]:
    """Names and item ids of people: of one list of ids, several lists, lists by name, or a frame of interactions."""
    if isinstance(history, Mapping):
        return list(history), [as_ids(ids) for ids in history.values()]
    if isinstance(history, Interactions | pl.LazyFrame) or (
        is_frame(history) and hasattr(history, "columns")
    ):
        frame = (
            read_interactions(history).to_frame().group_by("user", maintain_order=True).agg("item")
        )
        return frame["user"].to_list(), frame["item"].to_list()
    if isinstance(history, str):
        raise DataError(
            f"`history` must be a list of item ids, got the text {history!r}; for one item write [{history!r}]"
        )
    listed = as_ids(history)
    are_lists = [
        isinstance(each, Iterable) and not isinstance(each, str | bytes) for each in listed
    ]
    if listed and all(are_lists):
        return list(range(len(listed))), [as_ids(each) for each in listed]
    if any(are_lists):
        raise DataError("`history` must hold item ids, or lists of item ids, not both")
    return [0], [listed]


def ranked_frame(
    names: pl.Series,
    top: TopItems,
    vocabulary: Vocabulary,
    columns: tuple[str, str] = ("user", "item"),
) -> pl.DataFrame:
    """Ranked lists as one frame: who, what, score, and rank from 1.

    Args:
        names: external ids of whose lists these are.
        top: the lists.
        vocabulary: external ids of what is in them.
        columns: what the first two columns are called.
    """
    shown = (top.items >= 0).numpy()
    owners, places = np.nonzero(shown)
    return pl.DataFrame(
        {
            columns[0]: names.gather(owners),
            columns[1]: vocabulary.series.gather(top.items.numpy()[shown]),
            "score": top.scores.numpy()[shown],
            "rank": (places + 1).astype(np.int32),
        }
    )


def given_as(frame: pl.DataFrame, output: str) -> Any:
    """The frame as a polars or pandas frame, or a structured array."""
    if output == "polars":
        return frame
    if output == "numpy":
        return frame.to_numpy(structured=True)
    if output != "pandas":
        raise ConfigError(f"`output` must be polars, pandas or numpy, got {output!r}")
    try:
        import pandas as pd
    except ImportError:
        raise ConfigError(
            '`output="pandas"` needs pandas, which is not installed: run `pip install pandas`'
        ) from None
    return pd.DataFrame({name: frame[name].to_numpy() for name in frame.columns})
