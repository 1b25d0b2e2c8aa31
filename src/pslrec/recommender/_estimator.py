"""A model in five words: construct, fit, recommend, save, load."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl
import torch

from pslrec.config import RunConfig
from pslrec.data import Dataset, Interactions, in_both
from pslrec.errors import ConfigError, DataError, PslrecError
from pslrec.evaluation import EmbeddingScorer, evaluate
from pslrec.experiment import copy_run, finished_run, run, save_run
from pslrec.files import local_path
from pslrec.inference import TrainedModel
from pslrec.recommender._frames import (
    Output,
    given_as,
    histories_of,
    onto,
    ranked_frame,
    read_any,
    rows_of,
)
from pslrec.recommender._options import options_of, settings_of
from pslrec.training import Listener

logger = logging.getLogger(__name__)

IN_MEMORY = "(in memory)"
NEW_USER = "; for somebody who was not there in training, call `recommend_for` with their history"
NEW_ITEM = "; it was not there in training: leave it out, train again, or give `parents={new item: known item}`"


class NotFittedError(PslrecError, ValueError, AttributeError):
    """A recommender was asked for something before it was fitted."""


class Recommender:
    """Trains a model on interactions and recommends items, by external ids; follows the conventions of scikit-learn.

    Args:
        loss: name of the loss, see `pslrec.losses.LOSSES`.
        backbone: name of the backbone, see `pslrec.backbones.BACKBONES`.
        options: any other setting of a run: by its last word (`epochs=50`, `temperature=0.1`, `dimension=128`,
            `refit=True`), or in full with two underscores for the dot (`training__epochs=50`); and `preset="fast"` for
            settings that belong together.

    After `fit` there are `model_` (the `TrainedModel`), `config_` (the settings, every default written out), `metrics_`,
    `users_` and `items_` (external ids), `n_users_` and `n_items_`.

    >>> log = pl.DataFrame({"user": [1, 1, 1, 2, 2, 2, 3, 3], "item": ["a", "b", "c", "a", "b", "d", "b", "d"]})
    >>> recommender = Recommender("sl", epochs=5, dimension=4, negatives="catalog").fit(log, validation="none")
    >>> recommender.recommend(3, k=2).select("user", "item", "rank")["item"].sort().to_list()
    ['a', 'c']
    >>> recommender.recommend_for(["a", "c"], k=1).columns
    ['user', 'item', 'score', 'rank']
    """

    def __init__(self, loss: str = "psl-relu", backbone: str = "mf", **options: Any) -> None:
        self.loss, self.backbone = loss, backbone
        self._options = options

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - scikit-learn passes it
        """All arguments of the constructor."""
        return {"loss": self.loss, "backbone": self.backbone, **self._options}

    def set_params(self, **params: Any) -> Self:
        """Change arguments of the constructor; what was fitted stays until the next `fit`."""
        changed = {**self.get_params(), **params}
        loss, backbone = changed.pop("loss"), changed.pop("backbone")
        settings_of(loss, backbone, changed)
        self.loss, self.backbone, self._options = loss, backbone, changed
        return self

    def __repr__(self) -> str:
        return f"Recommender({', '.join(f'{name}={value!r}' for name, value in self.get_params().items())})"

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` has been called."""
        return hasattr(self, "model_")

    def __getattr__(self, name: str) -> Any:
        # Options are attributes, too, as scikit-learn has it; this is asked only for what is not found otherwise.
        options = self.__dict__.get("_options", {})
        if name in options:
            return options[name]
        if name.endswith("_") and not name.startswith("_"):
            raise NotFittedError(
                f"this Recommender is not fitted yet, so it has no `{name}`; call `fit` first"
            )
        raise AttributeError(f"'Recommender' object has no attribute '{name}'")

    def fit(
        self, interactions: Any, validation: Any = None, *, listeners: Sequence[Listener] = ()
    ) -> Self:
        """Train.

        Args:
            interactions: a path, the name of a data set, a frame, a sparse matrix, `Interactions` or a `Dataset`.
            validation: interactions to choose the epoch by; without them some are set apart, and "none" sets none apart.
            listeners: are told what happens in training.
        """
        settings = settings_of(self.loss, self.backbone, self._options)
        if isinstance(validation, str) and validation == "none":
            settings, validation = {**settings, "data.validation": "none"}, None
        source = str(interactions) if isinstance(interactions, str | Path) else IN_MEMORY
        config = RunConfig.from_settings({**settings, "data.source": source})
        result = run(
            config, data=_with_validation(read_any(interactions), validation), listeners=listeners
        )
        self._take(TrainedModel(finished_run(result)), result.config)
        self._result = result
        self._origin: Path | None = None
        return self

    def _take(self, model: TrainedModel, config: RunConfig) -> None:
        self.model_, self.config_, self.metrics_ = model, config, dict(model.metrics)
        self.users_, self.items_ = model.users.series, model.items.series
        self.n_users_, self.n_items_ = model.n_users, model.n_items

    def recommend(
        self,
        users: Any = None,
        k: int = 20,
        *,
        exclude_seen: bool = True,
        items: Any = None,
        parents: Mapping[Any, Any] | None = None,
        output: Output = "polars",
    ) -> Any:
        """The best items of users known from training, as a frame with the columns user, item, score and rank.

        Args:
            users: one id or many; all if not given.
            k: length of the lists.
            exclude_seen: leave out what the user had in the data.
            items: ids to choose from; all if not given.
            parents: items that were not there in training, each with the known item in whose place it is ranked.
            output: polars, pandas or numpy.
        """
        model = self._model(parents)
        rows = (
            torch.arange(model.n_users) if users is None else rows_of(users, model.users, NEW_USER)
        )
        chosen = None if items is None else rows_of(items, model.items, NEW_ITEM)
        top = model.recommend(rows, k, exclude_seen=exclude_seen, items=chosen)
        return given_as(
            ranked_frame(model.users.series.gather(rows.numpy()), top, model.items), output
        )

    def recommend_for(
        self,
        history: Any,
        k: int = 20,
        *,
        exclude_seen: bool = True,
        items: Any = None,
        parents: Mapping[Any, Any] | None = None,
        output: Output = "polars",
    ) -> Any:
        """The best items of people who were not there in training.

        Args:
            history: item ids of one person, or several such lists, or lists by name, or interactions; people without names are
                numbered from 0 in the column `user`.
            k: length of the lists.
            exclude_seen: leave out what is in the history.
            items: ids to choose from; all if not given.
            parents: items that were not there in training, each with the known item in whose place it stands.
            output: polars, pandas or numpy.
        """
        model = self._model(parents)
        names, histories = histories_of(history)
        rows = [rows_of(ids, model.items, NEW_ITEM) for ids in histories]
        chosen = None if items is None else rows_of(items, model.items, NEW_ITEM)
        top = model.recommend_for(rows, k, exclude_seen=exclude_seen, items=chosen)
        return given_as(ranked_frame(pl.Series("user", names), top, model.items), output)

    def similar_items(self, items: Any, k: int = 20, *, output: Output = "polars") -> Any:
        """The items nearest to one or many, by cosine, with the columns item, similar, score and rank."""
        model = self._model()
        rows = rows_of(items, model.items, NEW_ITEM)
        names = model.items.series.gather(rows.numpy())
        return given_as(
            ranked_frame(
                names, model.similar_items(rows, k), model.items, columns=("item", "similar")
            ),
            output,
        )

    def similar_users(self, users: Any, k: int = 20, *, output: Output = "polars") -> Any:
        """The users nearest to one or many, by cosine, with the columns user, similar, score and rank."""
        model = self._model()
        rows = rows_of(users, model.users)
        names = model.users.series.gather(rows.numpy())
        return given_as(
            ranked_frame(
                names, model.similar_users(rows, k), model.users, columns=("user", "similar")
            ),
            output,
        )

    def score(
        self, users: Any, items: Any, *, parents: Mapping[Any, Any] | None = None
    ) -> np.ndarray:
        """The score of each user for the item at the same place; one id on either side goes with all on the other.

        Args:
            users: one id or many.
            items: one id or many.
            parents: items that were not there in training, each with the known item in whose place it is scored.
        """
        model = self._model(parents)
        user_rows, item_rows = (
            rows_of(users, model.users, NEW_USER),
            rows_of(items, model.items, NEW_ITEM),
        )
        if 1 not in (len(user_rows), len(item_rows)) and len(user_rows) != len(item_rows):
            raise DataError(
                f"`users` and `items` must be of one length, got {len(user_rows)} and {len(item_rows)}"
            )
        pairs = torch.broadcast_tensors(user_rows, item_rows)
        scores: np.ndarray = model.score(*pairs).numpy()
        return scores

    def evaluate(self, interactions: Any, *, k: Sequence[int] = (5, 20, 50)) -> dict[str, float]:
        """Rank the catalogue for users that the model knows, hide what they had before, and compare with what they did.

        Args:
            interactions: what they did after training, in any form that `fit` takes. Unknown users and items are left out, and
                so is what was in training, which the lists hide; how many that are is logged.
            k: lengths of the lists.
        """
        model = self._model()
        found = read_any(interactions)
        given = found.test if isinstance(found, Dataset) else found
        rows = np.repeat(np.arange(model.n_users), model.seen.lengths)
        train = Interactions(rows, model.seen.items, model.users, model.items)
        test = _to_evaluate(given, onto(given, model.users, model.items), train)
        scorer = EmbeddingScorer(model.user_vectors, model.item_vectors)
        result = evaluate(scorer, Dataset(train, test, n_left_out=len(given) - len(test)), k=k)
        logger.info("%s", result.evaluated.sentence("given"))
        return result.metrics

    def save(self, path: Path | str) -> None:
        """Write a run directory, which `Recommender.load` and every command of `pslrec` read."""
        self._model()
        place = local_path(path, error=ConfigError)
        if self._origin is None:
            save_run(self._result, place)
        elif place.exists():
            raise ConfigError(f"{path} exists already; choose another directory")
        elif not self._origin.is_dir():
            raise ConfigError(
                f"{self._origin}, from which this Recommender was loaded, is not there any more"
            )
        else:
            copy_run(self._origin, place)

    @classmethod
    def load(cls, path: Path | str) -> "Recommender":
        """A fitted recommender, from the directory of a finished run; nothing in it is executed."""
        local_path(path, error=ConfigError)
        model = TrainedModel.load(path)
        config = RunConfig.from_toml(Path(path) / "config.toml")
        loaded = cls(config.loss.name, config.backbone.name, **options_of(config))
        loaded._take(model, config)
        loaded._origin = Path(path)
        return loaded

    def _model(self, parents: Mapping[Any, Any] | None = None) -> TrainedModel:
        model: TrainedModel = self.model_
        return model.with_parents(parents) if parents else model


def _to_evaluate(given: Interactions, known: Interactions, train: Interactions) -> Interactions:
    """What of the given interactions a model can be evaluated by: known to it, and not what it was trained on."""
    if not len(known):
        raise DataError(
            "`interactions` has no row whose user and item were both there in training; give others"
        )
    is_learnt = in_both(known, train)
    if is_learnt.all():
        raise DataError(
            f"all {len(known):,} rows of `interactions` that the model knows were in training, so its lists hide them; "
            "evaluate on what came later, or on what was set apart before `fit`"
        )
    if is_learnt.any():
        logger.warning(
            "%s of %s rows were in training and are left out, as the lists hide them",
            f"{int(is_learnt.sum()):,}",
            f"{len(given):,}",
        )
    if len(known) < len(given):
        logger.warning(
            "%s of %s rows are left out: their user or item was not there in training",
            f"{len(given) - len(known):,}",
            f"{len(given):,}",
        )
    return known.select(~is_learnt)


def _with_validation(data: Interactions | Dataset, validation: Any) -> Interactions | Dataset:
    if validation is None:
        return data
    dataset = (
        data
        if isinstance(data, Dataset)
        else Dataset(data, data.select(np.zeros(0, dtype=np.int64)))
    )
    found = read_any(validation)
    given = onto(
        found.whole() if isinstance(found, Dataset) else found,
        dataset.user_vocabulary,
        dataset.item_vocabulary,
    )
    if not len(given):
        raise DataError(
            "`validation` has no interaction whose user and item are both in the training data"
        )
    return replace(dataset, validation=given)
