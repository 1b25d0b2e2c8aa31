"""The race of `auto`: a few settings are tried, and validation decides."""

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pslrec.config import RunConfig
from pslrec.data import Dataset
from pslrec.experiment._auto_rules import (
    FIRST_EXPONENTS,
    POPULARITY,
    RATE_OF_TRY,
    START,
    STARTS,
    options_of,
    scaled_rate,
    temperature_of,
)
from pslrec.experiment._evaluating import popularity_on_validation
from pslrec.experiment._inputs import TrainingData, further_folds
from pslrec.training import (
    Listener,
    SettingsTried,
    TrainingDivergedError,
    TrainingInterrupted,
    TryStarted,
)

logger = logging.getLogger(__name__)

# Where a whole training takes less than so many scores, about a second, tries are whole trainings on
# several validation parts: little data tell little. Elsewhere a try is a short training of about so
# many steps, and all tries together take no longer than the training that follows.
CHEAP_SCORES = 3e8
FURTHER_FOLDS = 2
STEPS_OF_TRY = 40
# 1 / temperature, in steps small enough that the best one is never missed by much. Whole numbers
# have a closed form for PSL-relu.
EXPONENTS = (2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40)
# Tries of a temperature at the most, which lead from the middle of the grid to its ends, and at the
# least where a training has few epochs.
MOST_TEMPERATURES = 8
FEWEST_TRIES = 4
# How much faster a second learning rate is than the backbone's. Short tries cannot tell it.
RATE_FACTOR = 3.0
# Fewer users than these cannot tell two settings apart.
FEWEST_USERS = 100
# What is tried of the shared part beside that of the rules, in turn.
LESS_POPULARITY = 0.0
MORE_POPULARITY = (0.6, 0.9)
# Where tries are short, more of it is tried only if nearly everything is popularity: if the same list
# for everybody has this share of the best value so far.
POPULARITY_ALONE = 0.6
# Dimensions of `best`, tried one after the other as long as they help.
DIMENSIONS = (64, 256, 512, 1024)


class Tried(NamedTuple):
    """Settings that were tried.

    Args:
        settings: those of the race, by dotted name.
        validation: NDCG on the validation part at the end of a short training.
        seconds: what it took.
    """

    settings: dict[str, Any]
    validation: float
    seconds: float


class Raced(NamedTuple):
    """How a race has ended.

    Args:
        settings: those of the rules, with what was chosen.
        tries: in the order in which they were made.
        remarks: where the highest value was not taken, and why; what else may be worth a try.
    """

    settings: dict[str, Any]
    tries: list[Tried]
    remarks: list[str]


def short_description(settings: Mapping[str, Any]) -> str:
    """Settings in words, without the names of their sections.

    Args:
        settings: by dotted name.

    >>> short_description({"loss.temperature": 0.1, "training.epochs": 12})
    'temperature 1/10, epochs 12'
    """
    return ", ".join(described(name, value) for name, value in settings.items())


def described(name: str, value: Any) -> str:
    """One setting in words.

    Args:
        name: dotted.
        value: of the setting.
    """
    short = name.rpartition(".")[2].replace("_", " ")
    if name == "backbone.name":
        return f"backbone {value}"
    if short.endswith("temperature"):
        return f"{short} 1/{1 / value:g}"
    if isinstance(value, float):
        return f"{short} {value:g}"
    return f"{short} {value}"


# Trains with complete settings and returns the value on validation of every user.
TryOut = Callable[[RunConfig, TrainingData], np.ndarray]


class Race:
    """Tries temperatures, a learning rate, and dimensions where these are searched.

    Args:
        config: as it was given.
        data: what is trained on, with a validation part.
        rules: what rules say of settings that were left open.
        try_out: trains and validates once.
        listeners: are told what is tried.
    """

    def __init__(
        self,
        config: RunConfig,
        data: TrainingData,
        rules: dict[str, Any],
        try_out: TryOut,
        listeners: Sequence[Listener],
    ) -> None:
        self._config = config
        self._given = config.given()
        self._try_out = try_out
        self._listeners = listeners
        self._settings = dict(rules)
        self._tries: list[Tried] = []
        self._remarks: list[str] = []
        self._plan = plan_of(self._complete({}), data)
        self._tries_left = self._plan.n_tries
        # Of the settings as they stand.
        self._best = -math.inf
        # The same by a whole training, once there was one.
        self._best_whole: float | None = None
        # The values of all users in the last try.
        self._by_user = np.zeros(1)

    def _complete(self, settings: Mapping[str, Any]) -> RunConfig:
        everything = {**self._settings, **settings, "auto.mode": "off"}
        return RunConfig.from_settings(everything, base=self._config).resolved()

    def run(self) -> Raced:
        """Make all tries, unless nothing is left open."""
        temperature = temperature_of(self._config, self._given)
        if temperature is not None:
            self._race_temperature(temperature)
        if self._plan.is_thorough:
            self._race_rate()
        self._race_popularity()
        if self._plan.is_thorough:
            self._race_backbones()
        if self._config.auto.mode == "best":
            if "backbone.dimension" not in self._given:
                self._race_dimension()
            if temperature is not None and not self._plan.is_thorough:
                self._look_at_neighbours(temperature)
            self._race_hidden()
        return Raced(self._settings, self._tries, self._remarks)

    def _race_temperature(self, name: str) -> None:
        """Walk from the middle of the grid in the direction in which validation improves."""
        values: dict[int, float] = {}
        by_user: dict[int, np.ndarray] = {}
        others = self._raced_dimension()

        def value_of(place: int) -> float:
            if place not in values:
                values[place] = self._try({**others, name: 1 / EXPONENTS[place]})
                by_user[place] = self._by_user
            return values[place]

        low, high = (EXPONENTS.index(exponent) for exponent in FIRST_EXPONENTS)
        step = -1
        best = low
        if value_of(high) > value_of(low):
            step = 1
            best = high
        # The last try is left for popularity.
        while self._tries_left > 1 and len(values) < MOST_TEMPERATURES:
            place = best + step
            if not 0 <= place < len(EXPONENTS) or value_of(place) <= value_of(best):
                break
            best = place
        if not self._plan.is_thorough:
            # Neighbours are told apart only roughly; where chance may have put them in order, the
            # higher temperature learns less by heart.
            alike = _highest_alike(best, by_user)
            if alike != best:
                leader = short_description({**others, name: 1 / EXPONENTS[best]})
                self._remarks.append(f"{leader} led by less than the standard error")
            best = alike
        self._settings[name] = 1 / EXPONENTS[best]
        self._best = values[best]

    def _raced_dimension(self) -> dict[str, Any]:
        """The dimension, which is told with every try where dimensions are raced."""
        name = "backbone.dimension"
        return {key: value for key, value in self._settings.items() if key == name}

    def _race_rate(self) -> None:
        name = "training.learning_rate"
        if name in self._given:
            return
        slow = self._settings[name]
        fast = float(f"{slow * RATE_FACTOR:.3g}")
        if not self._tries:
            # Without a temperature nothing has been tried yet.
            self._best = self._try({name: slow})
        self._take_if_better({name: fast})

    def _take_if_better(self, settings: dict[str, Any]) -> bool:
        value = self._try(settings)
        is_better = value > self._best
        if is_better:
            self._best = value
            self._settings |= settings
        return is_better

    def _race_popularity(self) -> None:
        """Whether users should share less of their vectors or more."""
        name = "backbone.popularity"
        if name not in self._settings:
            return
        if not self._tries:
            self._best = self._try({name: POPULARITY})
        is_without = self._take_if_better({name: LESS_POPULARITY})
        if is_without or not (self._plan.is_thorough or self._is_all_popularity()):
            return
        for more in MORE_POPULARITY:
            if not self._take_if_better({name: more}):
                return

    def _is_all_popularity(self) -> bool:
        alone = popularity_on_validation(self._complete({}), self._plan.folds[0].dataset)
        return alone >= POPULARITY_ALONE * self._best

    def _race_backbones(self) -> None:
        for name in self._config.auto.backbones:
            allowed = options_of(name)
            if not set(self._config.backbone.options()) <= allowed:
                # Options were given that this backbone does not have.
                continue
            before = dict(self._settings)
            if "popularity" not in allowed:
                self._settings.pop("backbone.popularity", None)
            tried = {"backbone.name": name}
            if "backbone.initialization" in self._settings:
                tried["backbone.initialization"] = STARTS.get(name, START)
            if not self._take_if_better(tried):
                self._settings = before

    def _race_dimension(self) -> None:
        """Whole trainings: more dimensions learn more slowly at first, and may end higher.

        Each has a temperature of its own, so it is raced again for every dimension but the first.
        """
        best = -math.inf
        # Those of the rules or those given.
        epochs = self._complete({}).training.epochs
        rate = self._settings.get("training.learning_rate")
        temperature = temperature_of(self._config, self._given)
        kept = dict(self._settings)
        for dimension in DIMENSIONS:
            tried: dict[str, Any] = {"backbone.dimension": dimension}
            if rate is not None:
                tried["training.learning_rate"] = scaled_rate(rate, dimension)
            self._settings |= tried
            if temperature is not None and dimension != DIMENSIONS[0]:
                self._tries_left = self._plan.n_tries
                self._race_temperature(temperature)
                tried[temperature] = self._settings[temperature]
            value = self._try(tried, epochs=epochs)
            if value <= best:
                break
            best = value
            kept = dict(self._settings)
        self._settings = kept
        self._best_whole = best

    def _look_at_neighbours(self, temperature: str) -> None:
        """Take the next higher temperature, or else the next lower, if whole trainings prefer it.

        Short tries find the neighbourhood. Which of two neighbours ends higher shows at the end.
        """
        epochs = self._complete({}).training.epochs
        dimension = self._raced_dimension()
        present = self._settings[temperature]
        best = self._value_of_whole({**dimension, temperature: present}, epochs)
        place = EXPONENTS.index(round(1 / present))
        for neighbour in (place - 1, place + 1):
            if not 0 <= neighbour < len(EXPONENTS):
                continue
            setting = {temperature: 1 / EXPONENTS[neighbour]}
            found = self._try({**dimension, **setting}, epochs=epochs)
            if found > best:
                self._settings |= setting
                self._best_whole = found
                return

    def _value_of_whole(self, settings: dict[str, Any], epochs: int | str) -> float:
        """The value of the settings as they stand, by a whole training, which is made only once.

        Args:
            settings: how the try is recorded, if one is needed.
            epochs: of a whole training.
        """
        if self._best_whole is None:
            self._best_whole = self._try(settings, epochs=epochs)
        return self._best_whole

    def _race_hidden(self) -> None:
        """Whether to predict the hidden part of histories alone, which takes twice as long.

        It shows only at the end of a training, so both tries are whole ones.
        """
        config = self._complete({})
        is_open = "backbone.predicts" not in self._given and "training.epochs" in self._settings
        if not is_open or config.backbone.options().get("predicts") != "all":
            return
        epochs = self._settings["training.epochs"]
        best = self._value_of_whole({"backbone.predicts": "all"}, epochs)
        longer = {"backbone.predicts": "hidden", "training.epochs": 2 * epochs}
        if self._try(longer, epochs=2 * epochs) > best:
            self._settings |= longer

    def _try(self, settings: dict[str, Any], *, epochs: int | str | None = None) -> float:
        """The value of settings on validation: of a training of so many epochs, or of a short one."""
        is_short = epochs is None and not self._plan.is_thorough
        overrides: dict[str, Any] = {"training.refit": False}
        if epochs is None:
            # Walks and a regression help vectors that are not trained to the end more than those that
            # are.
            overrides["walks.weight"] = 0.0
            overrides["walks.regression"] = 0.0
            # One look at the end is all that is needed, and nothing is to be stopped early.
            overrides["training.epochs"] = self._plan.epochs
            overrides["training.validate_every"] = self._plan.epochs
            overrides["training.patience"] = 0
        else:
            # Made as the training that follows will be, whose best epoch counts. More dimensions
            # may be at their best long before the end.
            overrides["training.epochs"] = epochs
        config = self._complete({**settings, **overrides})
        if is_short:
            faster = {"training.learning_rate": RATE_OF_TRY * config.training.learning_rate}
            config = self._complete({**settings, **overrides, **faster})
        self._tell_start(settings)
        started = time.perf_counter()
        try:
            outcomes = [self._try_out(config, fold) for fold in self._plan.folds]
        except TrainingInterrupted:
            raise TrainingInterrupted(
                "stopped while auto was choosing settings, which starts over"
            ) from None
        except TrainingDivergedError as error:
            # Worse than anything that ranks, and no reason to give up the others.
            logger.warning("auto tried %s: %s", short_description(settings), error)
            outcomes = [np.zeros(1)]
        value = float(np.mean([outcome.mean() for outcome in outcomes]))
        self._by_user = outcomes[0]
        tried = Tried(settings, value, time.perf_counter() - started)
        self._tries.append(tried)
        self._tries_left -= 1
        for listener in self._listeners:
            listener(SettingsTried(short_description(settings), value, tried.seconds))
        return value

    def _tell_start(self, settings: Mapping[str, Any]) -> None:
        n_tries = self._plan.n_tries
        if self._config.auto.mode == "best":
            # Every dimension has a race of its own, and the next one depends on the last.
            n_tries = 0
        event = TryStarted(
            short_description(settings), len(self._tries) + 1, n_tries, len(self._plan.folds)
        )
        for listener in self._listeners:
            listener(event)


def _highest_alike(best: int, by_user: Mapping[int, np.ndarray]) -> int:
    """The highest temperature whose users do as well as those of the best one, up to chance.

    Chance is one standard error of the mean difference, user by user.

    Args:
        best: place of the best temperature in the grid.
        by_user: the values of all users, by place; lower places are higher temperatures.
    """
    highest = best
    while highest - 1 in by_user:
        leads = by_user[best] - by_user[highest - 1]
        standard_error = leads.std() / math.sqrt(len(leads))
        if leads.mean() > standard_error:
            break
        highest -= 1
    return highest


class Plan(NamedTuple):
    """How a race is made.

    Args:
        epochs: of each try.
        folds: the data of each try, whose values are averaged.
        n_tries: how many may be made before dimensions are tried.
        is_thorough: tries are whole trainings, so that they tell how training ends.
    """

    epochs: int
    folds: list[TrainingData]
    n_tries: int
    is_thorough: bool


def plan_of(config: RunConfig, data: TrainingData) -> Plan:
    """How much a race may cost, by the size of the data.

    Args:
        config: complete.
        data: what is trained on.
    """
    n_steps = math.ceil(max(len(data.train), 1) / config.sampling.batch_pairs)
    epochs = config.training.trainer_options(n_steps).epochs
    n_scores = data.train.n_users * data.train.n_items * epochs
    if n_scores <= CHEAP_SCORES:
        folds = [data, *further_folds(data, config, FURTHER_FOLDS)]
        # Temperatures, a learning rate, popularities, and the other backbones.
        n_others = 2 + len(MORE_POPULARITY) + len(config.auto.backbones)
        n_tries = MOST_TEMPERATURES + n_others
        return Plan(epochs, folds, n_tries, is_thorough=True)
    short = min(math.ceil(STEPS_OF_TRY / n_steps), epochs)
    return Plan(short, [data], max(epochs // short, FEWEST_TRIES), is_thorough=False)


def folds_of_little_data(config: RunConfig, data: TrainingData) -> list[TrainingData]:
    """Other validation parts of data that are cheap to train on: a single small part tells little.

    Args:
        config: complete; where nothing is raced there are none.
        data: what is trained on.
    """
    if config.auto.mode not in ("on", "best") or why_no_race(data.dataset):
        return []
    return plan_of(config, data).folds[1:]


def why_no_race(dataset: Dataset) -> str:
    """Why nothing can be chosen on the validation part; empty if something can.

    Args:
        dataset: that is trained on.
    """
    validation = dataset.validation
    if validation is None or not len(validation):
        return "there is no validation part to choose by"
    n_users = int((validation.user_counts() > 0).sum())
    if n_users < FEWEST_USERS:
        return f"the validation part has {n_users} users, too few to tell settings apart"
    return ""
