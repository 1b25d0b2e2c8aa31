"""The data of a run: loaded, split, its test part sealed, false negatives declared."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pslrec.config import DataSection, NoiseSection, RunConfig
from pslrec.data import (
    Dataset,
    Interactions,
    Preparation,
    SealedInteractions,
    concatenate,
    load,
    merge_repetitions,
    prepare,
)
from pslrec.data.splits import carve_validation, split_by_name
from pslrec.errors import ConfigError
from pslrec.sampling import FalseNegatives, plant_false_negatives


@dataclass(frozen=True)
class TrainingData:
    """What a run trains on and is judged by.

    Args:
        dataset: its training part is what ranked lists hide; its test part is sealed.
        train: the positives, without false negatives that were taken out.
        false_negatives: for the noise setting.
    """

    dataset: Dataset
    train: Interactions
    false_negatives: Interactions | None = None


def load_dataset(config: RunConfig, given: Interactions | Dataset | None = None) -> Dataset:
    """The data of a run, with its validation part.

    Args:
        config: says where they are, and how they are divided.
        given: taken instead, where they are in memory already; of interactions nothing is kept back for a test part.
    """
    section = config.data
    loaded = load(section.source, repair=section.repair) if given is None else given
    if isinstance(loaded, Interactions):
        if section.minimum_rating is not None or section.k_core:
            loaded = prepare(loaded, Preparation(section.minimum_rating, section.k_core))
        loaded = _untested(loaded) if given is not None else _split(loaded, section)
    else:
        _check_nothing_to_split(section)
    return _carved(merge_repetitions(loaded), config)


def _carved(dataset: Dataset, config: RunConfig) -> Dataset:
    section = config.data
    rule = config.resolved().data.validation or "none"
    return carve_validation(dataset, rule, split=section.split, seed=section.validation_seed)


def _split(interactions: Interactions, section: DataSection) -> Dataset:
    dataset = split_by_name(
        interactions, section.split, train_fraction=section.train_fraction, seed=section.split_seed
    )
    return replace(dataset, name=Path(section.source).stem)


def _untested(interactions: Interactions) -> Dataset:
    return Dataset(interactions, interactions.select(np.zeros(0, dtype=np.int64)), name="memory")


def _check_nothing_to_split(section: DataSection) -> None:
    defaults = DataSection()
    for name in ("split", "train_fraction", "split_seed", "minimum_rating", "k_core"):
        if getattr(section, name) != getattr(defaults, name):
            raise ConfigError(
                f"`data.{name}` has no effect on {section.source}, which comes split; leave it out"
            )


def load_training_data(
    config: RunConfig, given: Interactions | Dataset | None = None
) -> TrainingData:
    """The data of a run, its test part sealed, false negatives declared where the noise setting asks for them.

    Args:
        config: of the run.
        given: as in `load_dataset`.
    """
    noise = config.sampling.noise
    if noise.probability == 0:
        dataset = _sealed(load_dataset(config, given))
        return TrainingData(dataset, dataset.train)
    if noise.before_validation:
        whole = load_dataset(
            RunConfig.from_settings({"data.validation": "none"}, base=config), given
        )
        planted = _planted(whole.train, noise)
        dataset = _carved(replace(whole, train=planted.train), config)
    else:
        dataset = load_dataset(config, given)
        planted = _planted(dataset.train, noise)
        dataset = replace(dataset, train=planted.train)
    train, false_negatives = dataset.train, planted.false_negatives
    if noise.hide_at_test and not noise.keep_positives:
        dataset = replace(dataset, train=concatenate([train, false_negatives]))
    return TrainingData(_sealed(dataset), train, false_negatives)


def with_validation(data: TrainingData) -> TrainingData:
    """The same with the validation part trained on as well."""
    dataset = data.dataset
    if dataset.validation is None:
        raise ConfigError(
            "`training.refit` trains on the validation part as well, and there is none; set `data.validation` to fraction"
        )
    return TrainingData(
        replace(dataset, train=concatenate([dataset.train, dataset.validation]), validation=None),
        concatenate([data.train, dataset.validation]),
        data.false_negatives,
    )


def _planted(train: Interactions, noise: NoiseSection) -> FalseNegatives:
    return plant_false_negatives(
        train,
        fraction=noise.fraction,
        scope=noise.scope,
        keep_positives=noise.keep_positives,
        seed=noise.seed,
    )


def _sealed(dataset: Dataset) -> Dataset:
    return replace(dataset, test=SealedInteractions.of(dataset.test))
