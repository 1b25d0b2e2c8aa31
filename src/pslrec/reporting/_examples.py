"""Recommendations that a reader can judge by their titles, as a section of a report."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch

from pslrec.data.items import ItemTable, TableFile
from pslrec.errors import PslrecError
from pslrec.inference import TrainedModel
from pslrec.reporting._document import Cell, Section, Table, Text
from pslrec.reporting._run_record import RunRecord

N_USERS = 5
N_RECOMMENDED = 5
SHOWN_HISTORY = 8
CAPTION = (
    "users spread evenly from the shortest history to the longest; at most "
    f"{SHOWN_HISTORY} items of the history, and the best {N_RECOMMENDED} items without it"
)


def examples_section(record: RunRecord, item_table: TableFile | Path) -> Section:
    """What some users have and what they would get, by titles.

    Args:
        record: a finished run.
        item_table: a file with item ids and titles.
    """
    # A mistake in the table is the caller's, and stops the report; a model that is gone does not.
    try:
        model = TrainedModel.load(record.path)
    except PslrecError as error:
        return Section("Examples", [Text(f"The model cannot be read: {error}.", "warning")])
    table = ItemTable.read(item_table, model.items)
    users = _users(model)
    top = model.recommend(torch.from_numpy(users), N_RECOMMENDED)
    rows = []
    for user, recommended in zip(users.tolist(), top.items.tolist(), strict=True):
        history = model.seen.list_of(user)[:SHOWN_HISTORY].tolist()
        best = [item for item in recommended if item >= 0]
        cells = [str(model.users.ids([user])[0])]
        cells += [_named(history, model, table), _named(best, model, table)]
        rows.append([Cell(text) for text in cells])
    caption = f"{record.label}: {CAPTION}"
    return Section("Examples", [Table(caption, ["user", "has", "would get"], rows)])


def _users(model: TrainedModel) -> np.ndarray:
    lengths = model.seen.lengths
    by_length = np.argsort(lengths, kind="stable")
    with_items = by_length[lengths[by_length] > 0]
    places = np.linspace(0, len(with_items) - 1, num=min(N_USERS, len(with_items)))
    chosen: np.ndarray = with_items[places.astype(np.int64)]
    return chosen


def _named(items: Iterable[int], model: TrainedModel, table: ItemTable) -> str:
    names = []
    for item in items:
        # An item without a title is named by its id.
        names.append(table.titles[item] or str(model.items.ids([item])[0]))
    return "; ".join(names)
