"""Starting from the model of an earlier run: who was there keeps its row, who is new starts where its neighbours say."""

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pslrec.backbones import Backbone
from pslrec.data import Interactions, Vocabulary
from pslrec.errors import ConfigError
from pslrec.evaluation.task import RowLists
from pslrec.inference import read_run
from pslrec.inference.starting_rows import StartingRows

logger = logging.getLogger(__name__)


@torch.no_grad()
def start_warm(backbone: Backbone, train: Interactions, path: Path) -> None:
    """Give the tables of a backbone the rows that its users and items had at the end of an earlier run.

    Users and items are known again by their external ids. One that is new starts where its known neighbours in the training
    data say, see `StartingRows`, as long as an ordinary row; one without any keeps the row it has.

    Args:
        backbone: as it was built, of the kind and dimension of the earlier run.
        train: what it will be trained on.
        path: directory of the earlier run, which must be finished.
    """
    files = read_run(path)
    name = files.config.get("backbone", {}).get("name")
    tables = (
        files.tables.get("user_table", files.tables["users"]),
        files.tables.get("item_table", files.tables["items"]),
    )
    if name != backbone.name or tables[0].shape[1] != backbone.dimension:
        raise ConfigError(
            f"a warm start needs the same backbone and dimension: the run in {path} has `{name}` with {tables[0].shape[1]}, "
            f"this one `{backbone.name}` with {backbone.dimension}"
        )
    user_rows = _old_rows(train.user_vocabulary, files.users)
    item_rows = _old_rows(train.item_vocabulary, files.items)
    if (user_rows < 0).all() and (item_rows < 0).all():
        raise ConfigError(f"no user and no item of the training data is in the run in {path}; start without it")
    learnt = Interactions(files.train[0].numpy(), files.train[1].numpy(), files.users, files.items)
    _begin(backbone.user_table.data, tables, learnt, (train.users, user_rows), (train.items, item_rows))
    turned = Interactions(learnt.items, learnt.users, files.items, files.users)
    _begin(backbone.item_table.data, tables[::-1], turned, (train.items, item_rows), (train.users, user_rows))
    logger.info(
        "warm start: %d of %d users and %d of %d items are known",
        int((user_rows >= 0).sum()),
        len(user_rows),
        int((item_rows >= 0).sum()),
        len(item_rows),
    )


def learnt_before(part: Interactions, path: Path) -> float:
    """The share of the pairs of a part that the earlier run was trained on, and that say little of a model started from it.

    Args:
        part: of the data that a run is judged by.
        path: directory of the earlier run.
    """
    files = read_run(path)
    users, items = (
        _old_rows(vocabulary, old)[rows]
        for rows, vocabulary, old in (
            (part.users, part.user_vocabulary, files.users),
            (part.items, part.item_vocabulary, files.items),
        )
    )
    trained = [files.train, *([files.validation] if "refit" in files.metrics else [])]
    keys = np.concatenate(
        [pairs[0].numpy().astype(np.int64) * len(files.items) + pairs[1].numpy() for pairs in trained]
    )
    are_learnt = np.isin(users * len(files.items) + items, keys) & (users >= 0) & (items >= 0)
    return float(are_learnt.mean()) if len(part) else 0.0


def _old_rows(vocabulary: Vocabulary, old_vocabulary: Vocabulary) -> np.ndarray:
    rows = [old_vocabulary.find(identifier) for identifier in vocabulary.series.to_list()]
    return np.array([-1 if row is None else row for row in rows], dtype=np.int64)


def _begin(
    table: Tensor,
    old_tables: Sequence[Tensor],
    learnt: Interactions,
    owners: tuple[np.ndarray, np.ndarray],
    neighbours: tuple[np.ndarray, np.ndarray],
) -> None:
    """Fill one table: rows that are known, and those of the new that have known neighbours.

    Args:
        table: to fill.
        old_tables: of the earlier run, first that of the same side.
        learnt: the earlier training pairs, the same side first.
        owners: of every training pair the row in `table`, and for every such row the one of the earlier run or -1.
        neighbours: the same of the other side.
    """
    old_rows = torch.from_numpy(owners[1])
    is_known = old_rows >= 0
    table[is_known] = old_tables[0][old_rows[is_known]]
    counts = (owners[1][owners[0]] < 0) & (neighbours[1][neighbours[0]] >= 0)
    if not counts.any():
        return
    new, places = np.unique(owners[0][counts], return_inverse=True)
    n_old = len(old_tables[1])
    pairs = np.unique(places.astype(np.int64) * n_old + neighbours[1][neighbours[0][counts]])
    offsets = np.searchsorted(pairs, np.arange(len(new) + 1) * n_old)
    started = StartingRows(old_tables[1], old_tables[0], RowLists.of(learnt))
    found = started.directions(RowLists(offsets, (pairs % n_old).astype(np.int32)))
    table[torch.from_numpy(new.astype(np.int64))] = found * old_tables[0].norm(dim=1).mean()
