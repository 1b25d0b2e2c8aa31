"""Reasons for recommended items, as columns beside them."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import polars as pl

from pslrec.data.items import ItemTable
from pslrec.inference import TopItems, TrainedModel
from pslrec.rows import Rows


def with_reasons(
    frame: pl.DataFrame,
    model: TrainedModel,
    top: TopItems,
    histories: Rows,
    n_reasons: int,
    table: ItemTable | None = None,
) -> pl.DataFrame:
    """Ranked lists with the column `because`: items of the history that are nearest to each.

    Args:
        frame: what `ranked_frame` made of the lists.
        model: knows the vectors of the items.
        top: the lists.
        histories: items of each list's owner.
        n_reasons: how many reasons to give for each item.
        table: adds the column `because_titles`.
    """
    because = []
    titles = []
    for place, ranked in enumerate(top.items.tolist()):
        shown = [row for row in ranked if row >= 0]
        history = histories.list_of(place).tolist()
        for reasons in model.reasons(shown, history, n_reasons):
            rows = [reason.item for reason in reasons]
            because.append(model.items.ids(rows))
            if table is not None:
                titles.append(table.titles_of(rows).to_list())
    kind = pl.List(model.items.series.dtype)
    found = frame.with_columns(pl.Series("because", because, dtype=kind))
    if table is None or not table.has_titles:
        return found
    return found.with_columns(pl.Series("because_titles", titles, dtype=pl.List(pl.String)))


def reason_frame(
    model: TrainedModel,
    items: Sequence[int],
    history: Iterable[int],
    n_reasons: int,
    table: ItemTable | None = None,
) -> pl.DataFrame:
    """The reasons for some items, one line for each reason.

    Args:
        model: knows the vectors of the items.
        items: rows of the items to explain.
        history: rows of the items to choose reasons from.
        n_reasons: how many reasons to give for each item.
        table: adds the columns `title` and `because_title`.
    """
    explained = []
    near = []
    similarities = []
    ranks = []
    for item, reasons in zip(items, model.reasons(items, list(history), n_reasons), strict=True):
        for rank, reason in enumerate(reasons, start=1):
            explained.append(item)
            near.append(reason.item)
            similarities.append(reason.similarity)
            ranks.append(rank)
    ids = model.items.series
    columns: dict[str, Any] = {"item": ids.gather(explained)}
    columns["because"] = ids.gather(near)
    columns["similarity"] = np.array(similarities, dtype=np.float32)
    columns["rank"] = np.array(ranks, dtype=np.int32)
    if table is not None and table.has_titles:
        columns["title"] = table.titles_of(explained)
        columns["because_title"] = table.titles_of(near)
    return pl.DataFrame(columns)
