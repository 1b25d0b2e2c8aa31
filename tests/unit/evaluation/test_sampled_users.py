"""Evaluation of a sample of users: who is drawn, and that each of them counts as always."""

import logging

import numpy as np
import pytest
import torch

from pslrec.config import RunConfig
from pslrec.config._sections import EvaluationSection
from pslrec.data import planted_tastes
from pslrec.data.splits import carve_validation, iid_split
from pslrec.errors import ConfigError
from pslrec.evaluation import EmbeddingScorer, evaluate, ranking_task
from pslrec.experiment import run
from pslrec.rows import Rows


@pytest.fixture(scope="module")
def dataset():
    log = planted_tastes(120, 60, seed=3).interactions
    return carve_validation(iid_split(log), "fraction")


@pytest.fixture(scope="module")
def scorer(dataset):
    torch.manual_seed(0)
    return EmbeddingScorer(torch.randn(dataset.n_users, 4), torch.randn(dataset.n_items, 4))


@pytest.mark.parametrize("split", ["validation", "test"])
@pytest.mark.parametrize("protocol", ["strict", "paper"])
def test_each_user_of_a_sample_has_the_same_values(dataset, scorer, split, protocol):
    options = {"split": split, "protocol": protocol, "k": (5, 20)}
    whole = evaluate(scorer, dataset, **options)
    some = evaluate(scorer, dataset, n_users=40, seed=1, **options)
    assert len(some.users) == 40
    assert np.all(np.diff(some.users) > 0)
    places = np.searchsorted(whole.users, some.users)
    for name, values in some.per_user.items():
        np.testing.assert_allclose(values, whole.per_user[name][places])
        assert some[name] == pytest.approx(values.mean())
    assert some.evaluated.users <= 40
    assert some.evaluated.of_users == dataset.n_users
    assert some.evaluated.pairs < whole.evaluated.pairs


def test_the_same_seed_draws_the_same_users(dataset):
    def drawn(seed):
        task = ranking_task(dataset, split="validation", protocol="strict", n_users=30, seed=seed)
        return task.users.tolist()

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_more_users_than_there_are_is_all_of_them(dataset, scorer):
    whole = evaluate(scorer, dataset)
    assert evaluate(scorer, dataset, n_users=10_000).metrics == whole.metrics
    with pytest.raises(ValueError, match="`n_users` must be at least 1, got 0"):
        evaluate(scorer, dataset, n_users=0)


def test_lists_are_merged_alike_in_blocks(monkeypatch):
    random = np.random.default_rng(0)
    one = Rows.from_lists([random.integers(0, 50, size) for size in random.integers(0, 9, 40)])
    other = Rows.from_lists([random.integers(0, 50, size) for size in random.integers(0, 9, 40)])
    whole = one.merged(other)
    monkeypatch.setattr("pslrec.rows.PIECE", 7)
    blocks = one.merged(other)
    assert np.array_equal(blocks.offsets, whole.offsets)
    assert np.array_equal(blocks.items, whole.items)
    for owner in range(40):
        expected = np.union1d(one.list_of(owner), other.list_of(owner))
        assert np.array_equal(whole.list_of(owner), expected)


def test_the_settings(caplog):
    assert EvaluationSection().n_validation_users(199_999) is None
    assert EvaluationSection(validation_users="all").n_validation_users(10**7) is None
    assert EvaluationSection(validation_users=7).n_validation_users(10) == 7
    assert EvaluationSection().n_test_users() is None
    for name in ("validation_users", "test_users"):
        with pytest.raises(ConfigError, match=f"evaluation.{name}.*number from 1"):
            RunConfig.from_settings({f"evaluation.{name}": 0})


def test_a_run_says_once_that_it_samples_and_says_how_many_at_the_end(caplog):
    caplog.set_level(logging.INFO)
    settings = {
        "data.source": "synthetic",
        "training.epochs": 2,
        "training.validate_every": 1,
        "backbone.dimension": 4,
        "sampling.negatives": 10,
        "evaluation.validation_users": 150,
        "evaluation.test_users": 200,
    }
    result = run(RunConfig.from_settings(settings))
    assert caplog.text.count("epochs are chosen on 150 of 2,000 users") == 1
    assert result.metrics["evaluated"]["validation"]["users"] == 150
    assert result.metrics["evaluated"]["test"]["users"] == 200
    again = run(RunConfig.from_settings({**settings, "training.seed": 5}))
    assert np.array_equal(result.test.users, again.test.users)
