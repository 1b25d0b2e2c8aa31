"""A model as it is served: it never changes, a reload replaces it as a whole."""

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pslrec.errors import PslrecError
from pslrec.inference import TopItems, TrainedModel
from pslrec.serving._identifiers import Identifiers
from pslrec.serving._titles import read_titles

logger = logging.getLogger(__name__)

_DIGITS = 12
_EXAMPLE_LENGTH = 5
_EXAMPLE_HISTORY = 12


class Ranked(NamedTuple):
    """A list: rows of items and their scores, best first."""

    items: list[int]
    scores: list[float]


class ListJob(NamedTuple):
    """The lists that one request asks for.

    Args:
        rows: rows of the users or items to make a list for each, or of the items of one history.
        k: length of the lists.
    """

    rows: list[int]
    k: int


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A trained model with everything that answers need.

    Args:
        path: the run directory it was read from, with links resolved.
        model: computes the lists.
        users: ids of users.
        items: ids of items.
        titles: titles of items by row, if the service was given a table of them.
        fingerprint: first digits of a hash of the model's file, to tell models apart.
        loaded: when it was read.
    """

    path: Path
    model: TrainedModel
    users: Identifiers
    items: Identifiers
    titles: list[str | None] | None
    fingerprint: str
    loaded: datetime

    @classmethod
    def load(cls, path: Path, titles: Path | None = None) -> "ServedModel":
        """Read a finished run.

        Args:
            path: the run directory, or a link to it.
            titles: a table of items and their titles, see `read_titles`.
        """
        # Resolved once: if the link is switched meanwhile, the files of two runs must not be mixed.
        directory = path.resolve()
        model = TrainedModel.load(directory)
        items = Identifiers(model.items)
        titles_by_row = None
        if titles is not None:
            titles_by_row = read_titles(titles, items)
        return cls(
            path=directory,
            model=model,
            users=Identifiers(model.users),
            items=items,
            titles=titles_by_row,
            fingerprint=_fingerprint(directory / "model.safetensors"),
            loaded=datetime.now(UTC),
        )

    def title(self, row: int) -> str | None:
        """The title of an item, if it has one."""
        if self.titles is None:
            return None
        return self.titles[row]

    def history(self, user: int) -> list[int]:
        """Rows of the items that a user has in the training data."""
        history: list[int] = self.model.seen.list_of(user).tolist()
        return history

    def lists_for_users(self, jobs: Sequence[ListJob], *, exclude_seen: bool) -> list[list[Ranked]]:
        """Lists for the users of all jobs, from one matrix product."""
        users = _joined_rows(jobs)
        found = self.model.recommend(users, _longest(jobs), exclude_seen=exclude_seen)
        return _per_job(found, jobs)

    def lists_for_histories(self, jobs: Sequence[ListJob], *, exclude_seen: bool) -> list[Ranked]:
        """One list for the history of each job."""
        histories = [torch.tensor(job.rows, dtype=torch.int64) for job in jobs]
        found = self.model.recommend_for(histories, _longest(jobs), exclude_seen=exclude_seen)
        return _shortened_lists(found, [job.k for job in jobs])

    def similar(self, jobs: Sequence[ListJob]) -> list[list[Ranked]]:
        """Items nearest to the items of all jobs."""
        items = _joined_rows(jobs)
        return _per_job(self.model.similar_items(items, _longest(jobs)), jobs)

    def reasons(
        self, items: list[int], history: list[int], n_reasons: int
    ) -> list[list[tuple[int, float]]]:
        """For each item the nearest items of the history with their cosines, nearest first.

        An item is never a reason for itself.

        Args:
            items: rows of recommended items.
            history: rows of the items to choose from.
            n_reasons: how many to choose for each item, if the history has as many.
        """
        if not items or not history or not n_reasons:
            return [[] for _ in items]
        rows = torch.tensor(items)
        columns = torch.tensor(history)
        directions = _directions(self.model.item_vectors[rows])
        cosines = directions @ _directions(self.model.item_vectors[columns]).T
        cosines[rows[:, None] == columns[None, :]] = -torch.inf
        values, places = cosines.topk(min(n_reasons, len(history)), dim=1)
        chosen = columns[places]
        reasons = []
        for near_items, near_values in zip(chosen.tolist(), values.tolist(), strict=True):
            pairs = zip(near_items, near_values, strict=True)
            # In a short history the item itself may come up last.
            reasons.append([(row, cosine) for row, cosine in pairs if cosine != -torch.inf])
        return reasons

    @cached_property
    def description(self) -> dict[str, Any]:
        """What is being served, with a user and a history to try it with."""
        # A history of medium length makes a better example than the first or the longest.
        lengths = torch.as_tensor(self.model.seen.lengths)
        user = int((lengths - _EXAMPLE_HISTORY).abs().argmin())
        example_history = self.history(user)[:_EXAMPLE_LENGTH]
        return {
            "run": self.path.name,
            "model": self.fingerprint,
            "loaded": self.loaded.isoformat(timespec="seconds"),
            "loss": self.model.loss_name,
            "backbone": self.model.backbone_name,
            "users": len(self.users),
            "items": len(self.items),
            "titles": self.titles is not None,
            "example_user": self.users.names[user],
            "example_history": [self.items.names[row] for row in example_history],
        }

    def warm_up(self) -> None:
        """Answer a request of each kind, so that what is prepared only once delays no real one."""
        job = ListJob([0], 1)
        self.lists_for_users([job], exclude_seen=True)
        self.similar([job])
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


def _directions(vectors: Tensor) -> Tensor:
    return torch.nn.functional.normalize(vectors, dim=1)


def _fingerprint(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:_DIGITS]
