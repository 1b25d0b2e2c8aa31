"""Construct and fit: the half of a recommender that learns."""

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from pslrec.artifacts import Epoch, flat_settings
from pslrec.backbones import Backbone
from pslrec.config import RunConfig
from pslrec.data import Columns, Dataset, Interactions
from pslrec.data.items import ItemTable
from pslrec.errors import DataError
from pslrec.experiment import finished_run, inherited_item_table, run
from pslrec.inference import TrainedModel
from pslrec.losses import Loss
from pslrec.progress import shown_progress
from pslrec.recommender._card import curve_frame
from pslrec.recommender._forking import note_work
from pslrec.recommender._frames import (
    Output,
    check_has_columns,
    columns_of_more,
    library_of,
    onto,
    read_any,
)
from pslrec.recommender._growing import grown_data, grown_settings
from pslrec.recommender._options import AUTO, settings_of
from pslrec.recommender._parameters import Parameters
from pslrec.recommender._storage import Storage, TrainedHere
from pslrec.training import EpochFinished, Event, Listener, TrainingStarted

Preset = Literal["auto", "best", "fast", "fixed", "paper"]
# What a run says its source is, where there is nothing to load it from again.
IN_MEMORY = "(in memory)"


class Fitting(Parameters):
    """Trains a model and keeps what is known about it; `Recommender` documents the arguments."""

    # Writes the files of the fitted model.
    _storage: Storage
    # Of the frame that `fit` was given, if it was one.
    _library: Output | None
    _item_table: ItemTable | None

    # Typed and documented one by one, so that an editor completes them.
    def __init__(
        self,
        loss: str | Loss | type[Loss] = "psl-relu",
        backbone: str | Backbone | type[Backbone] = "auto",
        *,
        preset: Preset = "auto",
        temperature: float | None = None,
        dimension: int | None = None,
        epochs: int | Literal["auto"] | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        negatives: int | str | None = None,
        patience: int | None = None,
        refit: bool | None = None,
        minimum_rating: float | None = None,
        k_core: int | None = None,
        seed: int | None = None,
        device: str | None = None,
        output: Literal["auto", "polars", "pandas", "numpy"] = "auto",
        verbose: bool = True,
        warm_start: bool | str | Path = False,
        **options: Any,
    ) -> None:
        # Values are checked by `fit`: scikit-learn wants constructors that only store.
        self._keep(
            options,
            loss=loss,
            backbone=backbone,
            preset=preset,
            temperature=temperature,
            dimension=dimension,
            epochs=epochs,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            negatives=negatives,
            patience=patience,
            refit=refit,
            minimum_rating=minimum_rating,
            k_core=k_core,
            seed=seed,
            device=device,
            output=output,
            verbose=verbose,
            warm_start=warm_start,
        )

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` has been called."""
        return hasattr(self, "model_")

    def fit(
        self,
        interactions: Any,
        validation: Any = None,
        *,
        columns: Mapping[str, str] | Columns | None = None,
        encoding: str | None = None,
        listeners: Sequence[Listener] = (),
        verbose: bool | None = None,
    ) -> Self:
        """Train on interactions and keep the best epoch.

        Args:
            interactions: a path, the name of a data set, a polars or pandas frame, a sparse
                matrix, `Interactions` or a `Dataset`.
            validation: interactions to choose the best epoch by. By default some of the training
                interactions are held out for it; with "none" nothing is held out and the last
                epoch is taken.
            columns: names of the columns by role, such as `{"user": "who", "item": "what"}`; the
                other roles are `rating`, `timestamp` and `weight`. Those not given are guessed
                from the usual spellings.
            encoding: of a text file that is not UTF-8, such as `cp1252`; as in the constructor if
                not given.
            listeners: functions that are called with every event of training.
            verbose: whether to show a progress bar in a terminal or a notebook; as in the
                constructor if not given.

        Returns:
            The recommender itself.
        """
        settings = settings_of(self.loss, self.backbone, self._settings_given())
        is_warm = self.warm_start is True and self.__sklearn_is_fitted__()
        if is_warm:
            settings = self._found_before(settings)
        if isinstance(validation, str) and validation == "none":
            settings["data.validation"] = "none"
            validation = None
        settings["data.source"] = IN_MEMORY
        if isinstance(interactions, str | Path):
            settings["data.source"] = str(interactions)
        for role, name in Columns.of(columns).given().items():
            settings[f"data.columns.{role}"] = name
        if encoding is not None:
            settings["data.encoding"] = encoding
        # Before the data are read, which takes longer than finding a misspelt option.
        config = RunConfig.from_settings(settings)
        if columns is not None:
            check_has_columns(interactions)
        data = read_any(interactions, **config.data.reading())
        if validation is not None:
            data = _with_validation(data, read_any(validation, **config.data.reading()))
        self._train(config, data, listeners, verbose=verbose, is_warm=is_warm)
        if self._item_table is None:
            self._item_table = inherited_item_table(config, self.model_.items)
        self._library = library_of(interactions)
        return self

    def partial_fit(
        self,
        interactions: Any,
        *,
        columns: Mapping[str, str] | Columns | None = None,
        listeners: Sequence[Listener] = (),
        verbose: bool | None = None,
    ) -> Self:
        """Add interactions to those of a fitted model, and train on from where it stands.

        All interactions so far count, not the new ones alone, so nothing is forgotten; users and
        items may be new. Settings stay those of the last training, what `auto` has found among
        them. Pairs that were held out for validation stay held out and choose the epoch; where
        nothing is held out, as after `refit=True`, training is as long as the last time.

        Args:
            interactions: the new ones, in any form that `fit` takes.
            columns: as in `fit`; by default those of the last call.
            listeners: as in `fit`.
            verbose: as in `fit`.

        Returns:
            The recommender itself; without an earlier `fit` this is one.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(interactions, columns=columns, listeners=listeners, verbose=verbose)
        new = self._read_more(interactions, columns)
        data = grown_data(self.model_, new, minimum_rating=self.config_.data.minimum_rating)
        is_validated = data.validation is not None
        more = grown_settings(self.config_, self.metrics_, has_validation=is_validated)
        more["data.source"] = IN_MEMORY
        config = RunConfig.from_settings(more, base=self.config_)
        self._train(config, data, listeners, verbose=verbose, is_warm=True)
        return self

    def _read_more(
        self, interactions: Any, columns: Mapping[str, str] | Columns | None
    ) -> Interactions | Dataset:
        """Read interactions that come after those of `fit`, with the same columns if they have them."""
        section = self.config_.data
        reading = section.reading()
        reading["columns"] = columns_of_more(
            interactions,
            reading["columns"],
            Columns.of(columns),
            has_ratings=section.minimum_rating is not None,
        )
        if columns is not None:
            check_has_columns(interactions)
        return read_any(interactions, **reading)

    def _settings_given(self) -> dict[str, Any]:
        given = self.get_params()
        return {name: value for name, value in given.items() if name not in ("loss", "backbone")}

    def _found_before(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The settings, and what `auto` found for the last model: rows of another size do not fit."""
        found = self.config_.auto.chosen
        values = flat_settings(self.config_.model_dump(exclude_none=True))
        kept = {name: values[name] for name in found if name in values}
        kept["backbone.name"] = self.config_.backbone.name
        asked = dict(settings)
        if self.backbone == AUTO:
            del asked["backbone.name"]
        return {**kept, **asked, "auto.chosen": found}

    def _train(
        self,
        config: RunConfig,
        data: Interactions | Dataset,
        listeners: Sequence[Listener],
        *,
        verbose: bool | None,
        is_warm: bool,
    ) -> None:
        epochs: list[EpochFinished] = []
        if verbose is None:
            verbose = self.verbose
        with ExitStack() as stack:
            if is_warm:
                # Written out, as a run starts from what another one has saved.
                place = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "run"
                self._storage.write(place)
                config = RunConfig.from_settings({"training.warm_start": str(place)}, base=config)
            shown: list[Listener] = []
            if verbose:
                shown = stack.enter_context(shown_progress())
            own = [_collecting(epochs), *shown]
            result = run(config, data=data, listeners=[*own, *listeners])
        if is_warm:
            told = {"training.warm_start": IN_MEMORY}
            result = replace(result, config=RunConfig.from_settings(told, base=result.config))
        # Kept for `save`, which writes more than the model holds.
        self._storage = TrainedHere(result, epochs)
        self._take(TrainedModel(finished_run(result)), result.config)
        self.learning_curve_ = curve_frame([_as_logged(epoch) for epoch in epochs])

    def _take(self, model: TrainedModel, config: RunConfig) -> None:
        note_work()
        self.model_ = model
        self.config_ = config
        self.metrics_ = dict(model.metrics)
        self.users_ = model.users.series
        self.items_ = model.items.series
        self.n_users_ = model.n_users
        self.n_items_ = model.n_items


def _collecting(epochs: list[EpochFinished]) -> Listener:
    """A listener that keeps the epochs of the first training, by which the best one is chosen."""
    starts: list[TrainingStarted] = []

    def listen(event: Event) -> None:
        if isinstance(event, TrainingStarted):
            starts.append(event)
        elif isinstance(event, EpochFinished) and len(starts) == 1:
            epochs.append(event)

    return listen


def _as_logged(event: EpochFinished) -> Epoch:
    return Epoch(event.epoch, event.loss, event.seconds, event.validation)


def _with_validation(data: Interactions | Dataset, given: Interactions | Dataset) -> Dataset:
    if isinstance(data, Dataset):
        dataset = data
    else:
        nothing = data.select(np.zeros(0, dtype=np.int64))
        dataset = Dataset(data, nothing)
    if isinstance(given, Dataset):
        given = given.whole()
    # A user or item without a row in training cannot be ranked.
    known = onto(given, dataset.user_vocabulary, dataset.item_vocabulary)
    if not len(known):
        raise DataError(
            "`validation` has no interaction whose user and item are both in the training data"
        )
    return replace(dataset, validation=known)
