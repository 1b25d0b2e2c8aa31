"""The whole library in one class: construct, fit, recommend, save, load."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, Unpack

import numpy as np
import polars as pl
import torch

from pslrec.backbones import Backbone
from pslrec.config import RunConfig
from pslrec.data import Dataset, Interactions, in_both
from pslrec.errors import ConfigError, DataError, PslrecError
from pslrec.evaluation import EmbeddingScorer, evaluate
from pslrec.experiment import copy_run, finished_run, run, save_run
from pslrec.files import local_path
from pslrec.inference import TrainedModel
from pslrec.losses import Loss
from pslrec.recommender._described_items import DescribedItems
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
from pslrec.recommender._reasons import with_reasons
from pslrec.recommender._rules import RuleArguments, rules_from
from pslrec.rows import Rows
from pslrec.training import Listener

logger = logging.getLogger(__name__)

# What a run says its source is, where there is nothing to load it from again.
IN_MEMORY = "(in memory)"
NEW_USER = "; for a user who was not in the training data, call `recommend_for` with their history"
NEW_ITEM = (
    "; it was not in the training data: leave it out, train again, "
    "or pass `parents={new item: known item}`"
)


# The two built-in bases are those of scikit-learn's error; with the second one, `hasattr` says
# that a fitted attribute is absent instead of raising.
class NotFittedError(PslrecError, ValueError, AttributeError):
    """A recommender was used before it was fitted."""


class Recommender(DescribedItems):
    """Train a model on interactions and recommend items, following scikit-learn conventions.

    Users and items are named by the ids in your data.

    Args:
        loss: name of the ranking loss (`pslrec.losses.LOSSES` lists them), or a class or an
            instance of one, such as `MyLoss(0.3)`, whose options are taken over.
        backbone: name of the backbone (`pslrec.backbones.BACKBONES` lists them), or a class or an
            instance; `auto` takes that of the preset.
        options: any other setting of a run. Short names work where they are unambiguous
            (`epochs=50`, `temperature=0.1`, `dimension=128`, `refit=True`), full names always do,
            with two underscores for the dot (`training__epochs=50`). What is left open is found by
            rules and a short race on validation data: `preset="auto"`, the default. `"best"`
            searches the dimension as well; `"fast"` and `"paper"` are fixed settings without a race.

    Attributes:
        model_: the `TrainedModel`, which works on row numbers instead of ids.
        config_: the settings of the run, with every default written out.
        metrics_: how the model was evaluated, such as `metrics_["validation"]["ndcg@20"]`.
        users_: ids of the users, a polars Series.
        items_: ids of the items, a polars Series.
        n_users_: number of users.
        n_items_: number of items.

    The attributes that end in an underscore exist after `fit`.

    >>> log = pl.DataFrame(
    ...     {"user": [1, 1, 1, 2, 2, 2, 3, 3], "item": ["a", "b", "c", "a", "b", "d", "b", "d"]}
    ... )
    >>> recommender = Recommender("sl", epochs=5, dimension=4, negatives="catalog")
    >>> recommender = recommender.fit(log, validation="none")
    >>> recommender.recommend(3, k=2).select("user", "item", "rank")["item"].sort().to_list()
    ['a', 'c']
    >>> recommender.recommend_for(["a", "c"], k=1).columns
    ['user', 'item', 'score', 'rank']
    """

    def __init__(
        self,
        loss: str | Loss | type[Loss] = "psl-relu",
        backbone: str | Backbone | type[Backbone] = "auto",
        **options: Any,
    ) -> None:
        # Options are checked by `fit`: scikit-learn wants constructors that only store.
        self.loss = loss
        self.backbone = backbone
        self._options = options

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """The arguments of the constructor.

        Args:
            deep: has no effect; scikit-learn passes it.
        """
        return {"loss": self.loss, "backbone": self.backbone, **self._options}

    def set_params(self, **params: Any) -> Self:
        """Change arguments of the constructor; a fitted model stays until the next `fit`.

        Args:
            params: the arguments to change, by name.
        """
        options = {**self.get_params(), **params}
        loss = options.pop("loss")
        backbone = options.pop("backbone")
        # Raises for an unknown option before anything is changed.
        settings_of(loss, backbone, options)
        self.loss = loss
        self.backbone = backbone
        self._options = options
        return self

    def __repr__(self) -> str:
        arguments = [f"{name}={value!r}" for name, value in self.get_params().items()]
        return f"Recommender({', '.join(arguments)})"

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` has been called."""
        return hasattr(self, "model_")

    def __getattr__(self, name: str) -> Any:
        # Python calls this only for attributes that it does not find otherwise. scikit-learn
        # expects every argument of the constructor to be one, options included.
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
        """Train on interactions and keep the best epoch.

        Args:
            interactions: a path, the name of a data set, a polars or pandas frame, a sparse
                matrix, `Interactions` or a `Dataset`.
            validation: interactions to choose the best epoch by. By default some of the training
                interactions are held out for it; with "none" nothing is held out and the last
                epoch is taken.
            listeners: functions that are called with every event of training.

        Returns:
            The recommender itself.
        """
        settings = settings_of(self.loss, self.backbone, self._options)
        if isinstance(validation, str) and validation == "none":
            settings["data.validation"] = "none"
            validation = None
        settings["data.source"] = IN_MEMORY
        if isinstance(interactions, str | Path):
            settings["data.source"] = str(interactions)
        # Before the data are read, which takes longer than finding a misspelt option.
        config = RunConfig.from_settings(settings)
        data = read_any(interactions)
        if validation is not None:
            data = _with_validation(data, validation)
        result = run(config, data=data, listeners=listeners)
        # Kept for `save`, which writes more than the model holds.
        self._result = result
        self._take(TrainedModel(finished_run(result)), result.config)
        self._origin: Path | None = None
        return self

    def _take(self, model: TrainedModel, config: RunConfig) -> None:
        self.model_ = model
        self.config_ = config
        self.metrics_ = dict(model.metrics)
        self.users_ = model.users.series
        self.items_ = model.items.series
        self.n_users_ = model.n_users
        self.n_items_ = model.n_items

    def recommend(
        self,
        users: Any = None,
        k: int = 20,
        *,
        exclude_seen: bool = True,
        explain: int = 0,
        parents: Mapping[Any, Any] | None = None,
        output: Output = "polars",
        **rules: Unpack[RuleArguments],
    ) -> Any:
        """Recommend items to users from the training data.

        Args:
            users: one id or several; all users by default.
            k: length of the lists.
            exclude_seen: leave out items that the user has in the training data.
            explain: how many items of the history to give as reasons, in the column `because`.
            parents: items that were not in the training data, each with the known item that it is
                ranked like: `{"new": "known"}`.
            output: "polars", "pandas" or "numpy".
            rules: what may be recommended. `items` are the ids to choose from, `exclude` those to
                leave out, `exclude_by_user={user: ids}` those to leave out for one user.
                `where='genre == "Comedy" and year >= 1990'` is a condition on the item table of
                `use_item_table`, and `at_most={"genre": 2}` limits how many items of a list have
                the same value in a column. `skip_unknown=True` leaves out ids that were not in
                the training data, users included, instead of raising.

        Returns:
            A frame with the columns user, item, score and rank, best items first; with an item
            table also title.
        """
        model = self._model(parents)
        wanted = rules_from(rules).by_row(model.users)
        rows = torch.arange(model.n_users)
        if users is not None:
            rows = rows_of(users, model.users, NEW_USER, skip_unknown=wanted.skip_unknown)
        table = self._table_for(model.items)
        hidden = wanted.hidden_from(rows.tolist(), model.items)
        row_rules = self._row_rules(wanted, model.items, hidden)
        top = model.recommend(rows, k, exclude_seen=exclude_seen, rules=row_rules)
        names = model.users.series.gather(rows.numpy())
        frame = ranked_frame(names, top, model.items, table=table)
        if explain:
            seen = model.seen.select(rows.numpy())
            frame = with_reasons(frame, model, top, seen, explain, table)
        return given_as(frame, output)

    def recommend_for(
        self,
        history: Any,
        k: int = 20,
        *,
        exclude_seen: bool = True,
        explain: int = 0,
        parents: Mapping[Any, Any] | None = None,
        output: Output = "polars",
        **rules: Unpack[RuleArguments],
    ) -> Any:
        """Recommend items to new users, given the items that they have.

        Args:
            history: item ids of one user, a list of such lists, a mapping from user to item ids,
                or interactions. Users without a name are numbered from 0.
            k: length of the lists.
            exclude_seen: leave out the items of the history.
            explain: how many items of the history to give as reasons, in the column `because`.
            parents: items that were not in the training data, each with the known item that it is
                treated like: `{"new": "known"}`.
            output: "polars", "pandas" or "numpy".
            rules: what may be recommended; see `recommend`.

        Returns:
            A frame with the columns user, item, score and rank, best items first; with an item
            table also title.
        """
        model = self._model(parents)
        wanted = rules_from(rules)
        names, histories = histories_of(history)
        rows = []
        for ids in histories:
            rows.append(rows_of(ids, model.items, NEW_ITEM, skip_unknown=wanted.skip_unknown))
        table = self._table_for(model.items)
        hidden = wanted.hidden_from(names, model.items)
        row_rules = self._row_rules(wanted, model.items, hidden)
        top = model.recommend_for(rows, k, exclude_seen=exclude_seen, rules=row_rules)
        frame = ranked_frame(pl.Series("user", names), top, model.items, table=table)
        if explain:
            seen = Rows.from_lists([history.numpy() for history in rows])
            frame = with_reasons(frame, model, top, seen, explain, table)
        return given_as(frame, output)

    def similar_items(
        self,
        items: Any,
        k: int = 20,
        *,
        output: Output = "polars",
        exclude: Any = None,
        where: str | None = None,
        at_most: Mapping[str, int] | None = None,
    ) -> Any:
        """Find the items most similar to given ones, by the cosine of their vectors.

        Args:
            items: one id or several.
            k: length of the lists.
            output: "polars", "pandas" or "numpy".
            exclude: ids to leave out.
            where: a condition on the item table; see `recommend`.
            at_most: how many items of a list may have the same value in a column.

        Returns:
            A frame with the columns item, similar, score and rank, most similar items first; with
            an item table also title, that of the similar item.
        """
        model = self._model()
        rows = rows_of(items, model.items, NEW_ITEM)
        table = self._table_for(model.items)
        wanted = rules_from({"exclude": exclude, "where": where, "at_most": at_most})
        top = model.similar_items(rows, k, rules=self._row_rules(wanted, model.items, None))
        names = model.items.series.gather(rows.numpy())
        frame = ranked_frame(names, top, model.items, ("item", "similar"), table)
        return given_as(frame, output)

    def similar_users(self, users: Any, k: int = 20, *, output: Output = "polars") -> Any:
        """Find the users most similar to given ones, by the cosine of their vectors.

        Args:
            users: one id or several.
            k: length of the lists.
            output: "polars", "pandas" or "numpy".

        Returns:
            A frame with the columns user, similar, score and rank, most similar users first.
        """
        model = self._model()
        rows = rows_of(users, model.users)
        top = model.similar_users(rows, k)
        names = model.users.series.gather(rows.numpy())
        frame = ranked_frame(names, top, model.users, columns=("user", "similar"))
        return given_as(frame, output)

    def score(
        self, users: Any, items: Any, *, parents: Mapping[Any, Any] | None = None
    ) -> np.ndarray:
        """Score pairs of users and items; higher is better.

        Args:
            users: one id or several.
            items: as many ids as users; a single id on one side is paired with every id on the
                other.
            parents: items that were not in the training data, each with the known item that it is
                scored like: `{"new": "known"}`.

        Returns:
            One score per pair.
        """
        model = self._model(parents)
        user_rows = rows_of(users, model.users, NEW_USER)
        item_rows = rows_of(items, model.items, NEW_ITEM)
        is_single = len(user_rows) == 1 or len(item_rows) == 1
        if not is_single and len(user_rows) != len(item_rows):
            raise DataError(
                "`users` and `items` must have the same length, "
                f"got {len(user_rows)} and {len(item_rows)}"
            )
        user_rows, item_rows = torch.broadcast_tensors(user_rows, item_rows)
        scores: np.ndarray = model.score(user_rows, item_rows).numpy()
        return scores

    def evaluate(self, interactions: Any, *, k: Sequence[int] = (5, 20, 50)) -> dict[str, float]:
        """Evaluate the recommendations against interactions that were not used in training.

        Args:
            interactions: what users did later, in any form that `fit` takes. Interactions of
                unknown users or items are left out, and so are those from training; a warning says
                how many.
            k: lengths of the lists.

        Returns:
            Means over users by name, such as `ndcg@20`.
        """
        model = self._model()
        given = read_any(interactions)
        if isinstance(given, Dataset):
            given = given.test
        # Lists hide what the model was given, validation data included.
        seen_users = np.repeat(np.arange(model.n_users), model.seen.lengths)
        train = Interactions(seen_users, model.seen.items, model.users, model.items)
        test = _to_evaluate(given, onto(given, model.users, model.items), train)
        scorer = EmbeddingScorer(model.user_vectors, model.item_vectors)
        dataset = Dataset(train, test, n_left_out=len(given) - len(test))
        result = evaluate(scorer, dataset, k=k)
        logger.info("%s", result.evaluated.sentence("given"))
        return result.metrics

    def save(self, path: Path | str) -> None:
        """Save to a run directory, which `Recommender.load` and all `pslrec` commands can read.

        Args:
            path: directory to make.
        """
        # Raises if there is no model yet.
        self._model()
        place = local_path(path, error=ConfigError)
        if self._origin is None:
            save_run(self._result, place)
            return
        # A loaded model has no `RunResult` to write, so the files are copied.
        if place.exists():
            raise ConfigError(f"{path} exists already; choose another directory")
        if not self._origin.is_dir():
            raise ConfigError(
                f"{self._origin}, from which this Recommender was loaded, no longer exists"
            )
        copy_run(self._origin, place)

    @classmethod
    def load(cls, path: Path | str) -> "Recommender":
        """Load a fitted recommender from the directory of a finished run.

        Args:
            path: the directory. Its files are checked, and nothing in them is executed.
        """
        local_path(path, error=ConfigError)
        model = TrainedModel.load(path)
        config = RunConfig.checked(model.config)
        # With all options in full, so that `fit` trains by the same settings again.
        loaded = cls(config.loss.name, config.backbone.name, **options_of(config))
        loaded._take(model, config)
        loaded._origin = Path(path)
        return loaded

    def _model(self, parents: Mapping[Any, Any] | None = None) -> TrainedModel:
        model: TrainedModel = self.model_
        if parents:
            return model.with_parents(parents)
        return model


def _to_evaluate(given: Interactions, known: Interactions, train: Interactions) -> Interactions:
    """The known interactions that were not trained on; warns of those that are left out."""
    if not len(known):
        raise DataError(
            "`interactions` has no row whose user and item were both in the training data; "
            "give others"
        )
    is_learnt = in_both(known, train)
    n_given = f"{len(given):,}"
    if is_learnt.all():
        raise DataError(
            f"all {len(known):,} rows of `interactions` that the model knows were in training, "
            "so its lists hide them; "
            "evaluate on what came later, or on what was set apart before `fit`"
        )
    if is_learnt.any():
        logger.warning(
            "%s of %s rows were in training and are left out, as the lists hide them",
            f"{int(is_learnt.sum()):,}",
            n_given,
        )
    if len(known) < len(given):
        logger.warning(
            "%s of %s rows are left out: their user or item was not in the training data",
            f"{len(given) - len(known):,}",
            n_given,
        )
    return known.select(~is_learnt)


def _with_validation(data: Interactions | Dataset, validation: Any) -> Dataset:
    if isinstance(data, Dataset):
        dataset = data
    else:
        nothing = data.select(np.zeros(0, dtype=np.int64))
        dataset = Dataset(data, nothing)
    given = read_any(validation)
    if isinstance(given, Dataset):
        given = given.whole()
    # A user or item without a row in training cannot be ranked.
    known = onto(given, dataset.user_vocabulary, dataset.item_vocabulary)
    if not len(known):
        raise DataError(
            "`validation` has no interaction whose user and item are both in the training data"
        )
    return replace(dataset, validation=known)
