"""Arguments of the constructor, as editors and scikit-learn see them, and what a recommender says of itself."""

import inspect

import polars as pl
import pytest

from pslrec import Recommender
from pslrec.data import Interactions
from pslrec.data._synthetic import TasteModel, planted_tastes
from pslrec.errors import ConfigError
from pslrec.losses import SoftmaxLoss
from pslrec.recommender._options import KEYWORDS

OPTIONS = {"preset": "fixed", "epochs": 3, "dimension": 8}
# Those of scikit-learn's checks that do not fit arrays of numbers.
CHECKS = (
    "check_parameters_default_constructible",
    "check_no_attributes_set_in_init",
    "check_get_params_invariance",
    "check_set_params",
    "check_estimator_repr",
    "check_estimator_cloneable",
    "check_mixin_order",
    "check_valid_tag_types",
    "check_estimator_tags_renamed",
)


@pytest.fixture(scope="module")
def log() -> Interactions:
    return planted_tastes(60, 40, model=TasteModel(n_topics=3), seed=1).interactions


@pytest.mark.parametrize("name", CHECKS)
def test_the_checks_of_scikit_learn_that_apply_pass(name: str) -> None:
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    if not hasattr(checks, name):
        pytest.skip("this release of scikit-learn does not have it")
    getattr(checks, name)("Recommender", Recommender())


def test_every_argument_is_typed_and_documented() -> None:
    parameters = inspect.signature(Recommender).parameters
    described = inspect.getdoc(Recommender).partition("Attributes:")[0]
    for name, parameter in parameters.items():
        assert parameter.annotation is not inspect.Parameter.empty, name
        assert f"\n    {name}: " in described, name
    assert set(KEYWORDS) < set(parameters)


def test_every_keyword_reaches_its_setting(log: Interactions) -> None:
    given = {
        "temperature": 0.2,
        "dimension": 5,
        "epochs": 1,
        "learning_rate": 0.02,
        "weight_decay": 1e-5,
        "negatives": 7,
        "patience": 3,
        "refit": True,
        "minimum_rating": 1.0,
        "k_core": 2,
        "seed": 99,
        "device": "cpu",
    }
    assert given.keys() == KEYWORDS.keys()
    config = Recommender("sl", "mf", preset="fixed", **given).fit(log).config_
    sections = config.model_dump()
    for keyword, name in KEYWORDS.items():
        section, setting = name.split(".")
        assert sections[section][setting] == given[keyword], keyword


def test_the_seed_is_that_of_training(log: Interactions) -> None:
    def vectors(seed: int):
        return Recommender(seed=seed, **OPTIONS).fit(log, "none").model_.item_vectors

    assert vectors(1).equal(vectors(1))
    assert not vectors(1).equal(vectors(2))


def test_options_of_parts_and_full_names_are_known_at_once() -> None:
    Recommender("psl-tanh", loss__temperature=0.1)
    Recommender(SoftmaxLoss(0.3), "lightgcn", layers=3, sampling__noise__probability=0.1)
    with pytest.raises(ConfigError, match="unknown option `laiers`; did you mean `layers`"):
        Recommender("sl", "lightgcn", laiers=3)
    with pytest.raises(ConfigError, match="unknown option `layers`"):
        Recommender("sl", "mf", layers=3)
    with pytest.raises(ConfigError, match=r"unknown option `qqq`.*every setting of a run in full"):
        Recommender(qqq=1)


def test_a_refused_option_changes_nothing() -> None:
    recommender = Recommender("sl", temperature=0.2)
    with pytest.raises(ConfigError, match="unknown option `temperature`"):
        recommender.set_params(loss="bpr", epochs=3)
    assert (recommender.loss, recommender.epochs) == ("sl", None)
    assert recommender.set_params(loss="bpr", temperature=None, epochs=3).epochs == 3


def test_its_text_tells_what_was_changed_and_what_was_learnt(log: Interactions) -> None:
    recommender = Recommender("sl", **OPTIONS)
    assert repr(recommender) == "Recommender(loss='sl', preset='fixed', dimension=8, epochs=3)"
    shown = repr(recommender.fit(log))
    assert f"60 users, 40 items, {len(log):,} pairs" in shown
    assert "sl (temperature 0.1) on mf, 8 dimensions" in shown
    best = recommender.metrics_["validation"]["ndcg@20"]
    assert f"NDCG@20 {best:.4f} in epoch {recommender.metrics_['best_epoch']} of 3" in shown
    assert "none was held out; epoch 3 of 3" in repr(recommender.fit(log, "none"))


def test_auto_says_what_it_found(log: Interactions) -> None:
    recommender = Recommender("sl", epochs=1).fit(log)
    rate = recommender.config_.training.learning_rate
    assert f"learning rate {rate:.4g}" in repr(recommender).partition("found by auto: ")[2]


def test_a_card_shows_facts_and_the_learning_curve(log: Interactions, tmp_path) -> None:
    recommender = Recommender("sl", **OPTIONS).fit(log)
    assert recommender.learning_curve_.columns == ["epoch", "loss", "validation", "seconds"]
    assert recommender.learning_curve_["epoch"].to_list() == [1, 2, 3]
    card = recommender._repr_html_()
    assert "40 items" in card
    best = recommender.metrics_["best_epoch"]
    assert f'alt="Validation by epoch; the best epoch is {best}."' in card
    # Nothing is loaded from elsewhere, and nothing in it is executed.
    assert "http" not in card
    assert "<script" not in card
    recommender.save(tmp_path / "run")
    loaded = Recommender.load(tmp_path / "run")
    assert loaded.learning_curve_.equals(recommender.learning_curve_)
    # Where epochs are equally good, the text and the picture name the same one.
    recommender.learning_curve_ = recommender.learning_curve_.with_columns(validation=pl.lit(0.5))
    recommender.metrics_["best_epoch"] = 3
    assert 'the best epoch is 3."' in recommender._repr_html_()
    unfitted = Recommender("<b>")._repr_html_()
    assert "&lt;b&gt;" in unfitted
    assert "<img" not in unfitted


def test_a_refit_shows_the_training_that_chose_the_epoch(log: Interactions) -> None:
    recommender = Recommender("sl", refit=True, **OPTIONS).fit(log)
    assert recommender.learning_curve_["epoch"].to_list() == [1, 2, 3]
    assert recommender.learning_curve_["validation"].null_count() == 0
