"""The whole library in one class: construct, fit, recommend, save, load."""

import logging
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import polars as pl
import torch

from pslrec.artifacts import read_epochs, read_item_table
from pslrec.config import RunConfig
from pslrec.data import Columns, Dataset, Interactions, in_both
from pslrec.errors import ConfigError, DataError
from pslrec.evaluation import evaluate
from pslrec.files import at_hand
from pslrec.inference import TrainedModel
from pslrec.recommender._card import curve_frame, facts_of, html_card, text_card
from pslrec.recommender._described_items import DescribedItems
from pslrec.recommender._fitting import Fitting
from pslrec.recommender._forking import check_not_forked
from pslrec.recommender._frames import (
    Output,
    given_as,
    histories_of,
    library_of,
    onto,
    ranked_frame,
    rows_of,
)
from pslrec.recommender._options import options_of
from pslrec.recommender._reasons import with_reasons
from pslrec.recommender._rules import RuleArguments, rules_from
from pslrec.recommender._storage import LoadedFrom, Pickled, Storage, pickled, save
from pslrec.rows import Rows

logger = logging.getLogger(__name__)

NEW_USER = "; for a user who was not in the training data, call `recommend_for` with their history"
NEW_ITEM = (
    "; it was not in the training data: leave it out, train again, "
    "or pass `parents={new item: known item}`"
)


class Recommender(Fitting, DescribedItems):
    """Train a model on interactions and recommend items, following scikit-learn conventions.

    Users and items are named by the ids in your data.

    Args:
        loss: name of the ranking loss (`pslrec.losses.LOSSES` lists them), or a class or an
            instance of one, such as `MyLoss(0.3)`, whose options are taken over.
        backbone: name of the backbone (`pslrec.backbones.BACKBONES` lists them), or a class or an
            instance; `auto` takes that of the preset.
        preset: where settings come from that are left open, which is `None` below. `"auto"` finds
            them by rules and a short race on validation data, `"best"` searches the dimension as
            well, `"fast"` goes by the rules alone and trains briefly, `"fixed"` and `"paper"` are
            the same settings for all data.
        temperature: of the loss; lower ones put more weight on the hardest negatives.
        dimension: length of the vectors of users and items.
        epochs: passes over the training data at most; the best one is kept.
        learning_rate: of Adam.
        weight_decay: of Adam, added to the gradient.
        negatives: how many items each positive is compared with: a number, `"catalog"` for all of
            them, `"shared:8192"` for so many per block of users, or `"auto"`.
        patience: validations without a better one before training stops early; 0 never stops.
        refit: whether to train again on all interactions once the best epoch is known.
        minimum_rating: leave out interactions rated lower.
        k_core: leave out users and items with fewer interactions, until all have as many.
        seed: of everything random in training.
        device: where to train: `"cpu"`, `"cuda"`, `"cuda:1"`, `"mps"`, or `"auto"` for the first
            one that this machine has.
        output: what frames are: `"polars"`, `"pandas"`, `"numpy"`, or with `"auto"` what was given,
            polars if nothing tells.
        verbose: whether `fit` shows a progress bar in a terminal or a notebook.
        warm_start: `True` starts each `fit` after the first from the model before it; a path, from
            the run in that directory.
        options: any other setting of a run. Options of the loss and the backbone have their own
            names (`surrogate="tanh"`), full names always work, with two underscores for the dot
            (`training__schedule="cosine"`). An unknown one is refused at once.

    Attributes:
        model_: the `TrainedModel`, which works on row numbers instead of ids.
        config_: the settings of the run, with every default written out.
        metrics_: how the model was evaluated, such as `metrics_["validation"]["ndcg@20"]`.
        learning_curve_: a polars frame with the epoch, loss, validation and seconds of each epoch.
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

    def __repr__(self) -> str:
        if not self.__sklearn_is_fitted__():
            return self._call()
        return text_card(self._call(), facts_of(self.model_, self.config_))

    def _repr_html_(self) -> str:
        if not self.__sklearn_is_fitted__():
            return html_card(self._call(), {}, curve_frame([]))
        facts = facts_of(self.model_, self.config_)
        # Of epochs that are equally good one was kept, so the curve alone does not tell.
        best_epoch = self.metrics_.get("best_epoch")
        return html_card(self._call(), facts, self.learning_curve_, best_epoch)

    def _call(self) -> str:
        arguments = [f"{name}={value!r}" for name, value in self._changed().items()]
        return f"Recommender({', '.join(arguments)})"

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = {"params": self.get_params(), "files": None, "library": None}
        if self.__sklearn_is_fitted__():
            # Bytes of our own files, so that nothing of torch or polars is unpickled.
            state["files"] = dict(pickled(self._storage, self._item_table).files)
            state["library"] = self._library
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        params = dict(state["params"])
        named = {name: params.pop(name) for name in self._defaults() if name in params}
        self._keep(params, **named)
        if state["files"] is not None:
            check_not_forked()
            storage = Pickled(state["files"])
            with tempfile.TemporaryDirectory() as directory:
                place = Path(directory)
                storage.unpack(place)
                self._read(place, storage)
            self._library = state["library"]

    def recommend(
        self,
        users: Any = None,
        k: int = 20,
        *,
        exclude_seen: bool = True,
        explain: int = 0,
        parents: Mapping[Any, Any] | None = None,
        output: Output | None = None,
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
            output: "polars", "pandas" or "numpy"; by default as the constructor says.
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
        return self._given_as(frame, output, users)

    def recommend_for(
        self,
        history: Any,
        k: int = 20,
        *,
        exclude_seen: bool = True,
        explain: int = 0,
        parents: Mapping[Any, Any] | None = None,
        output: Output | None = None,
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
            output: "polars", "pandas" or "numpy"; by default as the constructor says.
            rules: what may be recommended; see `recommend`.

        Returns:
            A frame with the columns user, item, score and rank, best items first; with an item
            table also title.
        """
        model = self._model(parents)
        wanted = rules_from(rules)
        names, histories = histories_of(history, self.config_.data.reading()["columns"])
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
        return self._given_as(frame, output, history)

    def similar_items(
        self,
        items: Any,
        k: int = 20,
        *,
        output: Output | None = None,
        exclude: Any = None,
        where: str | None = None,
        at_most: Mapping[str, int] | None = None,
    ) -> Any:
        """Find the items most similar to given ones, by the cosine of their vectors.

        Args:
            items: one id or several.
            k: length of the lists.
            output: "polars", "pandas" or "numpy"; by default as the constructor says.
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
        return self._given_as(frame, output, items)

    def similar_users(self, users: Any, k: int = 20, *, output: Output | None = None) -> Any:
        """Find the users most similar to given ones, by the cosine of their vectors.

        Args:
            users: one id or several.
            k: length of the lists.
            output: "polars", "pandas" or "numpy"; by default as the constructor says.

        Returns:
            A frame with the columns user, similar, score and rank, most similar users first.
        """
        model = self._model()
        rows = rows_of(users, model.users)
        top = model.similar_users(rows, k)
        names = model.users.series.gather(rows.numpy())
        frame = ranked_frame(names, top, model.users, columns=("user", "similar"))
        return self._given_as(frame, output, users)

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

    def evaluate(
        self,
        interactions: Any,
        *,
        k: Sequence[int] = (5, 20, 50),
        columns: Mapping[str, str] | Columns | None = None,
    ) -> dict[str, float]:
        """Evaluate the recommendations against interactions that were not used in training.

        Args:
            interactions: what users did later, in any form that `fit` takes. Interactions of
                unknown users or items are left out, and so are those from training; a warning says
                how many.
            k: lengths of the lists.
            columns: as in `fit`; by default those of the training data.

        Returns:
            Means over users by name, such as `ndcg@20`.
        """
        model = self._model()
        given = self._read_more(interactions, columns)
        if isinstance(given, Dataset):
            given = given.test
        # Lists hide what the model was given, validation data included.
        seen_users = np.repeat(np.arange(model.n_users), model.seen.lengths)
        train = Interactions(seen_users, model.seen.items, model.users, model.items)
        test = _to_evaluate(given, onto(given, model.users, model.items), train)
        scorer = model.scorer()
        dataset = Dataset(train, test, n_left_out=len(given) - len(test))
        result = evaluate(scorer, dataset, k=k)
        logger.info("%s", result.evaluated.sentence("given"))
        return result.metrics

    def save(self, path: Path | str, *, overwrite: bool = False) -> None:
        """Save to a run directory, which `Recommender.load` and all `pslrec` commands can read.

        The item table is saved as well, if there is one.

        Args:
            path: directory to make, or an address such as `s3://bucket/run`.
            overwrite: replace a run that is in the directory already. Nothing but a run is ever
                replaced.
        """
        # Raises if there is no model yet.
        self._model()
        save(self._storage, self._item_table, path, overwrite=overwrite)

    @classmethod
    def load(cls, path: Path | str) -> "Recommender":
        """Load a fitted recommender from the directory of a finished run.

        Args:
            path: the directory, or its address. Its files are checked, and nothing in them is executed.
        """
        check_not_forked()
        with at_hand(path, error=ConfigError) as place:
            # Before its settings are known, so that their names are looked up with the run's parts.
            model = TrainedModel.load(place)
            config = RunConfig.checked(model.config)
            # With all options, so that `fit` trains by the same settings again.
            loaded = cls(config.loss.name, config.backbone.name, **options_of(config))
            loaded._read(place, LoadedFrom(Path(path)), model)
        return loaded

    def _read(self, place: Path, storage: Storage, model: TrainedModel | None = None) -> None:
        if model is None:
            model = TrainedModel.load(place)
        self._take(model, RunConfig.checked(model.config))
        self.learning_curve_ = curve_frame(read_epochs(place / "log.jsonl"))
        self._item_table = read_item_table(place, model.items)
        self._storage = storage
        self._library = None

    def _given_as(self, frame: pl.DataFrame, output: Output | None, *given: Any) -> Any:
        """The frame in the library asked for: by the call, the constructor, or what was given."""
        if output is None and self.output != "auto":
            output = self.output
        return given_as(frame, output or library_of(*given) or self._library or "polars")

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
