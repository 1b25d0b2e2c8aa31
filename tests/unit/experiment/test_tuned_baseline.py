from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
import torch

from pslrec.baselines import BASELINES, Baseline, SearchSpace
from pslrec.data import Dataset, Interactions, SealedInteractions, planted_tastes
from pslrec.data.splits import carve_validation, iid_split
from pslrec.errors import ConfigError, DataError
from pslrec.evaluation import evaluate
from pslrec.experiment import Try, tuned_baseline


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    """A data set whose test part raises if anybody looks at it."""
    split = carve_validation(iid_split(planted_tastes(80, 60).interactions), "paper")
    return replace(split, test=SealedInteractions.of(split.test))


class Noisy(Baseline):
    """Popularity plus noise, which is least at the targets of the options."""

    search_space: ClassVar[SearchSpace] = {
        "strength": (1.0, 2.0, 4.0),
        "count": (1, 2, 4),
        "flag": (False, True),
    }
    search_limits: ClassVar[dict[str, float]] = {"count": 32}
    targets: ClassVar[dict[str, float]] = {"strength": 2.0, "count": 2, "flag": True}

    def __init__(self, *, strength: float = 1.0, count: int = 1, flag: bool = False) -> None:
        if strength > 20.0:
            raise ConfigError(f"`strength` must be at most 20, got {strength}")
        if count < 1:
            raise ConfigError(f"`count` must be at least 1, got {count}")
        self.strength, self.count, self.flag = strength, count, flag

    def _fit(self, interactions: Interactions) -> None:
        counts = np.bincount(interactions.items, minlength=interactions.n_items)
        distance = abs(np.log(self.strength / self.targets["strength"]))
        distance += abs(np.log(self.count / self.targets["count"]))
        distance += self.flag != self.targets["flag"]
        noise = np.random.default_rng(0).standard_normal(interactions.n_items)
        self.scores = torch.from_numpy(counts + 2.0 * distance * noise).float()

    def score(self, users: np.ndarray) -> torch.Tensor:
        return self.scores.repeat(len(users), 1)


@pytest.fixture
def noisy(monkeypatch: pytest.MonkeyPatch) -> type[Noisy]:
    monkeypatch.setitem(BASELINES._parts, "noisy", Noisy)
    return Noisy


def score_of(noisy: type[Noisy], dataset: Dataset, **options: float) -> float:
    fitted = noisy(**options).fit(dataset.train)
    return evaluate(fitted, dataset, split="validation", k=[20], metrics=["ndcg"])["ndcg@20"]


@pytest.mark.usefixtures("noisy")
def test_settings_are_those_of_the_best_try_and_the_baseline_is_fitted_with_them(
    dataset: Dataset,
) -> None:
    tuned = tuned_baseline("noisy", dataset)
    best = max(tuned.tries, key=lambda tried: tried.ndcg)
    assert tuned.settings == best.settings
    assert score_of(Noisy, dataset, **tuned.settings) == best.ndcg
    result = evaluate(tuned.baseline, dataset, split="validation", k=[20], metrics=["ndcg"])
    assert result["ndcg@20"] == best.ndcg


@pytest.mark.parametrize("name", BASELINES.names())
def test_every_baseline_can_be_tuned_without_the_test_part(name: str, dataset: Dataset) -> None:
    tuned = tuned_baseline(name, dataset, most_tries=3)
    assert isinstance(tuned.baseline, BASELINES[name])
    assert tuned.baseline.score(np.array([0])).isfinite().all()


def test_no_settings_are_tried_twice_and_two_searches_are_the_same(dataset: Dataset) -> None:
    def without_time(tries: list[Try]) -> list[tuple[dict[str, float], float]]:
        return [(tried.settings, tried.ndcg) for tried in tries]

    first = without_time(tuned_baseline("item-knn", dataset).tries)
    assert first == without_time(tuned_baseline("item-knn", dataset).tries)
    settings = [tuple(settings.items()) for settings, _ in first]
    assert len(set(settings)) == len(settings)


@pytest.mark.usefixtures("noisy")
def test_every_value_of_the_grid_is_tried(dataset: Dataset) -> None:
    tries = tuned_baseline("noisy", dataset).tries
    for option, values in Noisy.search_space.items():
        assert set(values) <= {tried.settings[option] for tried in tries}


def rising(monkeypatch: pytest.MonkeyPatch, option: str, *, sign: float) -> None:
    """Make validation improve with one option alone, without end."""

    def score(fitted: Noisy, *_: object, **__: object) -> dict[str, float]:
        return {"ndcg@20": sign * float(getattr(fitted, option))}

    monkeypatch.setattr("pslrec.experiment._tuned_baseline.evaluate", score)


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        # 16 is the last value that the constructor takes, and 32 the last that the limits allow.
        ("strength", [1.0, 2.0, 4.0, 8.0, 16.0]),
        ("count", [1, 2, 4, 8, 16, 32]),
        ("flag", [False, True]),
    ],
)
@pytest.mark.usefixtures("noisy")
def test_grid_is_widened_until_the_limit(
    monkeypatch: pytest.MonkeyPatch,
    dataset: Dataset,
    option: str,
    expected: list[float],
) -> None:
    rising(monkeypatch, option, sign=1.0)
    tuned = tuned_baseline("noisy", dataset)
    assert tuned.settings[option] == expected[-1]
    tried = {tried.settings[option] for tried in tuned.tries}
    assert sorted(value for value in tried if value >= expected[0]) == expected


@pytest.mark.usefixtures("noisy")
def test_grid_is_widened_downwards_too(monkeypatch: pytest.MonkeyPatch, dataset: Dataset) -> None:
    rising(monkeypatch, "strength", sign=-1.0)
    tuned = tuned_baseline("noisy", dataset, most_tries=10)
    assert [tried.settings["strength"] for tried in tuned.tries[:5]] == [1.0, 2.0, 4.0, 0.5, 0.25]


def test_grid_that_starts_at_zero_is_not_widened_below(dataset: Dataset) -> None:
    tries = tuned_baseline("item-knn", dataset, fixed={"neighbours": 60}).tries
    assert min(tried.settings["shrinkage"] for tried in tries) == 0.0


@pytest.mark.usefixtures("noisy")
def test_fixed_options_stay(dataset: Dataset) -> None:
    tuned = tuned_baseline("noisy", dataset, fixed={"count": 3})
    assert {tried.settings["count"] for tried in tuned.tries} == {3}


@pytest.mark.usefixtures("noisy")
def test_search_ends_after_the_most_tries_and_reports_each(dataset: Dataset) -> None:
    seen: list[Try] = []
    tuned = tuned_baseline("noisy", dataset, most_tries=4, on_try=seen.append)
    assert len(seen) == 4
    assert seen == tuned.tries


def test_protocol_decides_over_whom_the_mean_is_taken(dataset: Dataset) -> None:
    train = dataset.train
    few = dataset.validation.select(np.arange(len(dataset.validation) // 2))
    half = Dataset(train, dataset.test, few)
    strict, paper = (
        tuned_baseline("popularity", half, protocol=protocol).tries[0].ndcg
        for protocol in ("strict", "paper")
    )
    assert paper < strict


def test_data_without_validation_raise(dataset: Dataset) -> None:
    with pytest.raises(DataError, match="`dataset` must have a validation part"):
        tuned_baseline("ease", replace(dataset, validation=None))
