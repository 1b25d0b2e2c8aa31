"""A finished run as a model that recommends."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from torch import Tensor
from torch.nn import functional

from pslrec.artifacts import (
    ArtifactError,
    FinishedRun,
    Model,
    WalkingScorer,
    check_parts,
    read_run,
)
from pslrec.backbones import BACKBONES, Backbone
from pslrec.data import Interactions, Vocabulary, cast_ids
from pslrec.errors import DataError, PslrecError, UnknownNameError
from pslrec.evaluation import EmbeddingScorer, Scorer
from pslrec.files import at_hand
from pslrec.inference._explaining import Reason, nearest_of_history
from pslrec.inference._fold_in import FoldIn, FrozenModel
from pslrec.inference._ranking import (
    DEFAULT_MEMORY_BUDGET,
    NOTHING,
    TopItems,
    WalksFrom,
    checked_rows,
    top_items,
)
from pslrec.inference._rules import NO_RULES, RowRules
from pslrec.kernels import HIDDEN
from pslrec.losses import LOSSES, Loss
from pslrec.rows import Rows


class TrainedModel:
    """Ranks items for known and new users, and finds similar items and users.

    Users and items are given as row numbers; `users` and `items` translate them from and to
    external ids. The inner product of a row of `user_vectors` and a row of `item_vectors` is the
    score: a half cosine, or whatever similarity the loss was trained on. Where the model has
    `walks`, these are added to it. A model never changes.

    Args:
        run: what the run left behind; `TrainedModel.load` reads it from a directory.
        memory_budget: bytes for scores at most; a tight budget means fewer users at a time.
        parents: external ids of items that were not in the training data, each with the id of the
            known item whose vector it takes.
    """

    def __init__(
        self,
        run: FinishedRun,
        *,
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
        parents: Mapping[Any, Any] | None = None,
    ) -> None:
        self._run = run
        self._memory_budget = memory_budget
        self.users = run.users
        self.items, self._trained_rows = _with_parents(run.items, parents or {})
        self.loss_name = _part_name(run.config, "loss")
        self.backbone_name = _part_name(run.config, "backbone")
        # Constructing the loss now refuses settings that make no sense before anybody asks.
        model = Model(run.tables, self._make_loss().similarity)
        self.user_vectors: Tensor = model.user_vectors
        self.item_vectors: Tensor = model.item_vectors
        if self._trained_rows is not None:
            self.item_vectors = model.item_vectors[self._trained_rows]
        self.walks = run.walks
        if run.walks is not None and self._trained_rows is not None:
            self.walks = run.walks.of_items(self._trained_rows.numpy())
        # Over the items of training: new ones come after them, so their rows stay the same.
        self._train = self._interactions(run.train)
        self.seen: Rows = self._train.rows.merged(self._interactions(run.validation).rows)
        self._hidden: Rows = self.seen
        if len(self.disliked_pairs):
            self._hidden = self.seen.merged(self.disliked_pairs.rows)

    @classmethod
    def load(
        cls, path: Path | str, *, memory_budget: int = DEFAULT_MEMORY_BUDGET
    ) -> "TrainedModel":
        """Load the model of a finished run.

        Args:
            path: run directory, or an address such as `s3://bucket/run`. Its files are checked,
                and nothing in them is executed.
            memory_budget: bytes for scores at most; a tight budget means fewer users at a time.
        """
        with at_hand(path, error=ArtifactError) as place:
            files = read_run(place)
            check_parts(place, files.config)
        return cls(files, memory_budget=memory_budget)

    def with_parents(self, parents: Mapping[Any, Any]) -> "TrainedModel":
        """The same model with more items, each ranked like a known one.

        Args:
            parents: external id of each new item, with the id of the known item whose vector it
                takes.
        """
        return TrainedModel(self._run, memory_budget=self._memory_budget, parents=parents)

    def _interactions(self, pairs: tuple[Tensor, Tensor]) -> Interactions:
        users, items = pairs
        return Interactions(users.numpy(), items.numpy(), self.users, self._run.items)

    @property
    def n_users(self) -> int:
        """Number of users in the training data."""
        return len(self.users)

    @property
    def n_items(self) -> int:
        """Number of items in the training data, and of those that `parents` added."""
        return len(self.items)

    @property
    def dimension(self) -> int:
        """Length of the vectors."""
        return self.item_vectors.shape[1]

    @property
    def config(self) -> Mapping[str, Any]:
        """Settings of the run, section by section."""
        return self._run.config

    @property
    def metrics(self) -> Mapping[str, Any]:
        """How the run was evaluated: the content of `metrics.json`."""
        return self._run.metrics

    @property
    def training_pairs(self) -> Interactions:
        """What the run was trained on, without its validation part."""
        return self._train

    @property
    def validation_pairs(self) -> Interactions | None:
        """What was held out for validation, if anything was; a refitted run has learnt it, too."""
        pairs = self._interactions(self._run.validation)
        if not len(pairs):
            return None
        return pairs

    @property
    def disliked_pairs(self) -> Interactions:
        """What was rated too low to be learnt from; nobody is recommended what they disliked."""
        return self._interactions(self._run.disliked)

    @property
    def information(self) -> dict[str, Any]:
        """A summary for people: loss, backbone, sizes, data source, epoch."""
        data = self._run.config.get("data", {})
        source = ""
        if isinstance(data, Mapping):
            source = str(data.get("source", ""))
        return {
            "loss": self.loss_name,
            "backbone": self.backbone_name,
            "dimension": self.dimension,
            "users": self.n_users,
            "items": self.n_items,
            "source": source,
            "epoch": self._run.epoch,
        }

    def recommend(
        self,
        user_rows: Tensor,
        k: int,
        *,
        exclude_seen: bool = True,
        items: Tensor | None = None,
        rules: RowRules = NO_RULES,
    ) -> TopItems:
        """Rank items for users from the training data.

        A user without training items gets an empty list.

        Args:
            user_rows: rows of the users.
            k: length of the lists.
            exclude_seen: leave out the user's items in the training and validation data, and those
                that were rated too low to be in them.
            items: rows of the items to choose from; all by default.
            rules: what else may not be in the lists; see `Rules.in_rows`.
        """
        users = checked_rows(user_rows, self.n_users, "user_rows")
        hidden = None
        if exclude_seen:
            hidden = self._hidden.select(users.numpy())
        vectors = self.user_vectors[users]
        walks = None
        if self.walks is not None:
            walks = WalksFrom(self.walks, self._histories.select(users.numpy()))
        top = self._top(vectors, k, hidden, items, rules, walks)
        return _without_empty(top, ~self.is_known(users))

    def is_known(self, user_rows: Tensor) -> Tensor:
        """Whether anything is known of each user: those without training items have none.

        Their vectors are zero, or what a table began with.

        Args:
            user_rows: rows of the users.
        """
        users = checked_rows(user_rows, self.n_users, "user_rows")
        return torch.from_numpy(self._histories.lengths[users.numpy()] > 0)

    def recommend_for(
        self,
        histories: Sequence[Tensor],
        k: int,
        *,
        exclude_seen: bool = True,
        items: Tensor | None = None,
        rules: RowRules = NO_RULES,
    ) -> TopItems:
        """Rank items for new users by their histories.

        Args:
            histories: item rows of each user; an empty history gives an empty list.
            k: length of the lists.
            exclude_seen: leave out the items of the history.
            items: rows of the items to choose from; all by default.
            rules: what else may not be in the lists; see `Rules.in_rows`.
        """
        vectors = self.fold_in(histories)
        lists = _lists_of(self._checked_histories(histories))
        hidden = None
        if exclude_seen:
            hidden = lists
        walks = None
        if self.walks is not None:
            walks = WalksFrom(self.walks, _lists_of(self._trained_histories(histories)))
        top = self._top(vectors, k, hidden, items, rules, walks)
        return _without_empty(top, torch.from_numpy(lists.lengths == 0))

    def fold_in(self, histories: Sequence[Tensor]) -> Tensor:
        """Vectors of new users, fitted under the training loss while all items stay fixed.

        Args:
            histories: item rows of each user; an empty history gives a row of zeros.
        """
        rows = self._trained_histories(histories)
        # The caller may have turned gradients off, and fitting needs them.
        with torch.inference_mode(False), torch.enable_grad():
            return self._fold_in.vectors(_lists_of(rows))

    def similar_items(self, item_rows: Tensor, k: int, *, rules: RowRules = NO_RULES) -> TopItems:
        """The items nearest to each given item by cosine, without the item itself.

        Args:
            item_rows: rows of the items.
            k: length of the lists.
            rules: what else may not be in the lists; see `Rules.in_rows`.
        """
        return self._nearest(self.item_vectors, item_rows, k, "item_rows", rules)

    def reasons(
        self, item_rows: Sequence[int], history: Sequence[int], n_reasons: int
    ) -> list[list[Reason]]:
        """For each item the nearest items of a history by cosine, nearest first.

        An item is never a reason for itself.

        Args:
            item_rows: rows of recommended items.
            history: rows of the items to choose reasons from.
            n_reasons: how many to choose for each item, if the history has as many.
        """
        items = checked_rows(torch.tensor(item_rows, dtype=torch.int64), self.n_items, "item_rows")
        known = checked_rows(torch.tensor(history, dtype=torch.int64), self.n_items, "history")
        return nearest_of_history(self.item_vectors, items, known, n_reasons)

    def similar_users(self, user_rows: Tensor, k: int) -> TopItems:
        """The users nearest to each given user by cosine, without the user itself.

        A user without training items gets an empty list.

        Args:
            user_rows: rows of the users.
            k: length of the lists; `items` of the result holds rows of users.
        """
        known = torch.arange(self.n_users)
        known = known[self.is_known(known)]
        top = self._nearest(self.user_vectors, user_rows, k, "user_rows", candidates=known)
        return _without_empty(top, ~self.is_known(user_rows))

    def score(self, user_rows: Tensor, item_rows: Tensor) -> Tensor:
        """The score of each user for the item at the same place.

        Args:
            user_rows: rows of the users.
            item_rows: rows of the items, as many as users.
        """
        users = checked_rows(user_rows, self.n_users, "user_rows")
        items = checked_rows(item_rows, self.n_items, "item_rows")
        scores = (self.user_vectors[users] * self.item_vectors[items]).sum(dim=1)
        if self.walks is not None:
            # Many pairs may be of few users.
            distinct, owners = np.unique(users.numpy(), return_inverse=True)
            histories = self._histories.select(distinct)
            scores += self.walks.of_pairs(histories, owners, items.numpy())
        return scores

    def scorer(self) -> Scorer:
        """The model as something that evaluation can rank by."""
        vectors = EmbeddingScorer(self.user_vectors, self.item_vectors)
        if self.walks is None:
            return vectors
        return WalkingScorer(vectors, self.walks, self._histories)

    @property
    def _histories(self) -> Rows:
        """What the users are known by: a refitted run has learnt its validation part, too."""
        if "refit" in self._run.metrics:
            return self.seen
        return self._train.rows

    def _top(
        self,
        users: Tensor,
        k: int,
        hidden: Rows | None,
        items: Tensor | None,
        rules: RowRules,
        walks: WalksFrom | None,
    ) -> TopItems:
        return top_items(
            users,
            self.item_vectors,
            k,
            hidden=hidden,
            candidates=items,
            rules=rules,
            walks=walks,
            parents=self._trained_rows,
            memory_budget=self._memory_budget,
        )

    def _nearest(
        self,
        table: Tensor,
        rows: Tensor,
        k: int,
        name: str,
        rules: RowRules = NO_RULES,
        candidates: Tensor | None = None,
    ) -> TopItems:
        rows = checked_rows(rows, len(table), name)
        vectors = functional.normalize(table, dim=1)
        themselves = Rows(np.arange(len(rows) + 1), rows.numpy())
        return top_items(
            vectors[rows],
            vectors,
            k,
            hidden=themselves,
            candidates=candidates,
            rules=rules,
            memory_budget=self._memory_budget,
        )

    def _checked_histories(self, histories: Sequence[Tensor]) -> list[Tensor]:
        return [checked_rows(history, self.n_items, "histories") for history in histories]

    def _trained_histories(self, histories: Sequence[Tensor]) -> list[Tensor]:
        """The same with the parents of new items in their places."""
        rows = self._checked_histories(histories)
        if self._trained_rows is None:
            return rows
        return [self._trained_rows[history] for history in rows]

    @cached_property
    def _fold_in(self) -> FoldIn:
        # Made when it is first needed: most models are only asked about known users.
        return FoldIn(self.frozen(), memory_budget=self._memory_budget)

    def frozen(self) -> FrozenModel:
        """The fixed part that vectors of new users are fitted to."""
        return FrozenModel(
            backbone=self._frozen_backbone(),
            items=self._run.tables["items"],
            train=self._train,
            make_loss=self._make_loss,
            penalty=self._weight_decay() * len(self._train),
        )

    def _weight_decay(self) -> float:
        # The settings come from a file, which may hold anything.
        training = self._run.config.get("training", {})
        if not isinstance(training, Mapping):
            return 0.0
        decay = training.get("weight_decay", 0.0)
        if not isinstance(decay, int | float):
            return 0.0
        return float(decay)

    def _frozen_backbone(self) -> Backbone:
        kind = BACKBONES[self.backbone_name]
        options = _known_options(kind, _options(self._run.config, "backbone"))
        options["dimension"] = self.dimension
        # The first values are replaced at once, so take those that are cheap to compute.
        options["initialization"] = "normal"
        with _explained("backbone", self.backbone_name):
            backbone = kind(self._train, **options)
        trained = {"user_table": self._run.user_table, "item_table": self._run.item_table}
        for name, table in trained.items():
            own = getattr(backbone, name)
            # Compiled products read rows by number, and would read beyond a table that is too short.
            if table.shape != own.shape:
                raise ArtifactError(
                    f"`{name}` of the run must have the shape {tuple(own.shape)} for the backbone "
                    f"`{self.backbone_name}`, got {tuple(table.shape)}; its settings and its "
                    "tables are not of the same run"
                )
            own.data = table
        return backbone.requires_grad_(False).eval()

    def _make_loss(self) -> Loss:
        kind = LOSSES[self.loss_name]
        options = _known_options(kind, _options(self._run.config, "loss"))
        with _explained("loss", self.loss_name):
            return kind(**options)


def _without_empty(top: TopItems, is_empty: Tensor) -> TopItems:
    """The lists, but empty ones for users of whom nothing is known."""
    # Scores that are all alike, or from vectors that were never trained, are no recommendation.
    top.items[is_empty] = NOTHING
    top.scores[is_empty] = HIDDEN
    return top


def _lists_of(histories: Sequence[Tensor]) -> Rows:
    return Rows.from_lists([history.numpy() for history in histories])


def _with_parents(
    items: Vocabulary, parents: Mapping[Any, Any]
) -> tuple[Vocabulary, Tensor | None]:
    """All items with the new ones last, and the trained row of each; `None` if there are none."""
    if not parents:
        return items, None
    for new, known in parents.items():
        if items.find(new) is not None:
            raise DataError(f"`parents`: item `{new}` was in the training data and needs no parent")
        if items.find(known) is None:
            raise UnknownNameError(f"`parents`: unknown item `{known}`, the parent of `{new}`")
    given = Vocabulary(list(parents), kind=items.kind).series
    added = cast_ids(given, items.series.dtype)
    if added.null_count():
        odd = given.filter(added.is_null())[0]
        raise DataError(
            f"`parents` must name new items by ids of the type {items.series.dtype}, got `{odd}`"
        )
    parent_rows = torch.from_numpy(items.rows(parents.values()).astype(np.int64))
    extended = Vocabulary(pl.concat([items.series, added]), kind=items.kind)
    trained_rows = torch.cat([torch.arange(len(items)), parent_rows])
    return extended, trained_rows


@contextmanager
def _explained(kind: str, name: str) -> Iterator[None]:
    """Turn any complaint of a part about its options into one error that names the part."""
    try:
        yield
    except (PslrecError, TypeError, ValueError) as error:
        raise ArtifactError(
            f"the settings of the run's {kind} `{name}` make no sense: {error}"
        ) from error


def _section(config: Mapping[str, Any], section: str) -> Mapping[str, Any]:
    found = config.get(section, {})
    if not isinstance(found, Mapping) or not isinstance(found.get("name"), str):
        raise ArtifactError(f"the settings of the run must name a {section} in `{section}.name`")
    return found


def _part_name(config: Mapping[str, Any], section: str) -> str:
    name: str = _section(config, section)["name"]
    # Looking it up raises an error that lists the known names.
    if section == "loss":
        LOSSES[name]
    else:
        BACKBONES[name]
    return name


def _options(config: Mapping[str, Any], section: str) -> dict[str, Any]:
    return {name: value for name, value in _section(config, section).items() if name != "name"}


def _known_options(part: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    # A run of another version may have settings that this one has no more; they are left out, as
    # the tables are trained already.
    parameters = set(inspect.signature(part).parameters) - {"train", "seed"}
    return {name: value for name, value in options.items() if name in parameters}
