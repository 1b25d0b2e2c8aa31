"""A finished run as something that recommends."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from torch import Tensor
from torch.nn import functional

from pslrec.backbones import BACKBONES, Backbone, Representations
from pslrec.data import Interactions, Vocabulary
from pslrec.errors import DataError, PslrecError, UnknownNameError
from pslrec.inference._fold_in import FoldIn, FrozenModel
from pslrec.inference._ranking import (
    DEFAULT_MEMORY_BUDGET,
    TopItems,
    checked_rows,
    top_items,
)
from pslrec.inference._run_files import ModelError, RunFiles, read_run
from pslrec.losses import LOSSES, Loss
from pslrec.rows import Rows
from pslrec.training import scored_tables


class TrainedModel:
    """Ranked lists, similar items and users, and vectors of new users, from a finished run. Nothing in it ever changes.

    Rows are row numbers; `users` and `items` translate them from and to external ids. The inner product of a row of
    `user_vectors` and one of `item_vectors` is the score: a half cosine, or what else the loss was trained on.

    Args:
        files: what the run left behind, see `TrainedModel.load`.
        memory_budget: bytes for scores; less means fewer users at a time.
        parents: external ids of items that were not there in training, each with that of a known item in whose place it stands.
    """

    def __init__(
        self,
        files: RunFiles,
        *,
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
        parents: Mapping[Any, Any] | None = None,
    ) -> None:
        self._files, self._memory_budget = files, memory_budget
        self.users = files.users
        self.items, self._trained_rows = _with_parents(files.items, parents or {})
        self.loss_name, self.backbone_name = (
            _name(files.config, "loss"),
            _name(files.config, "backbone"),
        )
        self._make_loss = _loss_maker(self.loss_name, _options(files.config, "loss"))
        similarity = self._make_loss().similarity
        users, items, scale = scored_tables(
            Representations(files.tables["users"], files.tables["items"]), similarity
        )
        self.user_vectors: Tensor = users * scale
        self.item_vectors: Tensor = (
            items if self._trained_rows is None else items[self._trained_rows]
        )
        # Over the items of training, whose rows stay what they are when others come after them.
        self._train = self._interactions(files.train)
        validation = self._interactions(files.validation)
        self.seen: Rows = self._train.rows.merged(validation.rows)

    @classmethod
    def load(
        cls, path: Path | str, *, memory_budget: int = DEFAULT_MEMORY_BUDGET
    ) -> "TrainedModel":
        """The model of a finished run.

        Args:
            path: directory of the run. Its files are checked, and nothing in them is executed.
            memory_budget: bytes for scores.
        """
        return cls(read_run(Path(path)), memory_budget=memory_budget)

    def with_parents(self, parents: Mapping[Any, Any]) -> "TrainedModel":
        """The same model with items that were not there in training, each ranked as a known item is.

        Args:
            parents: external id of each new item, with that of the known item in whose place it stands.
        """
        return TrainedModel(self._files, memory_budget=self._memory_budget, parents=parents)

    def _interactions(self, pairs: tuple[Tensor, Tensor]) -> Interactions:
        return Interactions(pairs[0].numpy(), pairs[1].numpy(), self.users, self._files.items)

    @property
    def n_users(self) -> int:
        """Users it was trained on."""
        return len(self.users)

    @property
    def n_items(self) -> int:
        """Items it was trained on, and those that stand in the place of one."""
        return len(self.items)

    @property
    def dimension(self) -> int:
        """Length of the vectors."""
        return self.item_vectors.shape[1]

    @property
    def config(self) -> Mapping[str, Any]:
        """Settings of the run, section by section."""
        return self._files.config

    @property
    def metrics(self) -> Mapping[str, Any]:
        """How the run was judged: what `metrics.json` holds."""
        return self._files.metrics

    @property
    def information(self) -> dict[str, Any]:
        """What a person wants to know of the run: parts, sizes, data, epoch."""
        data = self._files.config.get("data", {})
        return {
            "loss": self.loss_name,
            "backbone": self.backbone_name,
            "dimension": self.dimension,
            "users": self.n_users,
            "items": self.n_items,
            "source": str(data.get("source", "")) if isinstance(data, Mapping) else "",
            "epoch": self._files.epoch,
        }

    def recommend(
        self, user_rows: Tensor, k: int, *, exclude_seen: bool = True, items: Tensor | None = None
    ) -> TopItems:
        """The best items of users known from training.

        Args:
            user_rows: rows of the users.
            k: length of the lists.
            exclude_seen: leave out what the user had in the training and validation data.
            items: rows of the items to choose from; all if not given.
        """
        users = checked_rows(user_rows, self.n_users, "user_rows")
        hidden = self.seen.select(users.numpy()) if exclude_seen else None
        return self._top(self.user_vectors[users], k, hidden, items)

    def recommend_for(
        self,
        histories: Sequence[Tensor],
        k: int,
        *,
        exclude_seen: bool = True,
        items: Tensor | None = None,
    ) -> TopItems:
        """The best items of people who were not there in training, from their histories.

        Args:
            histories: item rows of each of them; an empty one gives an empty list.
            k: length of the lists.
            exclude_seen: leave out what is in the history.
            items: rows of the items to choose from; all if not given.
        """
        vectors = self.fold_in(histories)
        lists = self._lists(histories)
        found = self._top(vectors, k, lists if exclude_seen else None, items)
        empty = torch.from_numpy(lists.lengths == 0)
        found.items[empty], found.scores[empty] = -1, -torch.inf
        return found

    def fold_in(self, histories: Sequence[Tensor]) -> Tensor:
        """User vectors from histories, under the loss the model was trained with, items standing still.

        Args:
            histories: item rows of each new user; an empty one gives a row of zeros.
        """
        rows = [checked_rows(history, self.n_items, "histories") for history in histories]
        if self._trained_rows is not None:
            rows = [self._trained_rows[history] for history in rows]
        # A caller may be in a mode that forbids gradients, which are needed here.
        with torch.inference_mode(False), torch.enable_grad():
            return self._fold_in.vectors(_lists_of(rows))

    def similar_items(self, item_rows: Tensor, k: int) -> TopItems:
        """The items nearest to some, by cosine; an item is not among its own."""
        return self._nearest(self.item_vectors, item_rows, k, "item_rows")

    def similar_users(self, user_rows: Tensor, k: int) -> TopItems:
        """The users nearest to some, by cosine; a user is not among its own. `items` holds rows of users."""
        return self._nearest(self.user_vectors, user_rows, k, "user_rows")

    def score(self, user_rows: Tensor, item_rows: Tensor) -> Tensor:
        """The score of each pair of a user and an item, both given as rows of the same length."""
        users = checked_rows(user_rows, self.n_users, "user_rows")
        items = checked_rows(item_rows, self.n_items, "item_rows")
        return (self.user_vectors[users] * self.item_vectors[items]).sum(dim=1)

    def _top(self, users: Tensor, k: int, hidden: Rows | None, items: Tensor | None) -> TopItems:
        return top_items(
            users,
            self.item_vectors,
            k,
            hidden=hidden,
            candidates=items,
            memory_budget=self._memory_budget,
        )

    def _nearest(self, table: Tensor, rows: Tensor, k: int, name: str) -> TopItems:
        rows = checked_rows(rows, len(table), name)
        vectors = functional.normalize(table, dim=1)
        themselves = Rows(np.arange(len(rows) + 1), rows.numpy())
        return top_items(
            vectors[rows], vectors, k, hidden=themselves, memory_budget=self._memory_budget
        )

    def _lists(self, histories: Sequence[Tensor]) -> Rows:
        return _lists_of(
            [checked_rows(history, self.n_items, "histories") for history in histories]
        )

    @cached_property
    def _fold_in(self) -> FoldIn:
        return FoldIn(self.frozen(), memory_budget=self._memory_budget)

    def frozen(self) -> FrozenModel:
        """What the vectors of new users are fitted to."""
        training = self._files.config.get("training", {})
        decay = training.get("weight_decay", 0.0) if isinstance(training, Mapping) else 0.0
        return FrozenModel(
            self._frozen_backbone(),
            self._files.tables["items"],
            self._train,
            self._make_loss,
            penalty=float(decay) * len(self._train) if isinstance(decay, int | float) else 0.0,
        )

    def _frozen_backbone(self) -> Backbone:
        tables = self._files.tables
        kind = BACKBONES[self.backbone_name]
        options = _known(kind, _options(self._files.config, "backbone"))
        # Its first values are thrown away at once, so they should cost little.
        options |= {"dimension": self.dimension, "initialization": "normal"}
        with _explained("backbone", self.backbone_name):
            backbone = kind(self._train, **options)
        backbone.user_table.data = tables.get("user_table", tables["users"])
        backbone.item_table.data = tables.get("item_table", tables["items"])
        return backbone.requires_grad_(False).eval()


def _lists_of(histories: Sequence[Tensor]) -> Rows:
    return Rows.from_lists([history.numpy() for history in histories])


def _with_parents(
    items: Vocabulary, parents: Mapping[Any, Any]
) -> tuple[Vocabulary, Tensor | None]:
    """The items with the new ones after them, and the trained row behind each; `None` if there are no new ones."""
    if not parents:
        return items, None
    for new, known in parents.items():
        if items.find(new) is not None:
            raise DataError(f"`parents`: item `{new}` was there in training and needs no parent")
        if items.find(known) is None:
            raise UnknownNameError(f"`parents`: unknown item `{known}`, the parent of `{new}`")
    try:
        added = pl.Series(list(parents)).cast(items.series.dtype, strict=True)
    except pl.exceptions.PolarsError as error:
        raise DataError(
            f"`parents` must name new items by ids of the type {items.series.dtype}: {error}"
        ) from error
    rows = torch.from_numpy(items.rows(parents.values()).astype(np.int64))
    return Vocabulary(pl.concat([items.series, added]), kind=items.kind), torch.cat(
        [torch.arange(len(items)), rows]
    )


class _explained:  # noqa: N801 - used as a function
    """Turns whatever a part says of options it can not take into one error."""

    def __init__(self, kind: str, name: str) -> None:
        self._what = f"{kind} `{name}`"

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, PslrecError | TypeError | ValueError):
            raise ModelError(
                f"the settings of the run's {self._what} make no sense: {error}"
            ) from error


def _section(config: Mapping[str, Any], section: str) -> Mapping[str, Any]:
    found = config.get(section, {})
    if not isinstance(found, Mapping) or not isinstance(found.get("name"), str):
        raise ModelError(f"the settings of the run must name a {section} in `{section}.name`")
    return found


def _name(config: Mapping[str, Any], section: str) -> str:
    name: str = _section(config, section)["name"]
    (LOSSES if section == "loss" else BACKBONES)[name]
    return name


def _options(config: Mapping[str, Any], section: str) -> dict[str, Any]:
    return {name: value for name, value in _section(config, section).items() if name != "name"}


def _known(part: Callable[..., Any], options: dict[str, Any]) -> dict[str, Any]:
    allowed = inspect.signature(part).parameters
    return {
        name: value
        for name, value in options.items()
        if name in allowed and name not in ("train", "seed")
    }


def _loss_maker(name: str, options: dict[str, Any]) -> Callable[[], Loss]:
    kind = LOSSES[name]

    def make() -> Loss:
        with _explained("loss", name):
            return kind(**_known(kind, options))

    make()
    return make
