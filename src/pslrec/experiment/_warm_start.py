"""Warm start: a run starts from the rows that an earlier run has learnt.

Known users and items keep their rows; new rows are initialised from their neighbours.
"""

import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pslrec.artifacts import FinishedRun, read_run
from pslrec.backbones import Backbone
from pslrec.data import Interactions
from pslrec.errors import ConfigError
from pslrec.inference import StartingRows
from pslrec.rows import Rows

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class _Side:
    """The users, or the items, of a run and of the earlier one.

    Args:
        of_pairs: for every training pair, the row of its user (or item).
        old_rows: for every row, the row in the earlier run; -1 where it is new.
        old_table: the trained rows of the earlier run.
    """

    of_pairs: np.ndarray
    old_rows: np.ndarray
    old_table: Tensor

    @property
    def n_known(self) -> int:
        return int((self.old_rows >= 0).sum())


# These are initial values: gradients must not reach back to the earlier run.
@torch.no_grad()
def start_warm(backbone: Backbone, train: Interactions, path: Path) -> None:
    """Fill the tables of a backbone from an earlier run, whose users and items are found by id.

    A new row is initialised from its known neighbours in the training data, see `StartingRows`, and
    gets the mean length of the old rows; without known neighbours it stays as it was. A known row
    is moved by the change of its neighbours: by what they predict now, minus what they predicted
    when the row was learnt.

    Where histories make users, users have no rows: known items keep theirs as they are, and new
    users need nothing.

    Args:
        backbone: newly built; must be of the same kind and dimension as that of the earlier run.
        train: the data that it is going to be trained on.
        path: directory of the earlier run, which must be finished.
    """
    old = read_run(path)
    _check_same_backbone(old, backbone, path)
    users = _Side(train.users, old.users.rows_of(train.user_vocabulary), old.user_table)
    items = _Side(train.items, old.items.rows_of(train.item_vocabulary), old.item_table)
    if backbone.sums_histories and not items.n_known:
        raise ConfigError(
            f"no item of the training data is in the run in {path}, and `{backbone.name}` has no "
            "rows of users that could be kept; start without it"
        )
    if not users.n_known and not items.n_known:
        raise ConfigError(
            f"no user and no item of the training data is in the run in {path}; start without it"
        )
    if backbone.sums_histories:
        _fill_summed(backbone, train, items.old_rows, old)
    else:
        old_users, old_items = _trained_pairs(old)
        old_items_of_users = Interactions(old_users, old_items, old.users, old.items).rows
        _fill(backbone.user_table.data, users, items, old_items_of_users)
        # The same with the sides exchanged: the neighbours of an item are its users.
        old_users_of_items = Interactions(old_items, old_users, old.items, old.users).rows
        _fill(backbone.item_table.data, items, users, old_users_of_items)
    logger.info(
        "warm start: %d of %d users and %d of %d items are known",
        users.n_known,
        len(users.old_rows),
        items.n_known,
        len(items.old_rows),
    )


def share_learnt_before(part: Interactions, path: Path) -> float:
    """The share of a part's pairs that an earlier run was trained on.

    Such pairs say little about a model that started from that run.

    Args:
        part: the data that a run is evaluated by.
        path: directory of the earlier run.
    """
    if not len(part):
        return 0.0
    old = read_run(path)
    users = old.users.rows_of(part.user_vocabulary)[part.users]
    items = old.items.rows_of(part.item_vocabulary)[part.items]
    trained_users, trained_items = _trained_pairs(old)
    # One number per pair. Unknown users and items give numbers that may be those of other pairs.
    n_items = len(old.items)
    keys = users * n_items + items
    trained_keys = trained_users.astype(np.int64) * n_items + trained_items
    is_learnt = np.isin(keys, trained_keys) & (users >= 0) & (items >= 0)
    return float(is_learnt.mean())


def _check_same_backbone(old: FinishedRun, backbone: Backbone, path: Path) -> None:
    name = old.config.get("backbone", {}).get("name")
    dimension = old.user_table.shape[1]
    # Rows of another backbone, or of another width, mean something else.
    if name != backbone.name or dimension != backbone.dimension:
        raise ConfigError(
            f"a warm start needs the same backbone and dimension: the run in {path} has `{name}` "
            f"with {dimension}, this one `{backbone.name}` with {backbone.dimension}; set "
            f"`backbone.name={name}` and `backbone.dimension={dimension}`"
        )


def _trained_pairs(old: FinishedRun) -> tuple[np.ndarray, np.ndarray]:
    users, items = old.train
    if "refit" in old.metrics:
        # A refitted run was trained on its validation part as well.
        more_users, more_items = old.validation
        users = torch.cat([users, more_users])
        items = torch.cat([items, more_items])
    return users.numpy(), items.numpy()


def _fill(table: Tensor, own: _Side, others: _Side, old_neighbours: Rows) -> None:
    """Fill one table; a new row without known neighbours stays as it is.

    Args:
        table: the rows to fill.
        own: the side that the table belongs to.
        others: the side of the neighbours.
        old_neighbours: the neighbours that each row had in the earlier run.
    """
    neighbours = _known_neighbours(own, others, n_rows=len(table))
    starting_rows = StartingRows(others.old_table, own.old_table, old_neighbours)
    directions = starting_rows.directions(neighbours)
    has_neighbours = torch.from_numpy(neighbours.lengths > 0)
    old_rows = torch.from_numpy(own.old_rows)
    is_known = old_rows >= 0

    is_new = ~is_known & has_neighbours
    # Inner products depend on lengths, too, so new rows get a typical one.
    mean_length = own.old_table.norm(dim=1).mean()
    table[is_new] = directions[is_new] * mean_length

    known_rows = old_rows[is_known]
    learnt = own.old_table[known_rows]
    directions_before = starting_rows.directions(old_neighbours)[known_rows]
    had_neighbours = torch.from_numpy(old_neighbours.lengths > 0)[known_rows]
    # Without neighbours on either side there is no prediction, and the difference says nothing.
    has_both = (has_neighbours[is_known] & had_neighbours).unsqueeze(1)
    change = (directions[is_known] - directions_before) * has_both
    table[is_known] = learnt + change * learnt.norm(dim=1, keepdim=True)


def _fill_summed(
    backbone: Backbone, train: Interactions, old_rows: np.ndarray, old: FinishedRun
) -> None:
    """Fill both tables of a backbone whose users are made of histories.

    Args:
        backbone: whose tables have a row per item.
        train: the data that it is going to be trained on.
        old_rows: for every item, its row in the earlier run; -1 where it is new.
        old: the earlier run.
    """
    is_known = old_rows >= 0
    tables = (
        (backbone.user_table.data, old.user_table),
        (backbone.item_table.data, old.item_table),
    )
    known = torch.from_numpy(np.flatnonzero(is_known))
    for table, learnt in tables:
        table[known] = learnt[torch.from_numpy(old_rows[is_known])]

    # All users with a known item have a vector, also those whom the earlier run did not have.
    histories = train.select(is_known[train.items]).rows
    users = backbone.encode(histories)
    assert users is not None
    has_vector = histories.lengths > 0
    with_vector = train.select(has_vector[train.users])
    users_of_items = Interactions(
        with_vector.items, with_vector.users, train.item_vocabulary, train.user_vocabulary
    ).rows

    # A new item whose users are all without a vector stays as it is.
    new_items = np.flatnonzero(~is_known & (users_of_items.lengths > 0))
    if not len(new_items):
        return
    users_of_known = users_of_items.select(known.numpy())
    users_of_new = users_of_items.select(new_items)
    for table, learnt in tables:
        starting_rows = StartingRows(users, table[known], users_of_known)
        mean_length = learnt.norm(dim=1).mean()
        table[torch.from_numpy(new_items)] = starting_rows.directions(users_of_new) * mean_length


def _known_neighbours(own: _Side, others: _Side, *, n_rows: int) -> Rows:
    """The neighbours of each row in the training data, as rows of the earlier run."""
    neighbours = others.old_rows[others.of_pairs]
    is_known = neighbours >= 0
    n_neighbours = len(others.old_table)
    keys = own.of_pairs[is_known].astype(np.int64) * n_neighbours + neighbours[is_known]
    return Rows.from_keys(keys, n_owners=n_rows, n_items=n_neighbours)
