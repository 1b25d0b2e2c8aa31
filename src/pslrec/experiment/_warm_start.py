"""Starting from the model of an earlier run: who was there goes on from its row, who is new starts where its neighbours say."""

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pslrec.backbones import Backbone
from pslrec.data import Interactions, Vocabulary
from pslrec.errors import ConfigError
from pslrec.inference import RunFiles, StartingRows, read_run
from pslrec.rows import Rows

logger = logging.getLogger(__name__)


@torch.no_grad()
def start_warm(backbone: Backbone, train: Interactions, path: Path) -> None:
    """Give the tables of a backbone the rows that its users and items had at the end of an earlier run.

    Users and items are known again by their external ids. One that is new starts where its known neighbours in the training
    data say, see `StartingRows`, as long as an ordinary row; one without any keeps the row it has. One that is known moves from
    its row by what its neighbours say now, less what they said when the row was learnt.

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
        raise ConfigError(
            f"no user and no item of the training data is in the run in {path}; start without it"
        )
    learnt = Interactions(*_trained_pairs(files), files.users, files.items)
    _begin(
        backbone.user_table.data, tables, learnt, (train.users, user_rows), (train.items, item_rows)
    )
    turned = Interactions(learnt.items, learnt.users, files.items, files.users)
    _begin(
        backbone.item_table.data,
        tables[::-1],
        turned,
        (train.items, item_rows),
        (train.users, user_rows),
    )
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
    trained = _trained_pairs(files)
    keys = trained[0].astype(np.int64) * len(files.items) + trained[1]
    are_learnt = np.isin(users * len(files.items) + items, keys) & (users >= 0) & (items >= 0)
    return float(are_learnt.mean()) if len(part) else 0.0


def _trained_pairs(files: RunFiles) -> tuple[np.ndarray, np.ndarray]:
    parts = [files.train, *([files.validation] if "refit" in files.metrics else [])]
    users, items = (torch.cat([part[side] for part in parts]).numpy() for side in (0, 1))
    return users, items


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
    """Fill one table.

    Args:
        table: to fill; who is new and has no known neighbour keeps the row it has.
        old_tables: of the earlier run, first that of the same side.
        learnt: the earlier training pairs, the same side first.
        owners: of every training pair the row in `table`, and for every such row the one of the earlier run or -1.
        neighbours: the same of the other side.
    """
    before = learnt.rows
    now = _known_neighbours(
        owners[0], neighbours[1][neighbours[0]], (len(table), len(old_tables[1]))
    )
    starting = StartingRows(old_tables[1], old_tables[0], before)
    directions, has_any = starting.directions(now), torch.from_numpy(now.lengths > 0)
    old_rows = torch.from_numpy(owners[1])
    is_known = old_rows >= 0
    is_new = ~is_known & has_any
    table[is_new] = directions[is_new] * old_tables[0].norm(dim=1).mean()
    known = old_rows[is_known]
    table[is_known] = old_tables[0][known]
    has_both = has_any[is_known] & torch.from_numpy(before.lengths > 0)[known]
    moved = (directions[is_known] - starting.directions(before)[known]) * has_both.unsqueeze(1)
    table[is_known] += moved * old_tables[0][known].norm(dim=1, keepdim=True)


def _known_neighbours(owners: np.ndarray, neighbours: np.ndarray, shape: tuple[int, int]) -> Rows:
    """The rows in the earlier run of each owner's neighbours; those of -1 are left out."""
    is_known = neighbours >= 0
    keys = owners[is_known].astype(np.int64) * shape[1] + neighbours[is_known]
    return Rows.from_keys(keys, n_owners=shape[0], n_items=shape[1])
