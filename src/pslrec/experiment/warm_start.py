"""Starting from the model of an earlier run: who was there keeps its row, who is new starts near its neighbours."""

import logging
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from pslrec.backbones import Backbone
from pslrec.data import Interactions, Vocabulary
from pslrec.errors import ConfigError
from pslrec.inference import read_run

logger = logging.getLogger(__name__)


@torch.no_grad()
def start_warm(backbone: Backbone, train: Interactions, path: Path) -> None:
    """Give the tables of a backbone the rows that its users and items had at the end of an earlier run.

    Users and items are known again by their external ids. One that is new starts in the middle of its known neighbours in the
    training data, as long as an ordinary row; one without any keeps the row it has.

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
    are_known_users = _take_over(backbone.user_table.data, train.user_vocabulary, tables[0], files.users)
    are_known_items = _take_over(backbone.item_table.data, train.item_vocabulary, tables[1], files.items)
    if not are_known_users.any() and not are_known_items.any():
        raise ConfigError(f"no user and no item of the training data is in the run in {path}; start without it")
    users, items = (torch.from_numpy(rows.astype(np.int64)) for rows in (train.users, train.items))
    # Both from what was known, before either is filled up.
    user_rows = _middles(backbone.item_table.data, are_known_items, items, users, len(are_known_users))
    item_rows = _middles(backbone.user_table.data, are_known_users, users, items, len(are_known_items))
    _fill(backbone.user_table.data, are_known_users, user_rows)
    _fill(backbone.item_table.data, are_known_items, item_rows)
    logger.info(
        "warm start: %d of %d users and %d of %d items are known",
        int(are_known_users.sum()),
        len(are_known_users),
        int(are_known_items.sum()),
        len(are_known_items),
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


def _take_over(table: Tensor, vocabulary: Vocabulary, old_table: Tensor, old_vocabulary: Vocabulary) -> Tensor:
    found = _old_rows(vocabulary, old_vocabulary)
    is_known = torch.from_numpy(found >= 0)
    table[is_known] = old_table[torch.from_numpy(found[found >= 0])]
    return is_known


def _middles(table: Tensor, are_known: Tensor, neighbours: Tensor, owners: Tensor, n_owners: int) -> Tensor:
    counts = are_known[neighbours]
    sums = torch.zeros((n_owners, table.shape[1]))
    sums.index_add_(0, owners[counts], functional.normalize(table, dim=1)[neighbours[counts]])
    return functional.normalize(sums, dim=1)


def _fill(table: Tensor, are_known: Tensor, middles: Tensor) -> None:
    length = table[are_known].norm(dim=1).mean() if are_known.any() else table.norm(dim=1).mean()
    are_filled = ~are_known & (middles.norm(dim=1) > 0)
    table[are_filled] = middles[are_filled] * length
