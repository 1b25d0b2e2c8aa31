"""Settings that `auto` finds: by rules, and by a race whose answers are planted here."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pslrec.backbones import BACKBONES
from pslrec.baselines import BASELINES
from pslrec.config import RunConfig, preset_settings
from pslrec.data import Dataset, SealedInteractions
from pslrec.data._synthetic import TasteModel, planted_tastes
from pslrec.data.splits import split_by_name
from pslrec.errors import ConfigError
from pslrec.evaluation import evaluate
from pslrec.experiment import MemoryStore, TrainingData, _running, load_training_data
from pslrec.experiment import _auto_race as racing
from pslrec.experiment import _auto_rules as rules
from pslrec.experiment._auto import choose_settings as choose_by_users
from pslrec.experiment._auto_race import EXPONENTS, RATE_FACTOR, plan_of
from pslrec.experiment._auto_rules import (
    RATE_OF_TRY,
    batch_for,
    epochs_for,
    ruled_settings,
    scaled_rate,
)
from pslrec.experiment._evaluating import popularity_on_validation
from pslrec.experiment._inputs import further_folds
from pslrec.experiment._running import build_trainer, prepare_run
from pslrec.experiment._walking import with_walks
from pslrec.training import SettingsChosen, SettingsTried, TrainingDivergedError

# Values by exponent, 1 / temperature.
Values = Callable[[float], float]


def choose_settings(config: RunConfig, data: TrainingData, try_out: Any, **options: Any) -> Any:
    """The choice among tries that answer with one number, as if there were one user."""

    def by_user(config: RunConfig, fold: TrainingData) -> np.ndarray:
        return np.array([try_out(config, fold)])

    return choose_by_users(config, data, by_user, **options)


def open_config(preset: str = "auto", **settings: Any) -> RunConfig:
    named = {name.replace("__", "."): value for name, value in settings.items()}
    parts = {"loss": named.get("loss.name"), "backbone": named.get("backbone.name")}
    return RunConfig.from_settings({**preset_settings(preset, **parts), **named})


def split_tastes(n_users: int = 150) -> Dataset:
    model = TasteModel(n_topics=4, median_history=12, minimum_history=8)
    return split_by_name(planted_tastes(n_users, 80, model=model, seed=3).interactions, "iid")


def loaded(n_users: int = 150, **settings: Any) -> TrainingData:
    return load_training_data(open_config(**settings).resolved(), split_tastes(n_users))


@pytest.fixture(scope="module")
def data() -> TrainingData:
    return loaded()


@pytest.fixture
def short_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Data on which a whole training is expensive, so that tries are short."""
    monkeypatch.setattr(racing, "CHEAP_SCORES", 0.0)


class Planted:
    """Answers instead of trainings, by the temperature, the learning rate and the backbone."""

    def __init__(self, values: Values, *, fast: float = 0.0, backbones: Any = None) -> None:
        self.values = values
        self.fast = fast
        self.backbones = backbones or {}
        self.configs: list[RunConfig] = []
        self.folds: list[TrainingData] = []

    def __call__(self, config: RunConfig, fold: TrainingData) -> float:
        self.configs.append(config)
        self.folds.append(fold)
        value = self.values(1 / config.loss.options()["temperature"])
        slowest = BACKBONES[config.backbone.name].auto_rate
        if config.training.learning_rate > 2 * slowest:
            value *= 1 + self.fast
        return value * self.backbones.get(config.backbone.name, 1.0)


def peak_at(exponent: float) -> Values:
    return lambda tried: 1 / (1 + abs(math.log(tried / exponent)))


def test_an_epoch_has_about_forty_steps_within_bounds() -> None:
    assert batch_for(1) == batch_for(40 * 256) == 256
    assert batch_for(40 * 512) == 512
    assert batch_for(40 * 4096) == batch_for(10**9) == 4096
    for n_pairs in (20_000, 60_000, 100_000):
        assert 40 / math.sqrt(2) <= n_pairs / batch_for(n_pairs) <= 40 * math.sqrt(2)


def test_there_are_steps_enough_and_neither_too_few_nor_too_many_epochs() -> None:
    n_pairs = 50_000
    assert epochs_for(1, n_pairs) == epochs_for(10, n_pairs) == 40
    assert epochs_for(20, n_pairs) == 400 / 20
    assert epochs_for(34, n_pairs) == epochs_for(199, n_pairs) == 12


def test_plenty_of_data_are_learnt_from_for_longer_and_faster(
    data: TrainingData, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert epochs_for(49, 200_000) == epochs_for(10**6, 10**9) == rules.EPOCHS_OF_PLENTY
    rate = ruled_settings(open_config(), data)["training.learning_rate"]
    monkeypatch.setattr(rules, "PAIRS_OF_PLENTY", 1)
    settings = ruled_settings(open_config(), data)
    assert settings["training.epochs"] == rules.EPOCHS_OF_PLENTY
    assert settings["training.learning_rate"] == pytest.approx(rules.RATE_OF_PLENTY * rate)


def test_a_rate_falls_with_the_root_of_the_dimension() -> None:
    assert scaled_rate(0.01, 64) == 0.01
    assert scaled_rate(0.01, 256) == 0.01 / 2
    assert scaled_rate(0.01, 16) == 0.01 * 2


def test_predicting_the_hidden_part_takes_twice_as_many_epochs(data: TrainingData) -> None:
    both = [
        ruled_settings(open_config(backbone__predicts=predicts), data)["training.epochs"]
        for predicts in ("all", "hidden")
    ]
    assert both[1] == 2 * both[0]


def test_fast_is_one_try_of_enough_steps(data: TrainingData) -> None:
    whole = ruled_settings(open_config(), data)
    fast = ruled_settings(open_config("fast"), data)
    n_steps = math.ceil(len(data.train) / fast["sampling.batch_pairs"])
    assert fast["training.epochs"] == math.ceil(rules.STEPS_OF_FAST / n_steps)
    assert rules.EPOCHS_OF_FAST < fast["training.epochs"] < whole["training.epochs"]
    expected = RATE_OF_TRY * whole["training.learning_rate"]
    assert fast["training.learning_rate"] == pytest.approx(expected)
    assert fast["walks.weight"] == "auto"


def test_fast_looks_at_every_pair_a_few_times_where_an_epoch_is_long(data: TrainingData) -> None:
    fast = ruled_settings(open_config("fast", sampling__batch_pairs=4), data)
    assert fast["training.epochs"] == rules.EPOCHS_OF_FAST


def test_fast_looks_at_a_million_pairs_of_plenty_of_data(
    data: TrainingData, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "PAIRS_OF_PLENTY", 1)
    monkeypatch.setattr(rules, "PAIRS_OF_FAST", 5 * len(data.train))
    assert ruled_settings(open_config("fast"), data)["training.epochs"] == 5
    # Twice at every pair at least.
    monkeypatch.setattr(rules, "PAIRS_OF_FAST", 1)
    assert ruled_settings(open_config("fast"), data)["training.epochs"] == 2
    # It is about `fast` alone.
    assert ruled_settings(open_config(), data)["training.epochs"] == rules.EPOCHS_OF_PLENTY


def test_fast_makes_large_steps_on_plenty_of_data(
    data: TrainingData, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert batch_for(10**9, 60, 8192) == batch_for(60 * 8192, 60, 8192) == 8192
    monkeypatch.setattr(rules, "PAIRS_OF_PLENTY", 1)
    monkeypatch.setattr(rules, "STEPS_PER_EPOCH_OF_FAST", 1)
    monkeypatch.setattr(rules, "LARGEST_BATCH_OF_FAST", 300)
    name = "sampling.batch_pairs"
    assert ruled_settings(open_config("fast"), data)[name] == 300
    assert ruled_settings(open_config(), data)[name] < 300
    assert name not in ruled_settings(open_config("fast", sampling__batch_pairs=4), data)


def test_fast_takes_a_lower_temperature_on_plenty_of_data(
    data: TrainingData, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ruled_settings(open_config("fast"), data)["loss.temperature"] == 1 / 12
    monkeypatch.setattr(rules, "PAIRS_OF_PLENTY", 1)
    assert ruled_settings(open_config("fast"), data)["loss.temperature"] == 1 / 16
    given = open_config("fast", loss__temperature=0.2)
    assert "loss.temperature" not in ruled_settings(given, data)
    assert "loss.temperature" not in ruled_settings(open_config("fast", loss__name="bpr"), data)


def test_a_regression_is_looked_for_unless_vectors_or_walks_were_asked_for(
    data: TrainingData,
) -> None:
    name = "walks.regression"
    assert ruled_settings(open_config(), data)[name] == "auto"
    assert ruled_settings(open_config("best"), data)[name] == "auto"
    assert ruled_settings(open_config("fast"), data)[name] == "auto"
    # The default, said aloud.
    assert ruled_settings(open_config(walks__weight="auto"), data)[name] == "auto"
    # Vectors alone were asked for, or that many walks.
    assert name not in ruled_settings(open_config(walks__weight=0.0), data)
    assert name not in ruled_settings(open_config(walks__regression=2.0), data)


def test_fast_trains_nothing_before_the_training(data: TrainingData) -> None:
    planted = Planted(peak_at(12))
    config, choice = choose_settings(open_config("fast"), data, planted)
    assert not planted.configs
    assert config.resolved().backbone.name == "history"
    assert choice.sentence().endswith("; by rules alone, as `fast` makes no race")


def test_a_dimension_of_zero_was_divided_by(data: TrainingData) -> None:
    with pytest.raises(ConfigError, match="`dimension` must be a whole number of at least 1, got"):
        ruled_settings(open_config(backbone__dimension=0), data)


def test_everything_given_stays(data: TrainingData) -> None:
    given = {
        "backbone.dimension": 24,
        "backbone.initialization": "normal",
        "loss.temperature": 0.3,
        "sampling.batch_pairs": 300,
        "sampling.negatives": 7,
        "training.epochs": 3,
        "training.learning_rate": 0.05,
        "training.schedule": "linear",
        "training.validate_every": 2,
    }
    config = RunConfig.from_settings({**preset_settings("best"), **given, "auto.backbones": ()})
    planted = Planted(peak_at(40), fast=1.0)
    chosen, choice = choose_settings(config, data, planted)
    tree = chosen.model_dump()
    for name, value in given.items():
        section, _, setting = name.partition(".")
        assert tree[section][setting] == value
    assert not set(choice.settings) & set(given)
    for tried in planted.configs:
        assert tried.loss.options()["temperature"] == 0.3
        assert tried.training.learning_rate == 0.05


def test_where_all_that_is_raced_was_given_the_sentence_says_so(data: TrainingData) -> None:
    config = open_config(
        loss__temperature=0.1,
        training__learning_rate=0.01,
        backbone__popularity=0.1,
        auto__backbones=(),
    )
    planted = Planted(peak_at(12))
    _, choice = choose_settings(config, data, planted)
    assert not planted.configs
    assert "by rules alone, as all that is raced was given" in choice.sentence()


@pytest.mark.parametrize("exponent", [8, 10, 12, 16, 20, 24])
def test_the_race_walks_to_the_best_temperature(data: TrainingData, exponent: int) -> None:
    chosen, _ = choose_settings(open_config(), data, Planted(peak_at(exponent)))
    assert chosen.loss.options()["temperature"] == 1 / exponent


@pytest.mark.parametrize("exponent", [1, EXPONENTS[0], EXPONENTS[-1], 100])
def test_the_walk_goes_to_the_ends_of_the_grid(data: TrainingData, exponent: int) -> None:
    """It ended after five tries, while every one was better than the last."""
    chosen, _ = choose_settings(open_config(), data, Planted(peak_at(exponent)))
    nearest = min(EXPONENTS, key=lambda tried: abs(math.log(tried / exponent)))
    assert 1 / chosen.loss.options()["temperature"] == pytest.approx(nearest)


@pytest.mark.usefixtures("short_tries")
def test_the_walk_ends_with_the_tries_and_takes_the_best_of_them(data: TrainingData) -> None:
    planted = Planted(peak_at(40))
    config = open_config(training__epochs=1)
    chosen, _ = choose_settings(config, data, planted)
    temperatures = {config.loss.options()["temperature"] for config in planted.configs}
    assert len(temperatures) == racing.FEWEST_TRIES - 1
    assert chosen.loss.options()["temperature"] == min(temperatures)


@pytest.mark.usefixtures("short_tries")
@pytest.mark.parametrize("slope", [1e-5, -1e-5])
def test_in_short_tries_any_lead_of_a_temperature_counts(data: TrainingData, slope: float) -> None:
    planted = Planted(lambda tried: 0.1 + slope * tried)
    chosen, _ = choose_settings(open_config(), data, planted)
    exponent = 1 / chosen.loss.options()["temperature"]
    if slope > 0:
        assert exponent > max(rules.FIRST_EXPONENTS)
    else:
        assert exponent < min(rules.FIRST_EXPONENTS)


@pytest.mark.usefixtures("short_tries")
@pytest.mark.parametrize(
    ("lead", "noise", "taken"),
    [(0.01, 0.0, 16), (0.01, 0.05, 16), (0.01, 0.2, 12), (-0.01, 0.2, 12)],
)
def test_in_short_tries_a_lower_temperature_must_lead_by_more_than_chance(
    data: TrainingData, lead: float, noise: float, taken: int
) -> None:
    """A lead of 0.1 % took a temperature that whole trainings put 2 % behind."""
    n_users = 100
    signs = np.resize([1.0, -1.0], n_users)

    def try_out(config: RunConfig, fold: TrainingData) -> np.ndarray:
        exponent = round(1 / config.loss.options()["temperature"])
        if exponent == 12:
            return np.full(n_users, 0.5)
        if exponent == 16:
            # The standard error of the mean difference to 12 is a tenth of the noise.
            return 0.5 + lead + noise * signs
        return np.zeros(n_users)

    chosen, choice = choose_by_users(open_config(), data, try_out)
    assert 1 / chosen.loss.options()["temperature"] == pytest.approx(taken)
    is_said = "temperature 1/16 led by less than the standard error" in choice.sentence()
    assert is_said == (lead > 0 and taken == 12)


def test_in_whole_trainings_chance_is_left_to_several_validation_parts(data: TrainingData) -> None:
    def try_out(config: RunConfig, fold: TrainingData) -> np.ndarray:
        exponent = 1 / config.loss.options()["temperature"]
        return peak_at(16)(exponent) + np.array([5.0, -5.0])

    chosen, _ = choose_by_users(open_config(), data, try_out)
    assert 1 / chosen.loss.options()["temperature"] == pytest.approx(16)


@pytest.mark.usefixtures("short_tries")
@pytest.mark.parametrize("given", [None, 0.01])
def test_short_tries_learn_faster_and_choose_no_rate(
    data: TrainingData, given: float | None
) -> None:
    config = open_config()
    rate = ruled_settings(config, data)["training.learning_rate"]
    if given is not None:
        config = open_config(training__learning_rate=given)
        rate = given
    planted = Planted(peak_at(12), fast=1.0)
    chosen, _ = choose_settings(config, data, planted)
    rates = {config.training.learning_rate for config in planted.configs}
    assert rates == {RATE_OF_TRY * rate}
    assert chosen.training.learning_rate == rate


def by_popularity(values: dict[float, float], tried: list[float]) -> Any:
    """Answers by popularity alone, which are noted."""

    def try_out(config: RunConfig, fold: TrainingData) -> float:
        popularity = config.backbone.options().get("popularity", math.nan)
        tried.append(popularity)
        return values.get(popularity, 0.0)

    return try_out


@pytest.mark.parametrize(
    ("values", "taken"),
    [
        ({0.3: 0.1, 0.0: 0.09, 0.6: 0.08}, 0.3),
        ({0.3: 0.1, 0.0: 0.11, 0.6: 0.12}, 0.0),
        ({0.3: 0.1, 0.0: 0.09, 0.6: 0.11}, 0.6),
        ({0.3: 0.1, 0.0: 0.09, 0.6: 0.11, 0.9: 0.12}, 0.9),
    ],
)
def test_popularity_is_what_whole_trainings_say(
    data: TrainingData, values: dict[float, float], taken: float
) -> None:
    chosen, choice = choose_settings(open_config(), data, by_popularity(values, []))
    assert chosen.backbone.options()["popularity"] == taken
    assert f"popularity {taken:g}" in choice.sentence()


@pytest.mark.usefixtures("short_tries")
@pytest.mark.parametrize(("without", "taken"), [(0.0999, 0.3), (0.1001, 0.0)])
def test_short_tries_tell_only_whether_popularity_helps(
    data: TrainingData, monkeypatch: pytest.MonkeyPatch, without: float, taken: float
) -> None:
    monkeypatch.setattr(racing, "popularity_on_validation", lambda config, dataset: 0.0)
    tried: list[float] = []
    try_out = by_popularity({0.3: 0.1, 0.0: without, 0.6: 1.0}, tried)
    chosen, _ = choose_settings(open_config(), data, try_out)
    assert chosen.backbone.options()["popularity"] == taken
    assert set(tried) == {0.0, 0.3}


@pytest.mark.usefixtures("short_tries")
@pytest.mark.parametrize(("share", "taken"), [(0.5, 0.3), (0.7, 0.9)])
def test_short_tries_share_more_where_popularity_alone_is_good(
    data: TrainingData, monkeypatch: pytest.MonkeyPatch, share: float, taken: float
) -> None:
    alone = 0.1 * share
    monkeypatch.setattr(racing, "popularity_on_validation", lambda config, dataset: alone)
    try_out = by_popularity({0.0: 0.09, 0.3: 0.1, 0.6: 0.11, 0.9: 0.12}, [])
    chosen, _ = choose_settings(open_config(), data, try_out)
    assert chosen.backbone.options()["popularity"] == taken


def test_popularity_on_validation_is_that_of_the_baseline(data: TrainingData) -> None:
    config = open_config().resolved()
    dataset = data.dataset
    baseline = BASELINES["popularity"]().fit(dataset.train)
    protocol = config.evaluation.protocol
    expected = evaluate(baseline, dataset, split="validation", k=[20], protocol=protocol)
    assert popularity_on_validation(config, dataset) == expected["ndcg@20"] > 0


def test_a_given_popularity_is_not_raced(data: TrainingData) -> None:
    tried: list[float] = []
    config = open_config(backbone__popularity=0.2)
    choose_settings(config, data, by_popularity({}, tried))
    assert set(tried) == {0.2}


def test_a_backbone_without_popularity_takes_none_of_it(data: TrainingData) -> None:
    planted = Planted(peak_at(12), backbones={"mf": 2.0})
    chosen, choice = choose_settings(open_config(), data, planted)
    assert chosen.backbone.name == "mf"
    assert "backbone.popularity" not in choice.settings


def test_in_whole_trainings_any_lead_counts(data: TrainingData) -> None:
    slow = ruled_settings(open_config(), data)["training.learning_rate"]
    planted = Planted(lambda tried: 0.1 + 1e-6 * tried, fast=1e-6)
    chosen, _ = choose_settings(open_config(), data, planted)
    assert chosen.loss.options()["temperature"] < 1 / 16
    assert chosen.training.learning_rate == pytest.approx(RATE_FACTOR * slow)


@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("cheap", [0.0, math.inf])
def test_there_are_never_more_tries_than_planned(
    data: TrainingData, exponent: int, cheap: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(racing, "CHEAP_SCORES", cheap)
    config = open_config()
    ruled = RunConfig.from_settings(ruled_settings(config, data), base=config).resolved()
    plan = plan_of(ruled, data)
    _, choice = choose_settings(config, data, Planted(peak_at(exponent)))
    assert 0 < len(choice.tries) <= plan.n_tries


@pytest.mark.parametrize(("advantage", "name"), [(1.1, "mf"), (0.9, "history")])
def test_on_little_data_the_other_backbone_is_taken_where_it_is_better(
    data: TrainingData, advantage: float, name: str
) -> None:
    planted = Planted(peak_at(12), backbones={"mf": advantage})
    chosen, choice = choose_settings(open_config(), data, planted)
    assert chosen.backbone.name == name
    assert choice.sentence().startswith(f"auto: {name}, psl-relu")


@pytest.mark.usefixtures("short_tries")
def test_elsewhere_no_other_backbone_is_tried(data: TrainingData) -> None:
    planted = Planted(peak_at(12), backbones={"mf": 2.0})
    choose_settings(open_config(), data, planted)
    assert {config.backbone.name for config in planted.configs} == {"history"}


def test_a_backbone_without_an_option_that_was_given_is_not_tried(data: TrainingData) -> None:
    planted = Planted(peak_at(12), backbones={"mf": 2.0})
    chosen, _ = choose_settings(open_config(backbone__visible=0.7), data, planted)
    assert chosen.backbone.name == "history"
    assert {config.backbone.name for config in planted.configs} == {"history"}


def test_a_try_that_diverges_loses_and_the_race_goes_on(data: TrainingData) -> None:
    planted = Planted(peak_at(16))

    def try_out(config: RunConfig, fold: TrainingData) -> float:
        if config.loss.options()["temperature"] == 1 / 12:
            raise TrainingDivergedError("the loss became nan")
        return planted(config, fold)

    chosen, choice = choose_settings(open_config(), data, try_out)
    assert chosen.loss.options()["temperature"] == 1 / 16
    assert choice.tries[0].validation * choice.tries[1].validation == 0


def test_folds_have_other_validation_parts_and_no_test_pairs(data: TrainingData) -> None:
    planted = Planted(peak_at(12))
    choose_settings(open_config(), data, planted)
    folds = planted.folds[:3]
    test = set(split_tastes().test.pair_keys().tolist())
    everything = None
    parts = []
    for fold in folds:
        validation = fold.dataset.validation
        assert validation is not None
        inside = {*fold.train.pair_keys().tolist(), *validation.pair_keys().tolist()}
        assert not inside & test
        # All folds divide the same pairs.
        assert everything is None or inside == everything
        everything = inside
        parts.append(frozenset(validation.pair_keys().tolist()))
    assert len(set(parts)) == 3


def test_there_are_no_folds_where_validation_came_with_the_data(data: TrainingData) -> None:
    config = open_config(data__validation_seed=5).resolved()
    # Another seed would have drawn another part, so this one is not of that rule.
    assert further_folds(data, config, 2) == []


@pytest.mark.usefixtures("short_tries")
def test_where_tries_are_short_there_is_one_fold(data: TrainingData) -> None:
    planted = Planted(peak_at(12))
    _, choice = choose_settings(open_config(), data, planted)
    assert len(planted.folds) == len(choice.tries)
    assert all(fold is data for fold in planted.folds)


@pytest.mark.parametrize(
    ("n_users", "settings", "why"),
    [
        (150, {"data__validation": "none"}, "there is no validation part to choose by"),
        (60, {}, r"the validation part has \d\d users, too few to tell settings apart"),
    ],
)
def test_without_users_to_choose_by_rules_decide_and_the_sentence_says_why(
    n_users: int, settings: dict[str, Any], why: str
) -> None:
    data = loaded(n_users, **settings)
    planted = Planted(peak_at(12))
    chosen, choice = choose_settings(open_config(**settings), data, planted)
    assert not planted.configs
    assert not choice.tries
    with pytest.raises(AssertionError, match=f"by rules alone, as {why}"):
        raise AssertionError(choice.sentence())
    assert chosen.training.schedule == "cosine"


def test_listeners_hear_of_every_try_and_of_the_choice(data: TrainingData) -> None:
    events: list[Any] = []
    _, choice = choose_settings(
        open_config(), data, Planted(peak_at(12)), listeners=[events.append]
    )
    tried = [event for event in events if isinstance(event, SettingsTried)]
    assert [event.validation for event in tried] == [each.validation for each in choice.tries]
    assert events[-1] == SettingsChosen(choice.sentence())


def test_best_finds_a_temperature_for_every_dimension(data: TrainingData) -> None:
    peaks = {64: 16, 256: 10, 512: 10}
    heights = {64: 0.1, 256: 0.2, 512: 0.1}

    def try_out(config: RunConfig, fold: TrainingData) -> float:
        dimension = config.backbone.options().get("dimension", 64)
        values = peak_at(peaks[dimension])
        return heights[dimension] * values(1 / config.loss.options()["temperature"])

    chosen, _ = choose_settings(open_config("best"), data, try_out)
    assert chosen.backbone.options()["dimension"] == 256
    assert chosen.loss.options()["temperature"] == 1 / 10
    # Where a dimension is not taken, neither is its temperature.
    heights[256] = 0.05
    chosen, _ = choose_settings(open_config("best"), data, try_out)
    assert chosen.backbone.options()["dimension"] == 64
    assert chosen.loss.options()["temperature"] == 1 / 16


def test_best_takes_dimensions_as_long_as_they_help(data: TrainingData) -> None:
    def try_out(config: RunConfig, fold: TrainingData) -> float:
        return {64: 0.1, 256: 0.2, 512: 0.15, 1024: 0.9}[config.backbone.options()["dimension"]]

    chosen, choice = choose_settings(open_config("best"), data, try_out)
    assert chosen.backbone.options()["dimension"] == 256
    tried = [each.settings.get("backbone.dimension") for each in choice.tries]
    assert list(dict.fromkeys(each for each in tried if each is not None)) == [64, 256, 512]
    _, choice = choose_settings(open_config("auto"), data, Planted(peak_at(12)))
    assert not any("backbone.dimension" in each.settings for each in choice.tries)


@pytest.mark.parametrize(("ends_best_at", "taken"), [(16, 16), (24, 24), (20, 20), (40, 24)])
@pytest.mark.usefixtures("short_tries")
def test_best_looks_at_neighbours_of_the_temperature_by_whole_trainings(
    data: TrainingData, ends_best_at: int, taken: int
) -> None:
    def try_out(config: RunConfig, fold: TrainingData) -> float:
        is_whole = config.training.validate_every < config.training.epochs
        values = peak_at(ends_best_at if is_whole else 20)
        # More dimensions bring nothing, and what is predicted makes no difference.
        is_small = config.backbone.options().get("dimension", 64) == 64
        return (1.0 if is_small else 0.1) * values(1 / config.loss.options()["temperature"])

    # With a number of epochs that was given, whole trainings have that many.
    for given in ({}, {"training.epochs": 8}):
        chosen, choice = choose_settings(open_config("best", **given), data, try_out)
        assert chosen.loss.options()["temperature"] == pytest.approx(1 / taken)
        # Compared with the neighbour that was taken, not with what was there before.
        assert chosen.resolved().backbone.options()["predicts"] == "all"
        assert all("backbone.dimension" in each.settings for each in choice.tries[-3:-1])


@pytest.mark.parametrize("given", [{}, {"backbone.dimension": 256}])
@pytest.mark.usefixtures("short_tries")
def test_best_makes_every_whole_training_once(data: TrainingData, given: dict[str, Any]) -> None:
    whole = []

    def try_out(config: RunConfig, fold: TrainingData) -> float:
        options = config.resolved().backbone.options()
        exponent = round(1 / config.loss.options()["temperature"])
        if config.training.validate_every < config.training.epochs:
            whole.append((options["dimension"], exponent, options["predicts"]))
        height = {64: 0.1, 256: 0.2, 512: 0.1}[options["dimension"]]
        return height * peak_at(16)(exponent)

    choose_settings(open_config("best", **given), data, try_out)
    # One of each dimension, then both neighbours of the temperature, then what is predicted.
    dimensions = [] if given else [(64, 16, "all")]
    dimensions.append((256, 16, "all"))
    if not given:
        dimensions.append((512, 16, "all"))
    neighbours = [(256, 12, "all"), (256, 20, "all")]
    assert whole == [*dimensions, *neighbours, (256, 16, "hidden")]


@pytest.mark.usefixtures("short_tries")
@pytest.mark.parametrize("given", [{}, {"walks__weight": 8.0}])
def test_best_counts_walks_and_a_regression_in_whole_trainings_alone(
    data: TrainingData, given: dict[str, Any]
) -> None:
    """As the training that follows has them; without, `best` ended below `auto` on Electronic."""
    weights: dict[bool, set[Any]] = {True: set(), False: set()}

    def try_out(config: RunConfig, fold: TrainingData) -> float:
        is_whole = config.training.patience > 0
        weights[is_whole].add((config.walks.weight, config.walks.regression))
        return peak_at(16)(1 / config.loss.options()["temperature"])

    chosen, _ = choose_settings(open_config("best", **given), data, try_out)
    # Walks that were given stand alone.
    expected = (8.0, 0.0) if given else ("auto", "auto")
    assert (chosen.walks.weight, chosen.walks.regression) == expected
    assert weights == {True: {expected}, False: {(0.0, 0.0)}}


def test_a_dimension_counts_by_its_best_epoch_not_by_its_last(data: TrainingData) -> None:
    def try_out(config: RunConfig, fold: TrainingData) -> float:
        # As a training that learns its data by heart: it ends lower than it was on the way.
        best, last = 0.1, 0.1
        if config.backbone.options()["dimension"] == 256:
            best, last = 0.2, 0.05
        looks_on_the_way = config.training.validate_every < config.training.epochs
        return best if looks_on_the_way else last

    chosen, _ = choose_settings(open_config("best"), data, try_out)
    assert chosen.backbone.options()["dimension"] == 256


@pytest.mark.parametrize(("hidden", "predicts", "factor"), [(1.1, "hidden", 2), (0.9, "all", 1)])
def test_best_predicts_the_hidden_part_where_that_pays(
    data: TrainingData, hidden: float, predicts: str, factor: int
) -> None:
    def try_out(config: RunConfig, fold: TrainingData) -> float:
        value = 0.5
        if config.backbone.name == "mf":
            value = 0.1
        if config.backbone.options().get("predicts") == "hidden":
            value *= hidden
        return value

    config = open_config("best")
    epochs = ruled_settings(config, data)["training.epochs"]
    chosen, _ = choose_settings(config, data, try_out)
    assert chosen.resolved().backbone.options()["predicts"] == predicts
    assert chosen.training.epochs == factor * epochs


def test_the_test_part_stays_sealed_and_equal_seeds_give_equal_choices() -> None:
    choices = []
    for _ in range(2):
        data = loaded(120)
        test = data.dataset.test
        assert isinstance(test, SealedInteractions)

        def try_out(config: RunConfig, fold: TrainingData) -> float:
            assert isinstance(fold.dataset.test, SealedInteractions)
            return build_trainer(config, fold, MemoryStore()).fit().best_value

        config = open_config(backbone__dimension=8, training__epochs=2)
        chosen, choice = choose_settings(config, data, try_out)
        assert test.reasons == []
        values = [(tried.settings, tried.validation) for tried in choice.tries]
        choices.append((chosen, values))
    assert choices[0] == choices[1]
    assert np.isfinite([value for _, value in choices[0][1]]).all()


@pytest.mark.usefixtures("short_tries")
def test_best_compares_dimensions_with_walks_that_were_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ranked = []

    def walked(config: RunConfig, *arguments: Any, **options: Any) -> Any:
        ranked.append(config.backbone.options()["dimension"])
        return with_walks(config, *arguments, **options)

    monkeypatch.setattr(_running, "with_walks", walked)
    monkeypatch.setattr(racing, "DIMENSIONS", (4, 8))
    config = open_config("best", **{"walks.weight": 32.0, "loss.temperature": 0.1})
    prepare_run(config, None, split_tastes())
    assert set(ranked) == {4, 8}
