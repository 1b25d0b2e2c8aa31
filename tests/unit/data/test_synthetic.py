import numpy as np
import pytest

from pslrec.data import Interactions
from pslrec.data._synthetic import PlantedTastes, TasteModel, checkerboard, planted_tastes
from pslrec.errors import DataError


@pytest.fixture(scope="module")
def planted() -> PlantedTastes:
    return planted_tastes(with_ratings=True, with_timestamps=True)


def gini(counts: np.ndarray) -> float:
    ordered = np.sort(counts)
    ranks = np.arange(1, len(ordered) + 1)
    return float(np.sum((2 * ranks - len(ordered) - 1) * ordered) / (len(ordered) * ordered.sum()))


def mean_ndcg(scores: np.ndarray, train: Interactions, test: Interactions, k: int = 20) -> float:
    wanted = test.matrix().toarray()
    scores = np.where(train.matrix().toarray() > 0, -np.inf, scores)
    hits = np.take_along_axis(wanted, np.argsort(-scores, axis=1)[:, :k], axis=1)
    discounts = 1 / np.log2(np.arange(2, k + 2))
    n_wanted = wanted.sum(axis=1).astype(int)
    judged = n_wanted > 0
    ideal = np.cumsum(discounts)[np.minimum(n_wanted[judged], k) - 1]
    return float(np.mean((hits @ discounts)[judged] / ideal))


def oracle_and_popularity(planted: PlantedTastes) -> tuple[float, float]:
    held_out = np.random.default_rng(0).random(len(planted.interactions)) < 0.2
    train, test = planted.interactions.select(~held_out), planted.interactions.select(held_out)
    popularity = np.broadcast_to(train.item_counts().astype(float), (train.n_users, train.n_items))
    return mean_ndcg(planted.preferences(), train, test), mean_ndcg(popularity, train, test)


def test_planted_tastes_have_the_promised_size(planted):
    assert (planted.interactions.n_users, planted.interactions.n_items) == (2000, 1500)
    lengths = planted.interactions.user_counts()
    assert 18 <= np.median(lengths) <= 22
    assert lengths.min() == 10
    assert lengths.max() > 60


def test_planted_tastes_are_equal_bit_for_bit_for_a_seed(planted):
    again = planted_tastes(with_ratings=True, with_timestamps=True)
    for column in ("users", "items", "ratings", "timestamps"):
        assert np.array_equal(
            getattr(planted.interactions, column), getattr(again.interactions, column)
        )
    assert np.array_equal(planted.preferences(), again.preferences())


def test_planted_tastes_differ_between_seeds(planted):
    other = planted_tastes(seed=1)
    assert not np.array_equal(planted.interactions.user_counts(), other.interactions.user_counts())


def test_planted_pairs_do_not_depend_on_extra_columns(planted):
    bare = planted_tastes().interactions
    assert bare.ratings is None
    assert bare.timestamps is None
    assert np.array_equal(bare.pair_keys(), planted.interactions.pair_keys())


def test_planted_pairs_are_sorted_without_repeats(planted):
    assert (np.diff(planted.interactions.pair_keys()) > 0).all()


def test_planted_popularity_has_a_long_tail(planted):
    counts = planted.interactions.item_counts()
    assert gini(counts) > 0.4
    assert np.sort(counts)[-150:].sum() > 0.35 * counts.sum()
    # Nearly all of it stays in a 10-core.
    assert (counts >= 10).mean() > 0.85


def test_planted_popularity_is_flat_without_exponent_and_tastes():
    flat = planted_tastes(model=TasteModel(n_topics=1, popularity_exponent=0)).interactions
    # One topic still has traits of its own, all equal to 1, so only chance is left.
    assert gini(flat.item_counts()) < 0.15


def test_oracle_is_far_above_popularity(planted):
    oracle, popularity = oracle_and_popularity(planted)
    assert oracle > 0.25
    assert oracle > 2 * popularity


def test_oracle_is_no_better_than_popularity_when_all_choices_are_noise():
    oracle, popularity = oracle_and_popularity(planted_tastes(model=TasteModel(noise=1)))
    assert abs(oracle - popularity) < 0.02


def test_noise_lowers_what_the_oracle_can_reach(planted):
    noisy, _ = oracle_and_popularity(planted_tastes(model=TasteModel(noise=0.3)))
    assert noisy < oracle_and_popularity(planted)[0] - 0.03


def test_choices_follow_the_planted_probabilities():
    # Equal chances of a first choice for many users of one topic: the counts tell the probabilities.
    model = TasteModel(n_topics=1, median_history=1, history_spread=0, minimum_history=1)
    planted = planted_tastes(20_000, 40, model=model)
    expected = 20_000 * planted.preferences(np.array([0]))[0]
    observed = planted.interactions.item_counts()
    chi_square = ((observed - expected) ** 2 / expected).sum()
    # 39 degrees of freedom: mean 39, standard deviation 8.8.
    assert chi_square < 39 + 5 * 8.8


def test_preferences_are_probabilities_of_low_rank():
    planted = planted_tastes(80, 60, model=TasteModel(n_topics=3))
    preferences = planted.preferences()
    assert preferences.sum(axis=1) == pytest.approx(np.ones(80))
    assert preferences.min() > 0
    assert np.linalg.matrix_rank(preferences) == 3
    assert np.array_equal(planted.preferences(slice(5, 7)), preferences[5:7])


def test_ratings_have_fixed_shares_and_rise_with_liking(planted):
    ratings = planted.interactions.ratings
    shares = np.bincount(ratings.astype(int), minlength=6)[1:] / len(ratings)
    assert shares == pytest.approx([0.06, 0.09, 0.2, 0.3, 0.35], abs=1e-3)
    users, items = planted.interactions.users, planted.interactions.items
    popularity = planted.topic_items.mean(axis=0)
    lift = np.log(planted.preferences()[users, items] / popularity[items])
    assert lift[ratings == 5].mean() > lift[ratings == 1].mean() + 1


def test_drift_ties_time_to_the_item():
    def correlation(drift: float) -> float:
        model = TasteModel(drift=drift)
        planted = planted_tastes(300, 200, model=model, with_timestamps=True)
        times, items = planted.interactions.timestamps, planted.interactions.items
        return float(np.corrcoef(times, planted.item_peaks[items])[0, 1])

    assert abs(correlation(0.0)) < 0.05
    assert correlation(0.5) > 0.5
    assert correlation(1.0) > 0.999


def test_timestamps_are_within_two_years_of_2020(planted):
    times = planted.interactions.timestamps
    assert times.min() >= 1_577_836_800
    assert times.max() < 1_577_836_800 + 2 * 365 * 86_400


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_topics": 0}, "`n_topics` must be from 1 to 1000, got 0"),
        ({"focus": 0.0}, "`focus` must be from 0.01 to 1000, got 0.0"),
        ({"popularity_exponent": -1}, "`popularity_exponent` must be from 0 to 10, got -1"),
        ({"median_history": 0}, "`median_history` must be"),
        ({"history_spread": float("nan")}, "`history_spread` must be from 0 to 5, got nan"),
        ({"minimum_history": 0}, "`minimum_history` must be"),
        ({"noise": 1.5}, "`noise` must be from 0 to 1, got 1.5"),
        ({"drift": -0.1}, "`drift` must be from 0 to 1, got -0.1"),
    ],
)
def test_taste_model_refuses_senseless_settings(settings, message):
    with pytest.raises(DataError, match=message):
        TasteModel(**settings)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((0, 100), "`n_users` must be at least 1, got 0"),
        ((5, 19), "`n_items` must be at least twice .* got 19"),
    ],
)
def test_planted_tastes_refuse_senseless_sizes(sizes, message):
    with pytest.raises(DataError, match=message):
        planted_tastes(*sizes)


def test_checkerboard_answer_is_the_choice_of_the_like_minded():
    board = checkerboard()
    train = board.train.matrix().toarray()
    scores = np.where(train > 0, -np.inf, train @ train.T @ train)
    assert np.array_equal(np.argmax(scores, axis=1), board.test.items)
    assert np.array_equal(board.test.users, np.arange(board.n_users))


def test_checkerboard_refuses_a_board_without_neighbours():
    with pytest.raises(DataError, match="must be at least 4, got 3 and 8"):
        checkerboard(3, 8)
