"""What every registered baseline must do; a new one is tested by being registered."""

import inspect

import numpy as np
import pytest
import torch

from matrices import interactions_of
from pslrec.baselines import BASELINES, Baseline
from pslrec.data import Dataset, Interactions
from pslrec.evaluation import Scorer, evaluate

N_USERS, N_ITEMS = 60, 40
# Everybody gets the same list from these, so they cannot tell one kind of user from the other.
IMPERSONAL = {"popularity"}


@pytest.fixture(scope="module")
def checkerboard() -> Dataset:
    """Users like the items of their own parity; some of those are held out."""
    random = np.random.default_rng(0)
    likes = (np.arange(N_USERS)[:, None] + np.arange(N_ITEMS)) % 2 == 0
    held_out = random.random(likes.shape) < 0.3
    return Dataset(
        interactions_of(likes & ~held_out), interactions_of(likes & held_out), name="checkerboard"
    )


@pytest.fixture(scope="module")
def skewed() -> Dataset:
    """Some items are liked by most users, others by few."""
    random = np.random.default_rng(1)
    likes = random.random((N_USERS, N_ITEMS)) < np.linspace(0.8, 0.02, N_ITEMS)
    held_out = random.random(likes.shape) < 0.3
    return Dataset(
        interactions_of(likes & ~held_out), interactions_of(likes & held_out), name="skewed"
    )


class RandomScorer:
    n_users, n_items = N_USERS, N_ITEMS

    def score(self, users: np.ndarray) -> torch.Tensor:
        generator = torch.Generator().manual_seed(int(users[0]))
        return torch.rand(len(users), N_ITEMS, generator=generator)


def make(name: str) -> Baseline:
    return BASELINES[name]()


@pytest.mark.parametrize("name", sorted(set(BASELINES) - IMPERSONAL))
def test_baseline_learns_the_checkerboard(name: str, checkerboard: Dataset) -> None:
    result = evaluate(
        make(name).fit(checkerboard.train), checkerboard, k=[5], metrics=["precision", "auc"]
    )
    held_out = checkerboard.test.user_counts()
    assert result["auc"] == pytest.approx(1.0)
    assert result["precision@5"] == pytest.approx(np.minimum(held_out, 5)[held_out > 0].mean() / 5)


@pytest.mark.parametrize("name", BASELINES.names())
def test_baseline_beats_chance(name: str, skewed: Dataset) -> None:
    learnt = evaluate(make(name).fit(skewed.train), skewed, k=[10], metrics=["ndcg"])
    chance = evaluate(RandomScorer(), skewed, k=[10], metrics=["ndcg"])
    assert learnt["ndcg@10"] > 1.3 * chance["ndcg@10"]


@pytest.mark.parametrize("name", BASELINES.names())
def test_scores_are_a_fresh_float32_row_per_user(name: str, skewed: Dataset) -> None:
    baseline = make(name).fit(skewed.train)
    users = np.array([3, 0, 3])
    scores = baseline.score(users)
    assert isinstance(baseline, Scorer)
    assert (baseline.n_users, baseline.n_items) == (N_USERS, N_ITEMS)
    assert scores.shape == (3, N_ITEMS)
    assert scores.dtype == torch.float32
    assert torch.equal(scores[0], scores[2])
    kept = scores.clone()
    scores.fill_(-torch.inf)
    torch.testing.assert_close(baseline.score(users), kept)
    torch.testing.assert_close(baseline.score(np.array([0])), kept[1:2])


@pytest.mark.parametrize("name", BASELINES.names())
def test_fitting_twice_gives_the_same_scores(name: str, skewed: Dataset) -> None:
    everybody = np.arange(N_USERS)
    assert torch.equal(
        make(name).fit(skewed.train).score(everybody), make(name).fit(skewed.train).score(everybody)
    )


@pytest.mark.parametrize("name", BASELINES.names())
def test_repeats_order_and_weights_of_interactions_change_nothing(
    name: str, skewed: Dataset
) -> None:
    train = skewed.train
    shuffled = np.random.default_rng(2).permutation(np.repeat(np.arange(len(train)), 2))
    weights = np.random.default_rng(3).random(2 * len(train))
    repeated = Interactions(
        train.users[shuffled],
        train.items[shuffled],
        train.user_vocabulary,
        train.item_vocabulary,
        weights=weights,
    )
    everybody = np.arange(N_USERS)
    assert torch.equal(
        make(name).fit(repeated).score(everybody), make(name).fit(train).score(everybody)
    )


@pytest.mark.parametrize("name", BASELINES.names())
def test_users_and_items_without_interactions_get_finite_scores(name: str) -> None:
    pairs = np.zeros((6, 5), dtype=bool)
    pairs[:4, :3] = np.tri(4, 3, dtype=bool)
    assert make(name).fit(interactions_of(pairs)).score(np.arange(6)).isfinite().all()


@pytest.mark.parametrize("name", BASELINES.names())
def test_scoring_before_fitting_says_what_to_do(name: str) -> None:
    with pytest.raises(RuntimeError, match="call `fit"):
        _ = make(name).n_items


@pytest.mark.parametrize("name", BASELINES.names())
def test_search_space_names_options_with_allowed_values(name: str) -> None:
    options = inspect.signature(BASELINES[name].__init__).parameters
    for option, values in BASELINES[name].search_space.items():
        assert option in options
        for value in values:
            assert getattr(BASELINES[name](**{option: value}), option) == value
