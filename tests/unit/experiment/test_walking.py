"""Walks of a run: chosen on validation, kept with the run, the same in every door."""

import tomllib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from pslrec import Recommender
from pslrec.baselines import CommonUsers
from pslrec.config import RunConfig, preset_settings
from pslrec.data import Dataset, Interactions
from pslrec.data._sealing import SealedTestError
from pslrec.data.splits import iid_split
from pslrec.distributed import Group
from pslrec.errors import ConfigError
from pslrec.experiment import _walk_fitting as fitting
from pslrec.experiment import _walk_search as searching
from pslrec.experiment import evaluate_chosen, evaluate_run, run, train_on_validation
from pslrec.experiment._inputs import TrainingData
from pslrec.inference import TrainedModel
from pslrec.recommender.exports import export
from pslrec.training import (
    Event,
    Progress,
    Trainer,
    TrainingDivergedError,
    TrainingInterrupted,
    TrainingStarted,
    WalksChosen,
    WalksTried,
)

N_USERS, N_PAIRS = 240, 60


def twins(n_users: int = N_USERS) -> Dataset:
    """Items come in pairs that people have together: too many for vectors of two dimensions."""
    draws = np.random.default_rng(0)
    users, items = [], []
    for user in range(n_users):
        for pair in draws.choice(N_PAIRS, size=6, replace=False):
            users += [user, user]
            items += [2 * pair, 2 * pair + 1]
    return iid_split(Interactions.from_ids(users, items))


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return twins()


def settings(**more: object) -> dict[str, object]:
    return {
        "backbone.name": "history",
        "backbone.dimension": 2,
        "training.epochs": 2,
        "walks.weight": "auto",
        **{name.replace("__", "."): value for name, value in more.items()},
    }


def configured(**more: object) -> RunConfig:
    return RunConfig.from_settings(settings(**more))


def test_auto_takes_walks_where_vectors_cannot_tell_items_apart(dataset: Dataset) -> None:
    told: list[Event] = []
    result = run(configured(), data=dataset, listeners=[told.append])
    alone = run(configured(walks__weight=0.0), data=dataset)
    assert result.metrics["test"]["ndcg@20"] > 1.5 * alone.metrics["test"]["ndcg@20"]
    assert isinstance(result.config.walks.weight, float)
    assert result.config.walks.weight > 0
    assert {"walks.weight", "walks.popularity_exponent"} <= set(result.config.auto.chosen)
    (chosen,) = [event.sentence for event in told if isinstance(event, WalksChosen)]
    assert chosen.startswith(f"walks: weight {result.config.walks.weight:g}, ")
    assert "240 users on validation" in chosen
    # Training itself has not changed.
    assert torch.equal(result.model.user_vectors, alone.model.user_vectors)


def test_what_was_chosen_runs_again_without_a_search(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(configured(), data=dataset)
    monkeypatch.setattr(searching, "_Search", None)
    again = run(RunConfig.checked(tomllib.loads(first.config.to_toml())), data=dataset)
    assert again.metrics["test"] == first.metrics["test"]


def test_exponents_that_were_given_are_kept(dataset: Dataset) -> None:
    result = run(configured(walks__popularity_exponent=0.35), data=dataset)
    assert result.config.walks.popularity_exponent == 0.35
    assert "walks.popularity_exponent" not in result.config.auto.chosen
    # The walks that rank have it, too.
    again = run(RunConfig.checked(tomllib.loads(result.config.to_toml())), data=dataset)
    assert result.model.walks is not None
    assert again.model.walks is not None
    matrices = [model.walks.matrix.toarray() for model in (result.model, again.model)]
    np.testing.assert_array_equal(*matrices)


def test_the_search_begins_where_it_should(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the first exponents, whatever the defaults of given weights are."""
    counted: list[tuple[float, float]] = []
    fit = fitting.Walks.fit

    def remembered(data: Interactions, **options: float) -> fitting.Walks:
        counted.append((options["transition_exponent"], options["popularity_exponent"]))
        return fit(data, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(fitting.Walks, "fit", remembered)
    run(configured(), data=dataset)
    assert counted[0] == (0.5, 0.4)
    counted.clear()
    first = {"popularity_exponent": 0.6, "transition_exponent": 0.5}
    monkeypatch.setattr(searching, "FIRST_EXPONENTS", first)
    run(configured(), data=dataset)
    assert counted[0] == (0.5, 0.6)
    counted.clear()
    run(configured(walks__popularity_exponent=0.35), data=dataset)
    assert counted[0] == (0.5, 0.35)


def test_few_users_and_no_validation_choose_nothing_and_say_so() -> None:
    for data, options, why in (
        (twins(60), {}, "too few to tell settings apart"),
        (twins(), {"data__validation": "none"}, "there is no validation part to choose by"),
    ):
        told: list[Event] = []
        result = run(configured(**options), data=data, listeners=[told.append])
        assert result.config.walks.weight == 0
        assert result.model.walks is None
        (chosen,) = [event.sentence for event in told if isinstance(event, WalksChosen)]
        assert chosen.startswith("walks: none, as ")
        assert why in chosen


def test_walks_that_do_not_lead_by_more_than_chance_are_left_out() -> None:
    draws = np.random.default_rng(1)
    users = np.repeat(np.arange(300), 8)
    items = np.concatenate([draws.choice(50, size=8, replace=False) for _ in range(300)])
    result = run(configured(), data=iid_split(Interactions.from_ids(users, items)))
    assert result.config.walks.weight == 0


@pytest.mark.parametrize(
    ("is_in_doubt", "validated", "n_asked"),
    [(True, "auto", N_USERS), (True, 150, 150), (False, "auto", 40)],
)
def test_all_users_are_asked_where_a_sample_cannot_tell(
    dataset: Dataset,
    monkeypatch: pytest.MonkeyPatch,
    is_in_doubt: bool,
    validated: str | int,
    n_asked: int,
) -> None:
    monkeypatch.setattr(searching, "SCORES_OF_TRY", 0)
    monkeypatch.setattr(searching, "FEWEST_RANKED", 40)
    monkeypatch.setattr(searching, "FEWEST_COMPARED", 10)
    original = searching._chance

    def chance(leads: np.ndarray) -> float:
        if is_in_doubt and len(leads) == 40:
            # No lead is as large as this.
            return 9.9
        return original(leads)

    monkeypatch.setattr(searching, "_chance", chance)
    told: list[Event] = []
    config = configured(evaluation__validation_users=validated)
    result = run(config, data=dataset, listeners=[told.append])
    (chosen,) = [event.sentence for event in told if isinstance(event, WalksChosen)]
    assert f"of {n_asked} users on validation" in chosen
    assert isinstance(result.config.walks.weight, float)
    assert result.config.walks.weight > 0


def test_fast_asks_fewer_users(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "SCORES_OF_FAST_TRY", 100 * dataset.n_items)
    monkeypatch.setattr(searching, "FEWEST_RANKED", 40)
    for mode, n_asked in (("fast", 100), ("off", N_USERS)):
        told: list[Event] = []
        config = configured(auto__mode=mode, loss__temperature=0.1)
        run(config, data=dataset, listeners=[told.append])
        (chosen,) = [event.sentence for event in told if isinstance(event, WalksChosen)]
        assert f"of {n_asked} users on validation" in chosen


def test_a_sample_that_is_behind_asks_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = np.random.default_rng(1)
    users = np.repeat(np.arange(300), 8)
    items = np.concatenate([draws.choice(50, size=8, replace=False) for _ in range(300)])
    monkeypatch.setattr(searching, "SCORES_OF_TRY", 0)
    monkeypatch.setattr(searching, "FEWEST_RANKED", 150)
    monkeypatch.setattr(searching._Trials, "_values_of_sample", lambda *_: np.zeros(150))
    told: list[Event] = []
    run(configured(), data=iid_split(Interactions.from_ids(users, items)), listeners=[told.append])
    (chosen,) = [event.sentence for event in told if isinstance(event, WalksChosen)]
    assert "of 150 users on validation 0.0000 with, 0.0000 without" in chosen


def test_large_catalogues_do_without(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "MOST_ITEMS", 10)
    assert run(configured(), data=dataset).config.walks.weight == 0


def test_the_choice_never_reads_the_test_part(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed = []
    original = searching._Search.run

    def watched(self: searching._Search) -> searching.Found:
        found = original(self)
        for fold in self._trials._folds:
            try:
                _ = fold.data.dataset.test.items
            except SealedTestError:
                sealed.append(True)
        return found

    monkeypatch.setattr(searching._Search, "run", watched)
    run(configured(), data=dataset)
    assert sealed == [True]
    sealed.clear()
    run(configured(auto__mode="on", auto__chosen=("walks.weight",)), data=dataset)
    assert sealed == [True] * 3


def test_weights_are_scaled_to_scores_that_are_not_cosines(dataset: Dataset) -> None:
    result = run(configured(loss__name="bpr", sampling__negatives=1), data=dataset)
    spread = float(result.model.vector_scorer().score(np.arange(N_USERS)).std(dim=1).mean())
    assert isinstance(result.config.walks.weight, float)
    steps = result.config.walks.weight / (spread / searching.USUAL_SPREAD)
    assert np.isclose(searching.WEIGHTS, steps, rtol=0.1).any()


@pytest.fixture(scope="module")
def log_file(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "log.csv"
    everything = [dataset.train.to_frame(), dataset.test.to_frame()]
    lines = ["user,item"]
    for frame in everything:
        lines += [f"{user},{item}" for user, item in frame.select("user", "item").iter_rows()]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("regression", [0.0, 4.0])
@pytest.mark.parametrize("refit", [False, True])
def test_a_run_directory_keeps_walks_for_every_door(
    log_file: Path, tmp_path: Path, *, refit: bool, regression: float
) -> None:
    config = configured(
        data__source=str(log_file), training__refit=refit, walks__regression=regression
    )
    result = run(config, out=tmp_path / "run")
    assert (tmp_path / "run" / "format").read_text() == "2\n"
    assert result.model.walks is not None
    assert result.model.walks.has_regression == (regression > 0)
    stored = tomllib.loads((tmp_path / "run" / "config.toml").read_text())
    assert stored["walks"]["weight"] == result.config.walks.weight
    # Evaluated again, as it was.
    again = evaluate_run(tmp_path / "run", k=(20,))
    assert again["test"]["ndcg@20"] == result.metrics["test"]["ndcg@20"]
    # A history gets the list of the user who has it, to the bit.
    model = TrainedModel.load(tmp_path / "run")
    histories = [torch.tensor(model._histories.list_of(user)) for user in range(5)]
    new = model.recommend_for(histories, 10, exclude_seen=False)
    known = model.recommend(torch.arange(5), 10, exclude_seen=False)
    assert torch.equal(new.items, known.items)
    assert torch.equal(new.scores, known.scores)
    # New items are ranked as their parents, and known ones as before.
    item = model.items.ids([7])[0]
    extended = model.with_parents({999: item})
    everything = torch.full((extended.n_items,), 3)
    scores_of_all = extended.score(everything, torch.arange(extended.n_items))
    assert scores_of_all[-1] == scores_of_all[7]
    before = model.score(everything[:-1], torch.arange(model.n_items))
    assert torch.equal(scores_of_all[:-1], before)
    few = torch.tensor([7, 40, 11])
    among_few = model.recommend(torch.tensor([3]), 3, items=few, exclude_seen=False)
    torch.testing.assert_close(among_few.scores[0], before[among_few.items[0]])
    # And single scores are those of the lists.
    scores = model.score(torch.arange(5), known.items[:, 0])
    torch.testing.assert_close(scores, known.scores[:, 0])
    ranked = model.scorer().score(np.arange(5))
    torch.testing.assert_close(ranked.max(dim=1).values, known.scores[:, 0])


def test_a_run_that_stops_after_the_choice_is_resumed_with_it(
    log_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = configured(data__source=str(log_file))
    whole = run(config, out=tmp_path / "whole")
    run(config, out=tmp_path / "stopped")
    # As if it had been stopped while the test part was evaluated.
    (tmp_path / "stopped" / "metrics.json").unlink()
    monkeypatch.setattr(searching, "_Search", None)
    resumed = run(config, out=tmp_path / "stopped", resume=True)
    assert resumed.metrics["test"] == whole.metrics["test"]
    files = [(tmp_path / name / "walks.safetensors").read_bytes() for name in ("whole", "stopped")]
    assert files[0] == files[1]


def test_a_run_that_stops_in_the_choice_chooses_again_and_alike(
    log_file: Path, tmp_path: Path
) -> None:
    config = configured(data__source=str(log_file))
    whole = run(config, out=tmp_path / "whole")

    def interrupt(event: Event) -> None:
        if isinstance(event, WalksTried):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(config, out=tmp_path / "stopped", listeners=[interrupt])
    assert not (tmp_path / "stopped" / "walks.safetensors").exists()
    resumed = run(config, out=tmp_path / "stopped", resume=True)
    assert resumed.metrics["test"] == whole.metrics["test"]
    files = [(tmp_path / name / "walks.safetensors").read_bytes() for name in ("whole", "stopped")]
    assert files[0] == files[1]


@pytest.mark.parametrize("name", ["weight", "regression"])
def test_a_search_of_many_runs_refuses_an_open_weight(tmp_path: Path, name: str) -> None:
    weights = {"walks__weight": 0.0, "walks__regression": 0.0, f"walks__{name}": "auto"}
    config = configured(data__source="synthetic", **weights)
    with pytest.raises(ConfigError, match=rf"`walks\.{name}` must be a number here"):
        train_on_validation(config, out=tmp_path / "cell")


def test_a_search_of_many_runs_compares_them_with_their_walks(
    log_file: Path, tmp_path: Path
) -> None:
    found = {}
    for weight in (0.0, 16.0):
        config = configured(data__source=str(log_file), walks__weight=weight)
        out = tmp_path / f"{weight:g}"
        found[weight] = train_on_validation(config, out=out)["validation"]["ndcg@20"]
        metrics = evaluate_chosen(out)
        assert metrics["validation"]["ndcg@20"] == found[weight]
    assert found[16.0] > 1.2 * found[0.0]


def test_a_recommender_saves_and_loads_its_walks(dataset: Dataset, tmp_path: Path) -> None:
    recommender = Recommender(backbone="history", dimension=2, epochs=2, temperature=0.1)
    recommender.fit(dataset.train)
    assert recommender.model_.walks is not None
    recommender.save(tmp_path / "model")
    again = Recommender.load(tmp_path / "model")
    assert again.recommend([3, 5], k=5).equals(recommender.recommend([3, 5], k=5))
    alone = Recommender(
        backbone="history", dimension=2, epochs=2, temperature=0.1, walks__weight=0.0
    )
    assert alone.fit(dataset.train).model_.walks is None


def test_an_export_says_that_it_leaves_walks_out(
    dataset: Dataset, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recommender = Recommender(backbone="history", dimension=2, epochs=2, temperature=0.1)
    model = recommender.fit(dataset.train).model_
    found = export(model, "npz", tmp_path / "vectors")
    assert "vectors of the model and not its walks" in caplog.text
    assert found["left_out"] == ["walks"]


def recipes() -> Dataset:
    """Everybody has whole recipes, whose ingredients are common: counts mislead, a regression does not."""
    draws = np.random.default_rng(3)
    ingredients = [draws.choice(80, size=6, replace=False) for _ in range(60)]
    users, items = [], []
    for user in range(400):
        for recipe in draws.choice(60, size=5, replace=False):
            users += [user] * 6
            items += ingredients[recipe].tolist()
    pairs = sorted(set(zip(users, items, strict=True)))
    return iid_split(Interactions.from_ids(*zip(*pairs, strict=True)))


def test_a_regression_is_taken_where_counts_mislead() -> None:
    dataset = recipes()
    told: list[Event] = []
    result = run(configured(walks__regression="auto"), data=dataset, listeners=[told.append])
    counted = run(configured(), data=dataset)
    assert result.metrics["test"]["ndcg@20"] > 1.1 * counted.metrics["test"]["ndcg@20"]
    section = result.config.walks
    assert isinstance(section.regression, float)
    assert section.regression > 0
    assert {"walks.regression", "walks.regression_l1", "walks.regression_l2"} <= set(
        result.config.auto.chosen
    )
    (chosen,) = [event.sentence for event in told if isinstance(event, WalksChosen)]
    assert f"regression: weight {section.regression:g}, l1 {section.regression_l1:g}, l2" in chosen
    assert result.model.walks is not None
    assert result.model.walks.has_regression
    # As it was chosen, without a search.
    again = run(RunConfig.checked(tomllib.loads(result.config.to_toml())), data=dataset)
    assert again.metrics["test"] == result.metrics["test"]


@pytest.fixture
def fitted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, float]]:
    """The penalties of the regressions that were fitted."""
    penalties: list[tuple[float, float]] = []
    fit = CommonUsers.weights

    def remembered(self: CommonUsers, *, l1: float, l2: float) -> csr_matrix:
        penalties.append((l1, l2))
        return fit(self, l1=l1, l2=l2)

    monkeypatch.setattr(CommonUsers, "weights", remembered)
    return penalties


def test_penalties_are_searched_as_far_as_a_fit_is_quick(
    fitted: list[tuple[float, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = recipes()
    common = CommonUsers(data.train)
    run(configured(walks__regression="auto"), data=data)
    # None is fitted twice, and both are searched.
    assert len(set(fitted)) == len(fitted)
    assert len({l1 for l1, _ in fitted}) > 1
    assert len({l2 for _, l2 in fitted}) > 1
    fitted.clear()
    # What looks at more pairs is left out, ...
    monkeypatch.setattr(searching, "MOST_CANDIDATES", common.n_pairs_above(10.0))
    run(configured(walks__regression="auto"), data=data)
    assert {l1 for l1, _ in fitted} == {10.0, 30.0}
    # ... what would have to be fitted several times keeps its first `l2`, ...
    fitted.clear()
    monkeypatch.setattr(searching, "MOST_CANDIDATES_OF_MANY", 0)
    run(configured(walks__regression="auto"), data=data)
    assert {l2 for _, l2 in fitted} == {searching.FIRST_L2}
    # ... and so does `fast`.
    fitted.clear()
    monkeypatch.setattr(searching, "MOST_CANDIDATES_OF_FAST", common.n_pairs_above(3.0))
    run(configured(walks__regression="auto", auto__mode="fast"), data=data)
    assert set(fitted) == {(3.0, searching.FIRST_L2)}


def test_too_many_pairs_of_items_leave_the_regression_out(
    fitted: list[tuple[float, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "MOST_CANDIDATES", -1)
    told: list[Event] = []
    run(configured(walks__regression="auto"), data=recipes(), listeners=[told.append])
    (chosen,) = [event.sentence for event in told if isinstance(event, WalksChosen)]
    assert "regression: none, as too many pairs of items have users in common" in chosen
    assert not fitted


def test_penalties_that_were_given_are_not_searched(fitted: list[tuple[float, float]]) -> None:
    options = {"walks__regression_l1": 0.7, "walks__regression_l2": 20.0}
    section = run(configured(walks__regression="auto", **options), data=recipes()).config.walks
    assert fitted == [(0.7, 20.0)]
    assert (section.regression_l1, section.regression_l2) == (0.7, 20.0)


def test_little_data_choose_by_several_validation_parts() -> None:
    told: list[Event] = []
    options = {"walks__regression": "auto", "auto__mode": "on", "auto__chosen": ("walks.weight",)}
    run(configured(**options), data=recipes(), listeners=[told.append])
    (chosen,) = [event.sentence for event in told if isinstance(event, WalksChosen)]
    assert "NDCG@20 of 400 users on 3 validation parts" in chosen
    # What is trained for the other parts is nobody's business.
    assert len([event for event in told if isinstance(event, TrainingStarted)]) == 1


def test_a_user_has_the_mean_of_the_parts_that_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {
        0: (np.array([0, 2]), np.array([0.5, 0.25])),
        1: (np.array([2, 3]), np.array([0.75, 0.125])),
    }
    folds = [SimpleNamespace(data=SimpleNamespace(dataset=SimpleNamespace(n_users=5)), place=0)]
    folds.append(SimpleNamespace(place=1))
    trials = searching._Trials.__new__(searching._Trials)
    trials._folds = folds
    trials._vectors = [None, None]
    monkeypatch.setattr(
        searching._Trials, "_values_of_fold", lambda _, fold, *__: values[fold.place]
    )
    np.testing.assert_array_equal(trials._values(None, 5), [0.5, 0.5, 0.125])


def test_walks_that_were_left_out_do_not_come_back_with_a_regression(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[fitting.WalkSettings] = []
    value = searching._Trials.value

    def remembered(self: searching._Trials, settings: fitting.WalkSettings) -> float:
        tried.append(settings)
        return value(self, settings)

    compared = searching._Trials.compared

    def rejected(
        self: searching._Trials, settings: fitting.WalkSettings, before: fitting.WalkSettings
    ) -> tuple[bool, str]:
        if settings.regression == 0:
            tried.clear()
            return False, "walks do not help"
        return compared(self, settings, before)

    monkeypatch.setattr(searching._Trials, "value", remembered)
    monkeypatch.setattr(searching._Trials, "compared", rejected)
    section = run(configured(walks__regression="auto"), data=recipes()).config.walks
    assert section.regression != 0
    assert section.weight == 0
    assert {settings.weight for settings in tried} == {0.0}


def test_every_setting_is_looked_at_where_it_depends_on_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Values are planted, in which each step of the search changes what is best for the next."""
    weights = (0.0, *searching.WEIGHTS)

    def value(_: searching._Trials, settings: fitting.WalkSettings) -> float:
        best_walks, best_regression, best_l2 = 32.0, 16.0, 100.0
        bonus = 0.0
        if settings.regression_l1 == 1.0 and settings.regression >= 16.0:
            bonus = 20.0
            best_walks, best_regression, best_l2 = 0.0, 32.0, 30.0
        return bonus - (
            abs(weights.index(settings.weight) - weights.index(best_walks))
            + abs(weights.index(settings.regression) - weights.index(best_regression))
            + abs(np.log10(settings.regression_l1 / 3.0)) / 10
            + abs(np.log10(settings.regression_l2 / best_l2)) / 10
            + abs(settings.popularity_exponent - 0.2)
            + abs(settings.transition_exponent - 0.8)
        )

    monkeypatch.setattr(searching._Trials, "value", value)
    monkeypatch.setattr(searching._Trials, "compared", lambda *_: (True, "as planted"))
    told: list[Event] = []
    result = run(configured(walks__regression="auto"), data=recipes(), listeners=[told.append])
    section = result.config.walks
    assert (section.weight, section.regression) == (0.0, 32.0)
    assert (section.regression_l1, section.regression_l2) == (1.0, 30.0)
    assert (section.popularity_exponent, section.transition_exponent) == (0.2, 0.8)
    (chosen,) = [event.sentence for event in told if isinstance(event, WalksChosen)]
    assert chosen == (
        "walks: weight 32, popularity exponent 0.2, transition exponent 0.8; as planted; "
        "regression: weight 32, l1 1, l2 30; as planted; with it, the best weight of walks is 0"
    )


def test_a_regression_is_repeated_to_the_bit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    options = {**preset_settings("auto"), **settings(loss__temperature=0.1)}
    first = run(RunConfig.from_settings(options), data=recipes(), out=tmp_path / "run")
    assert first.config.walks.regression != 0
    written = RunConfig.checked(tomllib.loads((tmp_path / "run" / "config.toml").read_text()))
    monkeypatch.setattr(searching, "_Search", None)
    again = run(written, data=recipes(), out=tmp_path / "again")
    assert again.metrics["test"] == first.metrics["test"]
    files = [(tmp_path / name / "walks.safetensors").read_bytes() for name in ("run", "again")]
    assert files[0] == files[1]


def test_a_run_of_an_earlier_version_is_evaluated_as_it_was(log_file: Path, tmp_path: Path) -> None:
    """Its regression was another one, which is in its files."""
    config = configured(data__source=str(log_file), walks__weight=8.0, walks__regression=4.0)
    result = run(config, out=tmp_path / "run")
    stored = tmp_path / "run" / "config.toml"
    text = stored.read_text()
    text = text.replace("regression_l1 = 3.0", "regularization = 50.0")
    text = text.replace("regression_l2 = 10.0", "regression_items = 6000")
    text = text.replace("chosen = []", 'chosen = ["walks.regularization"]')
    assert "regularization = 50.0" in text
    assert '"walks.regularization"' in text
    assert "regression_items" in text
    stored.write_text(text)
    again = evaluate_run(tmp_path / "run", k=(20,))
    assert again["test"]["ndcg@20"] == result.metrics["test"]["ndcg@20"]


def test_a_regression_may_stand_alone() -> None:
    options = {"walks__weight": 0.0, "walks__regression": "auto", "walks__regression_l2": 20.0}
    result = run(configured(**options), data=recipes())
    assert result.config.walks.weight == 0
    assert result.config.walks.regression_l2 == 20
    assert result.model.walks is not None


def test_a_regression_that_does_not_lead_is_left_out() -> None:
    draws = np.random.default_rng(1)
    users = np.repeat(np.arange(300), 8)
    items = np.concatenate([draws.choice(50, size=8, replace=False) for _ in range(300)])
    data = iid_split(Interactions.from_ids(users, items))
    result = run(configured(walks__regression="auto"), data=data)
    assert result.config.walks.regression == 0
    assert result.model.walks is None


def test_without_validation_nothing_stays_open() -> None:
    options = {"data__validation": "none", "walks__regression": "auto"}
    section = run(configured(**options), data=twins()).config.walks
    assert (section.weight, section.regression) == (0.0, 0.0)
    # Walks that were given are there, and only the regression is said to be none.
    told: list[Event] = []
    options["walks__weight"] = 8.0
    result = run(configured(**options), data=twins(), listeners=[told.append])
    assert result.model.walks is not None
    (chosen,) = [event.sentence for event in told if isinstance(event, WalksChosen)]
    assert chosen == "regression: none, as there is no validation part to choose by"


@pytest.mark.parametrize("loss", [{}, {"loss__name": "bpr", "sampling__negatives": 1}])
@pytest.mark.parametrize("given", ["weight", "regression"])
def test_a_weight_that_was_given_is_taken_as_it_is(
    loss: dict[str, object], given: str, tmp_path: Path
) -> None:
    weights = {"walks__weight": "auto", "walks__regression": "auto", f"walks__{given}": 12.3456}
    config = configured(**weights, **loss)
    result = run(config, data=recipes(), out=tmp_path / "run")
    assert getattr(result.config.walks, given) == 12.3456
    # To the bit, from the settings that were written down.
    written = RunConfig.checked(tomllib.loads((tmp_path / "run" / "config.toml").read_text()))
    again = run(written, data=recipes(), out=tmp_path / "again")
    assert again.metrics["test"] == result.metrics["test"]
    files = [(tmp_path / name / "walks.safetensors").read_bytes() for name in ("run", "again")]
    assert files[0] == files[1]


def test_a_regression_weighs_the_same_whatever_stands_beside_it() -> None:
    dataset = recipes()
    added = []
    for weight in (1e-6, 0.0):
        model = run(configured(walks__weight=weight, walks__regression=8.0), data=dataset).model
        scores = torch.zeros(dataset.n_users, dataset.n_items)
        assert model.walks is not None
        model.walks.add_to(scores, dataset.train.rows)
        added.append(scores)
    torch.testing.assert_close(added[0], added[1], rtol=0, atol=1e-5)


def test_a_regression_that_cannot_be_fitted_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(CommonUsers, "weights", fail)
    with pytest.raises(ConfigError, match=r"not enough memory; set `walks\.regression` to 0"):
        run(configured(walks__weight=0.0, walks__regression=4.0), data=recipes())
    # Where it was only looked for, the model is kept without one.
    told: list[Event] = []
    result = run(configured(walks__regression="auto"), data=recipes(), listeners=[told.append])
    assert result.config.walks.regression == 0
    (chosen,) = [event.sentence for event in told if isinstance(event, WalksChosen)]
    assert "regression: none, as a regression on 80 items" in chosen
    # Before anything is counted.
    monkeypatch.setattr(fitting, "MOST_BYTES", 1000)
    with pytest.raises(ConfigError, match=r"common users may take 0\.0 GiB, more than"):
        run(configured(walks__weight=0.0, walks__regression=4.0), data=recipes())


def test_a_regression_that_fails_in_another_process_is_left_out_in_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Or this one would wait for the other one, which evaluates nothing."""
    assert run(configured(walks__regression="auto"), data=recipes()).config.walks.regression != 0

    def with_one_failure_elsewhere(_: Group, tensor: torch.Tensor) -> None:
        tensor += 1

    monkeypatch.setattr(Group, "sum", with_one_failure_elsewhere)
    told: list[Event] = []
    result = run(configured(walks__regression="auto"), data=recipes(), listeners=[told.append])
    assert result.config.walks.regression == 0
    (chosen,) = [event.sentence for event in told if isinstance(event, WalksChosen)]
    assert "regression: none, as it could not be fitted in another process" in chosen


def test_after_a_failure_elsewhere_every_process_asks_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The process that could fit it must not go ahead without the others, who will ask for it."""
    n_failures = [0, 1, 0]
    sums = []

    def counted(_: Group, tensor: torch.Tensor) -> None:
        sums.append(1)
        tensor += n_failures.pop(0)

    monkeypatch.setattr(Group, "sum", counted)
    data = recipes()
    fitter = fitting.WalkFitting(TrainingData(data, data.train), neighbours=9, group=Group())
    asked = fitting.WalkSettings.of(configured(walks__regression=4.0, walks__weight=0.0).walks)
    assert fitter.n_candidates(1.0) > 0
    with pytest.raises(ConfigError, match="another process"):
        fitter.fitted(asked)
    assert fitter.fitted(asked) is not None
    assert len(sums) == 3
    # Now that all have it, nobody has to be asked.
    assert fitter.fitted(asked) is not None
    assert len(sums) == 3


def test_a_penalty_that_cannot_be_fitted_leaves_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fit = CommonUsers.weights

    def too_large_below_three(self: CommonUsers, *, l1: float, l2: float) -> csr_matrix:
        if l1 < 3.0:
            raise MemoryError
        return fit(self, l1=l1, l2=l2)

    monkeypatch.setattr(CommonUsers, "weights", too_large_below_three)
    section = run(configured(walks__regression="auto"), data=recipes()).config.walks
    assert section.regression != 0
    assert section.regression_l1 >= 3.0


def fail_in_second_training(monkeypatch: pytest.MonkeyPatch, error: Exception) -> RunConfig:
    """Settings with which the second training is on another validation part, and this error there."""
    n_trained = []
    fit = Trainer.fit

    def failing(self: Trainer) -> Progress:
        n_trained.append(1)
        if len(n_trained) == 2:
            raise error
        return fit(self)

    monkeypatch.setattr(Trainer, "fit", failing)
    return configured(auto__mode="on", auto__chosen=("walks.weight",))


def test_a_further_part_that_diverges_is_left_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    error = TrainingDivergedError("the loss is not a number")
    config = fail_in_second_training(monkeypatch, error)
    told: list[Event] = []
    run(config, data=recipes(), listeners=[told.append])
    (chosen,) = [event.sentence for event in told if isinstance(event, WalksChosen)]
    assert "on 2 validation parts" in chosen
    assert "without a further validation part: the loss is not a number" in caplog.text


def test_a_further_part_that_is_stopped_says_what_is_saved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = fail_in_second_training(monkeypatch, TrainingInterrupted("all of it is saved"))
    with pytest.raises(TrainingInterrupted, match="stopped while walks were chosen, which starts"):
        run(config, data=recipes())


def test_whole_trainings_on_the_same_data_share_what_was_fitted() -> None:
    data = recipes()
    first = TrainingData(data, data.train)
    # Equal data that were divided another time are not the same.
    second = TrainingData(data, data.train)
    fittings = fitting.WalkFittings(Group())
    assert fittings.to(first, 9) is fittings.to(first, 9)
    assert fittings.to(second, 9) is not fittings.to(first, 9)


def test_an_unfinished_run_of_an_earlier_version_cannot_be_resumed(
    log_file: Path, tmp_path: Path
) -> None:
    config = configured(data__source=str(log_file), walks__regression="auto")
    run(config, out=tmp_path / "run")
    (tmp_path / "run" / "metrics.json").unlink()
    stored = tmp_path / "run" / "config.toml"
    text = stored.read_text().replace('"walks.regression_l1"', '"walks.regularization"')
    assert '"walks.regularization"' in text
    stored.write_text(text)
    with pytest.raises(
        ConfigError, match=r"by an earlier version, which chose walks\.regularization"
    ):
        run(config, out=tmp_path / "run", resume=True)
