"""The data of a run: loaded, split, the test part sealed, false negatives planted."""

import logging
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pslrec.artifacts import RunDirectory, check_parts
from pslrec.config import DataSection, NoiseSection, RunConfig, without_retired
from pslrec.data import (
    Dataset,
    Interactions,
    Preparation,
    SealedInteractions,
    concatenate,
    disliked_pairs,
    load,
    merge_repetitions,
    prepare,
    warn_of_low_ratings,
)
from pslrec.data.formats import ReadOptions
from pslrec.data.large import Plan, can_be_out_of_core, is_large, prepared_dataset
from pslrec.data.splits import ValidationRule, carve_validation, split_by_name
from pslrec.errors import ConfigError
from pslrec.sampling import FalseNegatives, plant_false_negatives

logger = logging.getLogger(__name__)


def stored_config(directory: RunDirectory) -> RunConfig:
    """The settings that a run was started with.

    Raises:
        UnknownNameError: a part from outside of pslrec is not at hand; says what to install.
    """
    settings = directory.read_config()
    # Before the names are looked up: the registry knows no more than that they are unknown.
    check_parts(directory.path, settings)
    # What it trained is in its files, whatever the settings were called then.
    return RunConfig.checked(without_retired(settings))


@dataclass(frozen=True)
class TrainingData:
    """What a run trains on and is evaluated by.

    Args:
        dataset: ranked lists hide its training part; its test part is sealed.
        train: the positives, without planted false negatives that were removed from them.
        false_negatives: the planted ones, for the noise setting.
    """

    dataset: Dataset
    train: Interactions
    false_negatives: Interactions | None = None


def load_dataset(
    config: RunConfig, given: Interactions | Dataset | None = None, *, is_shared: bool = False
) -> Dataset:
    """Load the data of a run and carve out its validation part.

    Args:
        config: says where the data are and how they are divided.
        given: data that are in memory already, used instead of `data.source`; interactions are
            used for training as a whole, without a test part.
        is_shared: several processes read the same data. Then these are prepared once and mapped by
            all: each reads what it needs, and the system holds it once for all of a machine.
    """
    if given is None and _is_out_of_core(config.data, is_shared=is_shared):
        return _prepared(config.data, _validation_rule(config))
    return _carved(_load_without_validation(config, given, is_shared=is_shared), config)


def _is_out_of_core(section: DataSection, *, is_shared: bool) -> bool:
    if section.out_of_core == "auto":
        may_be = is_shared and can_be_out_of_core(section.source)
        return may_be or is_large(section.source)
    return section.out_of_core == "on" and can_be_out_of_core(section.source)


def _prepared(section: DataSection, validation: ValidationRule) -> Dataset:
    """The data set as `load`, `prepare` and the split would give it, mapped from files."""
    reading = section.reading()
    preparation = None
    if section.minimum_rating is not None or section.k_core:
        preparation = Preparation(section.minimum_rating, section.k_core)
    plan = Plan(
        section.source,
        ReadOptions(
            reading["columns"], section.separator, section.header, encoding=section.encoding
        ),
        section.format,
        preparation,
        split=section.split,
        train_fraction=section.train_fraction,
        split_seed=section.split_seed,
        validation=validation,
        validation_seed=section.validation_seed,
    )
    dataset = prepared_dataset(plan, name=Path(section.source).stem)
    return replace(dataset, divided_by=section.split)


def _load_without_validation(
    config: RunConfig, given: Interactions | Dataset | None, *, is_shared: bool
) -> Dataset:
    section = config.data
    if given is None and _is_out_of_core(section, is_shared=is_shared):
        return _prepared(section, "none")
    loaded = given
    if loaded is None:
        loaded = load(section.source, repair=section.repair, **section.reading())
        if section.out_of_core == "on":
            # Ignoring it would look as if it had worked.
            raise ConfigError(
                f"`data.out_of_core` has no effect on {section.source}, which comes split or with "
                "pslrec; leave it out"
            )
    if isinstance(loaded, Dataset):
        _check_nothing_to_split(section)
        return merge_repetitions(loaded)
    disliked = None
    if section.minimum_rating is not None or section.k_core:
        log = loaded
        loaded = prepare(log, Preparation(section.minimum_rating, section.k_core))
        disliked = disliked_pairs(log, loaded, section.minimum_rating)
    if given is not None:
        # A caller who wants a test part splits the data and gives a `Dataset`.
        nothing = loaded.select(np.zeros(0, dtype=np.int64))
        return merge_repetitions(Dataset(loaded, nothing, name="memory", disliked=disliked))
    dataset = split_by_name(
        loaded, section.split, train_fraction=section.train_fraction, seed=section.split_seed
    )
    told = replace(
        dataset, name=Path(section.source).stem, disliked=disliked, divided_by=section.split
    )
    return merge_repetitions(told)


def _carved(dataset: Dataset, config: RunConfig) -> Dataset:
    section = config.data
    rule = _validation_rule(config)
    return carve_validation(dataset, rule, split=section.split, seed=section.validation_seed)


def _validation_rule(config: RunConfig) -> ValidationRule:
    # Only a configuration that was never resolved has no rule.
    return config.data.validation or config.resolved().data.validation or "none"


def _check_nothing_to_split(section: DataSection) -> None:
    # Ignoring such a setting would look as if it had worked.
    defaults = DataSection()
    for name in ("split", "train_fraction", "split_seed", "minimum_rating", "k_core"):
        if getattr(section, name) != getattr(defaults, name):
            raise ConfigError(
                f"`data.{name}` has no effect on {section.source}, which is already split; "
                "leave it out"
            )


def load_training_data(
    config: RunConfig, given: Interactions | Dataset | None = None, *, is_shared: bool = False
) -> TrainingData:
    """Load the data of a run, seal the test part, and plant false negatives if there is noise.

    Args:
        config: says where the data are, how they are divided, and how much noise there is.
        given: data that are in memory already, as in `load_dataset`.
        is_shared: as in `load_dataset`.
    """
    noise = config.sampling.noise
    if noise.probability == 0:
        dataset = _sealed(load_dataset(config, given, is_shared=is_shared))
        if config.data.minimum_rating is None:
            warn_of_low_ratings(dataset.train)
        _warn_of_weights(dataset.train)
        return TrainingData(dataset, dataset.train)
    if noise.before_validation:
        # Validation pairs are then drawn from what planting left.
        whole = _load_without_validation(config, given, is_shared=is_shared)
        planted = _planted(whole.train, noise)
        dataset = _carved(replace(whole, train=planted.train), config)
    else:
        dataset = load_dataset(config, given, is_shared=is_shared)
        planted = _planted(dataset.train, noise)
        dataset = replace(dataset, train=planted.train)
    train = dataset.train
    false_negatives = planted.false_negatives
    if noise.hide_at_test and not noise.keep_positives:
        # Lists hide the training part of the data set, which is more than what is trained on.
        dataset = replace(dataset, train=concatenate([train, false_negatives]))
    return TrainingData(_sealed(dataset), train, false_negatives)


def _warn_of_weights(train: Interactions) -> None:
    """Say that weights change nothing, whether their column was named or found by its own name."""
    weights = train.weights
    if weights is None or len(weights) == 0 or weights.min() == weights.max():
        return
    logger.warning(
        "the weights of the interactions (from %g to %g) were read, but training does not use "
        "them: every pair of user and item counts the same",
        weights.min(),
        weights.max(),
    )


def with_validation(data: TrainingData) -> TrainingData:
    """The same data with the validation part moved into the training part.

    Args:
        data: must have a validation part.
    """
    dataset = data.dataset
    if dataset.validation is None:
        raise ConfigError(
            "`training.refit` trains on the validation part as well, and there is none; "
            "set `data.validation` to fraction"
        )
    hidden = concatenate([dataset.train, dataset.validation])
    return TrainingData(
        dataset=replace(dataset, train=hidden, validation=None),
        train=concatenate([data.train, dataset.validation]),
        false_negatives=data.false_negatives,
    )


def further_folds(data: TrainingData, config: RunConfig, n_folds: int) -> list[TrainingData]:
    """The same data with other validation parts, drawn by the same rule; the test part stays.

    Args:
        data: training and validation data are divided again.
        config: complete; says how the validation part was carved out.
        n_folds: how many.

    Returns:
        Nothing where the validation part was not drawn at random, or there is noise.
    """
    section = config.data
    rule = section.validation
    validation = data.dataset.validation
    if rule in (None, "none") or validation is None or data.false_negatives is not None:
        return []
    whole = with_validation(data).dataset

    def carved(seed: int) -> Dataset:
        return carve_validation(whole, rule, split=section.split, seed=seed)

    again = carved(section.validation_seed).validation
    if again is None or not np.array_equal(_pairs_of(again), _pairs_of(validation)):
        # It came with the data, perhaps from another time or place.
        return []
    folds = []
    for number in range(1, n_folds + 1):
        dataset = carved(section.validation_seed + number)
        fold = dataset.validation
        if fold is not None and not np.array_equal(_pairs_of(fold), _pairs_of(validation)):
            folds.append(TrainingData(dataset, dataset.train))
    return folds


def _pairs_of(part: Interactions) -> np.ndarray:
    return np.sort(part.pair_keys())


def _planted(train: Interactions, noise: NoiseSection) -> FalseNegatives:
    return plant_false_negatives(
        train,
        fraction=noise.fraction,
        scope=noise.scope,
        keep_positives=noise.keep_positives,
        seed=noise.seed,
    )


def _sealed(dataset: Dataset) -> Dataset:
    # A choice made on the test part raises, even by mistake.
    return replace(dataset, test=SealedInteractions.of(dataset.test))
