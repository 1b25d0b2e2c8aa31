"""A model while it is being served: never changed, only replaced as a whole."""

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
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
    """A list as rows of items and their scores, best first."""

    items: list[int]
    scores: list[float]


class ListJob(NamedTuple):
    """Lists that one request asks for.

    Args:
        rows: of the users or items it names, or of a history's items.
        k: length of its lists.
    """

    rows: list[int]
    k: int


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A trained model with everything that answers need.

    Args:
        path: the directory it was read from.
        model: the model.
        users: ids of users.
        items: ids of items.
        titles: of items by row, if there is a table of them.
        fingerprint: first digits of a hash of the model's file.
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
        """Read the directory of a finished run.

        Args:
            path: the directory, or a link to it.
            titles: a table of items and their titles.
        """
        # A link that is switched to another run meanwhile must not mix the files of two runs.
        directory = path.resolve()
        model = TrainedModel.load(directory)
        items = Identifiers(model.items)
        return cls(
            path=directory,
            model=model,
            users=Identifiers(model.users),
            items=items,
            titles=None if titles is None else read_titles(titles, items),
            fingerprint=_fingerprint(directory / "model.safetensors"),
            loaded=datetime.now(UTC),
        )

    def title(self, row: int) -> str | None:
        """The title of an item, if it has one."""
        return None if self.titles is None else self.titles[row]

    def history(self, user: int) -> list[int]:
        """Rows of the items that a user has in the training data."""
        history: list[int] = self.model.seen.list_of(user).tolist()
        return history

    def lists_for_users(self, jobs: Sequence[ListJob], *, exclude_seen: bool) -> list[list[Ranked]]:
        """Lists of all jobs' users from one product."""
        users = torch.tensor([row for job in jobs for row in job.rows], dtype=torch.int64)
        found = self.model.recommend(users, max(job.k for job in jobs), exclude_seen=exclude_seen)
        return _per_job(found, jobs)

    def lists_for_histories(self, jobs: Sequence[ListJob], *, exclude_seen: bool) -> list[Ranked]:
        """A list for each job's history."""
        histories = [torch.tensor(job.rows, dtype=torch.int64) for job in jobs]
        found = self.model.recommend_for(
            histories, max(job.k for job in jobs), exclude_seen=exclude_seen
        )
        return [lists[0] for lists in _per_job(found, [ListJob([0], job.k) for job in jobs])]

    def similar(self, jobs: Sequence[ListJob]) -> list[list[Ranked]]:
        """Items like those of the jobs."""
        items = torch.tensor([row for job in jobs for row in job.rows], dtype=torch.int64)
        return _per_job(self.model.similar_items(items, max(job.k for job in jobs)), jobs)

    def reasons(
        self, items: list[int], history: list[int], n_reasons: int
    ) -> list[list[tuple[int, float]]]:
        """For each item the nearest items of the history with their cosines, nearest first; never the item itself."""
        if not items or not history or not n_reasons:
            return [[] for _ in items]
        rows, columns = torch.tensor(items), torch.tensor(history)
        cosines = (
            _directions(self.model.item_vectors[rows])
            @ _directions(self.model.item_vectors[columns]).T
        )
        cosines[rows[:, None] == columns[None, :]] = -torch.inf
        values, places = cosines.topk(min(n_reasons, len(history)), dim=1)
        chosen = columns[places].tolist()
        return [
            [(row, value) for row, value in zip(reasons, near, strict=True) if value != -torch.inf]
            for reasons, near in zip(chosen, values.tolist(), strict=True)
        ]

    @cached_property
    def description(self) -> dict[str, Any]:
        """What is being served, and a user and a history to begin with."""
        user = int((torch.as_tensor(self.model.seen.lengths) - _EXAMPLE_HISTORY).abs().argmin())
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
            "example_history": [
                self.items.names[row] for row in self.history(user)[:_EXAMPLE_LENGTH]
            ],
        }

    def warm_up(self) -> None:
        """Answer a request of each kind, so that the first real one does not wait for what is made only once."""
        self.lists_for_users([ListJob([0], 1)], exclude_seen=True)
        self.similar([ListJob([0], 1)])
        try:
            self.lists_for_histories([ListJob([0], 1)], exclude_seen=True)
        except PslrecError as error:
            logger.warning("lists for new people can not be made with this model: %s", error)


def _per_job(found: TopItems, jobs: Sequence[ListJob]) -> list[list[Ranked]]:
    items, scores = found.items.tolist(), found.scores.tolist()
    # Shorter lists are filled up with -1 at their end.
    lengths = (found.items >= 0).sum(dim=1).tolist()
    answers, start = [], 0
    for job in jobs:
        rows = range(start, start + len(job.rows))
        answers.append(
            [
                Ranked(
                    items[row][: min(job.k, lengths[row])], scores[row][: min(job.k, lengths[row])]
                )
                for row in rows
            ]
        )
        start += len(job.rows)
    return answers


def _directions(vectors: Tensor) -> Tensor:
    return torch.nn.functional.normalize(vectors, dim=1)


def _fingerprint(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:_DIGITS]
