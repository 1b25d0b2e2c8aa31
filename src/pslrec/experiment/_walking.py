"""Walks and a regression beside the vectors of a trained model, as its configuration says."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pslrec.artifacts import Model, RunDirectory, Walks, flat_settings
from pslrec.config import RunConfig
from pslrec.distributed import Group
from pslrec.errors import ConfigError
from pslrec.experiment._auto_race import folds_of_little_data
from pslrec.experiment._inputs import TrainingData
from pslrec.experiment._walk_fitting import WalkFitting, WalkSettings
from pslrec.experiment._walk_search import Fold, search_walks, why_no_walks
from pslrec.training import (
    Listener,
    TrainingDivergedError,
    TrainingInterrupted,
    WalksChosen,
)

logger = logging.getLogger(__name__)


class Walked(NamedTuple):
    """A model with its walks.

    Args:
        config: with numbers in the place of `auto`.
        model: with walks and a regression, where their weights are not 0.
        sentence: what was chosen now and why; empty if nothing was open.
    """

    config: RunConfig
    model: Model
    sentence: str = ""


def with_walks(
    config: RunConfig,
    data: TrainingData,
    model: Model,
    *,
    directory: RunDirectory | None = None,
    listeners: Sequence[Listener] = (),
    group: Group | None = None,
    fitting: WalkFitting | None = None,
    train: Callable[[TrainingData], Model] | None = None,
) -> Walked:
    """Add walks and a regression to a trained model, as the section `walks` says.

    Args:
        config: complete.
        data: what the model was trained on; its validation part chooses where a weight is `auto`.
        model: the trained vectors.
        directory: of the run, which keeps the walks and what was chosen.
        listeners: are told what was tried and chosen.
        group: processes that train together.
        fitting: to the same data, which may have been asked before.
        train: makes a model of other data by the same configuration. Then little data choose by
            several validation parts, as in the race of `auto`.
    """
    group = group or Group()
    if fitting is None:
        fitting = WalkFitting(data, neighbours=config.walks.neighbours, group=group)
    sentence = ""
    walks = None
    if config.walks.open_weights:
        folds = [Fold(data, model, fitting)]
        if train is not None:
            folds += _further_folds(config, data, train, group)
        found = search_walks(config, folds, listeners=listeners, group=group)
        walks = found.walks
        sentence = found.sentence
        for listener in listeners:
            listener(WalksChosen(sentence))
        names = sorted({*config.auto.chosen, *found.settings})
        settings = {**found.settings, "auto.chosen": tuple(names)}
        config = RunConfig.from_settings(settings, base=config)
        if directory is not None:
            _complete_choice(directory, config, sentence)
            # Last: a run that is stopped from here on and resumed does not choose again.
            directory.rewrite_config(config.to_toml())
    if walks is None:
        walks = _given_walks(config, fitting)
    if walks is None:
        return Walked(config, model, sentence)
    if directory is not None:
        directory.write_walks(walks)
    return Walked(config, replace(model, walks=walks, histories=data.train.rows), sentence)


def _further_folds(
    config: RunConfig,
    data: TrainingData,
    train: Callable[[TrainingData], Model],
    group: Group,
) -> list[Fold]:
    """Other validation parts of little data, each with what was trained beside it."""
    if why_no_walks(data):
        return []
    folds = []
    for further in folds_of_little_data(config, data):
        try:
            model = train(further)
        except TrainingInterrupted:
            raise TrainingInterrupted(
                "stopped while walks were chosen, which starts over; what was trained is saved"
            ) from None
        except TrainingDivergedError as error:
            # The model is there; only the choice has one part less to go by.
            logger.warning("walks are chosen without a further validation part: %s", error)
            continue
        fitting = WalkFitting(further, neighbours=config.walks.neighbours, group=group)
        folds.append(Fold(further, model, fitting))
    return folds


def _given_walks(config: RunConfig, fitting: WalkFitting) -> Walks | None:
    try:
        return fitting.fitted(WalkSettings.of(config.walks))
    except ConfigError as error:
        raise ConfigError(f"{error}; set `walks.regression` to 0") from None


def _complete_choice(directory: RunDirectory, config: RunConfig, sentence: str) -> None:
    """Write what was chosen into what `auto` had left open, if it chose before training."""
    record = directory.read_choice()
    if record is not None:
        directory.write_choice(completed(record, config, sentence))


def completed(record: dict[str, Any], config: RunConfig, sentence: str) -> dict[str, Any]:
    """What `auto` chose, with the walks.

    Args:
        record: of the choice before training.
        config: complete.
        sentence: what was chosen after it, if anything was.
    """
    values = flat_settings(config.model_dump())
    settings = {name: values[name] for name in config.auto.chosen}
    found = {**record, "settings": settings}
    if sentence:
        found["walks"] = sentence
    return found
