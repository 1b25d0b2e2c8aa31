"""The noise setting: which pairs become false negatives, and how often they are drawn."""

import numpy as np
import pytest

from pslrec.data import Interactions
from pslrec.data._synthetic import planted_tastes
from pslrec.errors import ConfigError
from pslrec.sampling import PairBatches, plant_false_negatives


@pytest.fixture(scope="module")
def train() -> Interactions:
    return planted_tastes(80, 60, seed=3).interactions


def keys(interactions: Interactions) -> set[int]:
    return set(interactions.pair_keys().tolist())


def test_a_tenth_of_all_pairs_is_taken_out_of_the_positives(train: Interactions) -> None:
    planted = plant_false_negatives(train, scope="global", seed=1)
    assert len(planted.false_negatives) == int(0.1 * len(train))
    assert keys(planted.train) | keys(planted.false_negatives) == keys(train)
    assert not keys(planted.train) & keys(planted.false_negatives)


def test_kept_positives_are_both(train: Interactions) -> None:
    planted = plant_false_negatives(train, keep_positives=True, seed=1)
    assert keys(planted.train) == keys(train)
    assert keys(planted.false_negatives) == keys(
        plant_false_negatives(train, seed=1).false_negatives
    )


def test_per_user_takes_the_same_share_of_each_user_rounded_down_but_one_at_least(
    train: Interactions,
) -> None:
    planted = plant_false_negatives(train, fraction=0.08, scope="per-user", seed=1)
    shares = [max(int(0.08 * n), 1) for n in train.user_counts()]
    assert planted.false_negatives.user_counts().tolist() == shares
    assert any(0.08 * n < 1 for n in train.user_counts())
    assert max(shares) > 1
    assert keys(planted.train) | keys(planted.false_negatives) == keys(train)


def test_per_user_leaves_the_only_pair_of_a_user() -> None:
    train = Interactions.from_ids(["a", "b", "b"], ["x", "x", "y"])
    planted = plant_false_negatives(train, scope="per-user")
    assert planted.train.user_counts().tolist() == [1, 1]


@pytest.mark.parametrize("scope", ["global", "per-user"])
def test_the_choice_depends_on_the_seed_and_not_on_the_order_of_the_log(
    train: Interactions, scope: str
) -> None:
    shuffled = train.select(np.random.default_rng(0).permutation(len(train)))
    chosen = keys(plant_false_negatives(train, scope=scope, seed=4).false_negatives)
    assert keys(plant_false_negatives(shuffled, scope=scope, seed=4).false_negatives) == chosen
    assert keys(plant_false_negatives(train, scope=scope, seed=5).false_negatives) != chosen


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1])
def test_the_share_must_lie_between_0_and_1(train: Interactions, fraction: float) -> None:
    with pytest.raises(ConfigError, match=r"`noise\.fraction` must lie between 0 and 1"):
        plant_false_negatives(train, fraction=fraction)


@pytest.mark.parametrize("probability", [0.05, 0.3, 1.0])
def test_false_negatives_are_drawn_with_the_probability_asked_for(
    train: Interactions, probability: float
) -> None:
    planted = plant_false_negatives(train, scope="per-user", seed=1)
    false = keys(planted.false_negatives)
    liked = keys(planted.train)
    batches = PairBatches(
        planted.train,
        n_negatives=200,
        false_negatives=planted.false_negatives,
        noise=probability,
        seed=2,
    )
    n_false = n_drawn = 0
    for batch in batches.epoch(0):
        drawn = batch.users.numpy()[:, None] * train.n_items + batch.negatives.numpy()
        n_false += int(np.isin(drawn, list(false)).sum())
        n_drawn += drawn.size
        assert not np.isin(drawn, list(liked)).any()
    # Six standard deviations.
    assert (
        abs(n_false / n_drawn - probability)
        <= 6 * (probability * (1 - probability) / n_drawn) ** 0.5
    )


def test_users_without_false_negatives_draw_from_the_usual_pool(train: Interactions) -> None:
    of_one = train.users == 0
    false = train.select(of_one & (train.items == train.items[of_one][0]))
    batches = PairBatches(train.select(~of_one), n_negatives=50, false_negatives=false, noise=1.0)
    taken = keys(train)
    for batch in batches.epoch(0):
        drawn = batch.users.numpy()[:, None] * train.n_items + batch.negatives.numpy()
        assert not np.isin(drawn, list(taken)).any()


def test_without_noise_false_negatives_are_never_drawn(train: Interactions) -> None:
    planted = plant_false_negatives(train, seed=1)
    batches = PairBatches(
        planted.train, n_negatives=100, false_negatives=planted.false_negatives, noise=0.0
    )
    for batch in batches.epoch(0):
        drawn = batch.users.numpy()[:, None] * train.n_items + batch.negatives.numpy()
        assert not np.isin(drawn, list(keys(planted.false_negatives))).any()
