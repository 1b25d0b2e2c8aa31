"""Settings of `auto` that follow from the data without any training."""

import math
from typing import Any

from pslrec.backbones import BACKBONES
from pslrec.checks import whole_number
from pslrec.config import RunConfig
from pslrec.experiment._inputs import TrainingData
from pslrec.losses import LOSSES
from pslrec.registry import constructor_parameters

START = "spectral:2"
STARTS = {"mf": "spectral:3"}
# An epoch should have about so many steps: enough for the step size not to matter much, and no more
# than needed, as every step moves whole tables.
STEPS_PER_EPOCH = 40
SMALLEST_BATCH = 256
LARGEST_BATCH = 4096
# A training needs so many steps, and so many looks at every pair.
STEPS = 400
FEWEST_EPOCHS = 12
MOST_EPOCHS = 40
# Plenty of data, so many pairs, keep teaching for longer, where others are learnt by heart. A training
# may still end early: after so many epochs without a better one.
PAIRS_OF_PLENTY = 200_000
EPOCHS_OF_PLENTY = 20
RATE_OF_PLENTY = 1.5
PATIENCE = 5
# A short try goes so many times faster than a training: at the same rate it would show what learns
# quickly, not what ends well.
RATE_OF_TRY = 3.0
# `fast` is a single try, of so many steps and so many looks at every pair.
STEPS_OF_FAST = 120
EPOCHS_OF_FAST = 3
# Of plenty of data it looks at so many pairs, twice at each at least. Steps are larger there, as every
# step moves whole tables.
PAIRS_OF_FAST = 1_000_000
FEWEST_EPOCHS_OF_FAST = 2
STEPS_PER_EPOCH_OF_FAST = 60
LARGEST_BATCH_OF_FAST = 8192
# 1 / temperature: a race begins with these; without one, plenty of data take the second.
FIRST_EXPONENTS = (12, 16)
# How much of a user's vector all users share.
POPULARITY = 0.3
# Options of a loss that are raced, if it has one of them.
TEMPERATURES = ("temperature", "negative_temperature")


def ruled_settings(config: RunConfig, data: TrainingData) -> dict[str, Any]:
    """The settings that follow from the data without any training; given ones are left out.

    Args:
        config: as it was given, not resolved; with `auto.mode` fast, training is short.
        data: what is trained on.
    """
    given = config.given()
    n_pairs = max(len(data.train), 1)
    is_plenty = n_pairs >= PAIRS_OF_PLENTY
    is_fast = config.auto.mode == "fast"
    options = config.resolved().backbone.options()
    # The learning rate follows from it before a backbone is built, which would check it.
    dimension = whole_number("dimension", options.get("dimension", 64))
    rate = BACKBONES[config.backbone.name].auto_rate
    if is_plenty:
        rate *= RATE_OF_PLENTY
    if is_fast:
        rate *= RATE_OF_TRY
    batch_pairs, epochs = _ruled_length(config, given, n_pairs)
    settings = {
        "sampling.negatives": "auto",
        "sampling.batch_pairs": batch_pairs,
        "training.learning_rate": scaled_rate(rate, dimension),
        "training.schedule": "cosine",
        "training.epochs": epochs,
        "training.validate_every": 1,
        "training.patience": PATIENCE,
        # After training, as they are weighed against its vectors.
        "walks.weight": "auto",
    }
    # Whoever gives a weight of walks, such as 0 for vectors alone, wants nothing else beside it.
    if "walks.weight" not in given or config.walks.weight == "auto":
        settings["walks.regression"] = "auto"
    loss = LOSSES[config.loss.name]
    if loss.initialization is None:
        settings["backbone.initialization"] = STARTS.get(config.backbone.name, START)
    if "popularity" in options_of(config.backbone.name):
        settings["backbone.popularity"] = POPULARITY
    temperature = temperature_of(config, given)
    if is_fast and temperature is not None:
        settings[temperature] = 1 / FIRST_EXPONENTS[int(is_plenty)]
    return {name: value for name, value in settings.items() if name not in given}


def _ruled_length(config: RunConfig, given: set[str], n_pairs: int) -> tuple[int, int]:
    """Pairs of a step, which may be given, and epochs."""
    is_fast = config.auto.mode == "fast"
    is_short = is_fast and n_pairs >= PAIRS_OF_PLENTY
    batch_pairs = batch_for(n_pairs)
    if is_short:
        batch_pairs = batch_for(n_pairs, STEPS_PER_EPOCH_OF_FAST, LARGEST_BATCH_OF_FAST)
    if "sampling.batch_pairs" in given:
        batch_pairs = config.sampling.batch_pairs
    n_steps = math.ceil(n_pairs / batch_pairs)
    epochs = epochs_for(n_steps, n_pairs)
    if is_short:
        epochs = max(math.ceil(PAIRS_OF_FAST / n_pairs), FEWEST_EPOCHS_OF_FAST)
    elif is_fast:
        epochs = min(epochs, max(math.ceil(STEPS_OF_FAST / n_steps), EPOCHS_OF_FAST))
    if config.resolved().backbone.options().get("predicts") == "hidden":
        # About half as many positives per epoch.
        epochs *= 2
    return batch_pairs, epochs


def batch_for(n_pairs: int, n_steps: int = STEPS_PER_EPOCH, largest: int = LARGEST_BATCH) -> int:
    """Pairs of a step: a power of two.

    Args:
        n_pairs: of an epoch.
        n_steps: that an epoch should have, about.
        largest: more steps are made rather than larger ones.

    >>> [batch_for(n_pairs) for n_pairs in (2_000, 34_000, 165_000, 10_000_000)]
    [256, 1024, 4096, 4096]
    """
    wanted = max(n_pairs / n_steps, 1.0)
    power_of_two: int = 2 ** round(math.log2(wanted))
    return min(max(power_of_two, SMALLEST_BATCH), largest)


def epochs_for(n_steps: int, n_pairs: int) -> int:
    """Epochs of a training on so many pairs, whose epochs have so many steps.

    >>> epochs_for(8, 2_000), epochs_for(34, 34_000), epochs_for(180, 740_000)
    (40, 12, 20)
    """
    if n_pairs >= PAIRS_OF_PLENTY:
        return EPOCHS_OF_PLENTY
    return min(max(math.ceil(STEPS / n_steps), FEWEST_EPOCHS), MOST_EPOCHS)


def scaled_rate(rate: float, dimension: int) -> float:
    """The learning rate by which a row turns as far per step as `rate` turns one of 64 columns.

    Adam moves every entry by about the rate, and so a row by the rate times the root of the number
    of its columns.

    >>> scaled_rate(0.004, 256)
    0.002
    """
    return float(f"{rate * math.sqrt(64 / dimension):.3g}")


def temperature_of(config: RunConfig, given: set[str]) -> str | None:
    """The setting of the loss's temperature, if it has one that was left open.

    Args:
        config: names the loss.
        given: settings that were given.
    """
    options = {parameter.name for parameter in constructor_parameters(LOSSES[config.loss.name])}
    for name in TEMPERATURES:
        if name in options:
            setting = f"loss.{name}"
            return None if setting in given else setting
    return None


def options_of(backbone: str) -> set[str]:
    """Names of the options of a backbone.

    Args:
        backbone: its name.
    """
    return {parameter.name for parameter in constructor_parameters(BACKBONES[backbone])}
