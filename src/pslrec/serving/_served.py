"""A model as it is served: it never changes, a reload replaces it as a whole."""

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from pslrec.artifacts import MODEL_FILES, read_item_table
from pslrec.data.items import ItemTable, TableFile
from pslrec.errors import PslrecError
from pslrec.files import at_hand, is_address
from pslrec.inference import NO_RULES, RowRules, RuleKeeper, TopItems, TrainedModel
from pslrec.rows import Rows
from pslrec.serving._identifiers import Identifiers
from pslrec.serving._search import TitleSearch

logger = logging.getLogger(__name__)

_DIGITS = 12
_EXAMPLE_LENGTH = 5
_EXAMPLE_HISTORY = 12
_SHOWN_VALUES = 50
_MOST_CATEGORIES = 500


class Ranked(NamedTuple):
    """A list: rows of items and their scores, best first."""

    items: list[int]
    scores: list[float]


class ListJob(NamedTuple):
    """The lists that one request asks for.

    Args:
        rows: rows of the users or items to make a list for each, or of the items of one history.
        k: length of the lists.
        hidden: for each list the items to leave out of it; empty if there are none.
    """

    rows: list[int]
    k: int
    hidden: Sequence[list[int]] = ()


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A trained model with everything that answers need.

    Args:
        path: the run directory it was read from, with links resolved.
        model: computes the lists.
        users: ids of users.
        items: ids of items.
        table: titles and columns of the items, if there is a table of them.
        fingerprint: first digits of a hash of the model's files, to tell models apart.
        loaded: when it was read.
    """

    path: Path
    model: TrainedModel
    users: Identifiers
    items: Identifiers
    table: ItemTable | None
    fingerprint: str
    loaded: datetime

    @classmethod
    def load(cls, path: Path, item_table: TableFile | Path | None = None) -> "ServedModel":
        """Read a finished run.

        Args:
            path: the run directory, a link to it, or its address.
            item_table: a table of items, see `ItemTable.read`; by default that of the run.
        """
        with at_hand(path) as place:
            # Resolved once: if the link is switched meanwhile, the files of two runs must not be
            # mixed.
            directory = place.resolve()
            model = TrainedModel.load(directory)
            fingerprint = _fingerprint(directory)
            table = read_item_table(directory, model.items)
        if item_table is not None:
            table = ItemTable.read(item_table, model.items)
        return cls(
            path=path if is_address(path) else directory,
            model=model,
            users=Identifiers(model.users),
            items=Identifiers(model.items),
            table=table,
            fingerprint=fingerprint,
            loaded=datetime.now(UTC),
        )

    def title(self, row: int) -> str | None:
        """The title of an item, if it has one."""
        if self.table is None:
            return None
        return self.table.titles[row]

    def history(self, user: int) -> list[int]:
        """Rows of the items that a user has in the training data."""
        history: list[int] = self.model.seen.list_of(user).tolist()
        return history

    def lists_for_users(
        self, jobs: Sequence[ListJob], *, exclude_seen: bool, rules: RowRules = NO_RULES
    ) -> list[list[Ranked]]:
        """Lists for the users of all jobs, from one matrix product."""
        users = _joined_rows(jobs)
        found = self.model.recommend(
            users, _longest(jobs), exclude_seen=exclude_seen, rules=_with_hidden(rules, jobs)
        )
        return _per_job(found, jobs)

    def lists_for_histories(
        self, jobs: Sequence[ListJob], *, exclude_seen: bool, rules: RowRules = NO_RULES
    ) -> list[Ranked]:
        """One list for the history of each job."""
        histories = [torch.tensor(job.rows, dtype=torch.int64) for job in jobs]
        found = self.model.recommend_for(
            histories, _longest(jobs), exclude_seen=exclude_seen, rules=rules
        )
        return _shortened_lists(found, [job.k for job in jobs])

    def similar(self, jobs: Sequence[ListJob], rules: RowRules = NO_RULES) -> list[list[Ranked]]:
        """Items nearest to the items of all jobs."""
        items = _joined_rows(jobs)
        return _per_job(self.model.similar_items(items, _longest(jobs), rules=rules), jobs)

    @cached_property
    def rules(self) -> RuleKeeper:
        """Translates the rules of requests."""
        return RuleKeeper(self.items.vocabulary, self.table)

    @cached_property
    def search(self) -> TitleSearch:
        """Finds items by parts of their titles or ids."""
        titles: list[str | None] = [None] * len(self.items)
        if self.table is not None:
            titles = self.table.titles
        popularity = np.bincount(self.model.seen.items, minlength=len(self.items))
        return TitleSearch(self.items.names, titles, popularity)

    @cached_property
    def users_with_history(self) -> np.ndarray:
        """Rows of the users who have any items that the model was trained on."""
        return np.flatnonzero(self.model.is_known(torch.arange(self.model.n_users)).numpy())

    @cached_property
    def description(self) -> dict[str, Any]:
        """What is being served, with a user and a history to try it with."""
        # A history of medium length makes a better example than the first or the longest.
        rows = self.users_with_history
        if not len(rows):
            rows = np.arange(self.model.n_users)
        lengths = self.model.seen.lengths[rows]
        user = int(rows[np.abs(lengths - _EXAMPLE_HISTORY).argmin()])
        example_history = self.history(user)[:_EXAMPLE_LENGTH]
        return {
            "run": self.path.name,
            "model": self.fingerprint,
            "loaded": self.loaded.isoformat(timespec="seconds"),
            "loss": self.model.loss_name,
            "backbone": self.model.backbone_name,
            "users": len(self.users),
            "items": len(self.items),
            "titles": self.table is not None and self.table.has_titles,
            "columns": self._columns(),
            "example_user": self.users.names[user],
            "example_history": [self.items.names[row] for row in example_history],
        }

    def _columns(self) -> list[dict[str, Any]]:
        described = []
        if self.table is not None:
            for name, column in self.table.columns.items():
                values = column.most_frequent(_SHOWN_VALUES)
                is_title = name == self.table.title_column
                # The values of a column with one for every item are no choice for anybody.
                if is_title or len(column.labels) > _MOST_CATEGORIES:
                    values = []
                described.append({"name": name, "kind": column.kind, "values": values})
        return described

    def warm_up(self) -> None:
        """Answer a request of each kind, so that what is prepared only once delays no real one."""
        job = ListJob([0], 1)
        self.lists_for_users([job], exclude_seen=True)
        self.similar([job])
        self.search.find("", 1)
        try:
            self.lists_for_histories([job], exclude_seen=True)
        except PslrecError as error:
            # Not every backbone can encode a history; the other lists are served all the same.
            logger.warning("this model cannot recommend for new users: %s", error)


def _joined_rows(jobs: Sequence[ListJob]) -> Tensor:
    return torch.tensor([row for job in jobs for row in job.rows], dtype=torch.int64)


def _longest(jobs: Sequence[ListJob]) -> int:
    return max(job.k for job in jobs)


def _per_job(found: TopItems, jobs: Sequence[ListJob]) -> list[list[Ranked]]:
    lengths = []
    for job in jobs:
        lengths += [job.k] * len(job.rows)
    lists = iter(_shortened_lists(found, lengths))
    return [list(islice(lists, len(job.rows))) for job in jobs]


def _shortened_lists(found: TopItems, lengths: list[int]) -> list[Ranked]:
    """The lists, each cut to its own length."""
    # Where there are not enough items, the end of a list is filled up with -1.
    n_found = (found.items >= 0).sum(dim=1).tolist()
    # To lists at once: reading single elements of a tensor would take longer than the product.
    items = found.items.tolist()
    scores = found.scores.tolist()
    lists = []
    for row, length in enumerate(lengths):
        n_items = min(length, n_found[row])
        lists.append(Ranked(items[row][:n_items], scores[row][:n_items]))
    return lists


def _with_hidden(rules: RowRules, jobs: Sequence[ListJob]) -> RowRules:
    """The rules with what each list leaves out for itself, if any does."""
    if not any(job.hidden for job in jobs):
        return rules
    lists: list[list[int]] = []
    for job in jobs:
        lists += job.hidden or [[] for _ in job.rows]
    return replace(rules, hidden=Rows.from_lists(lists))


def _fingerprint(directory: Path) -> str:
    digest = hashlib.sha256()
    for name in MODEL_FILES:
        if not (directory / name).exists():
            continue
        with (directory / name).open("rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    return digest.hexdigest()[:_DIGITS]
