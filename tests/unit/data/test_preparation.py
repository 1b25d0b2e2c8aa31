import numpy as np
import pytest

from pslrec.config import RunConfig
from pslrec.data import Interactions, Preparation, prepare, warn_of_low_ratings
from pslrec.data._preparation import PAPER, compact, k_core_mask
from pslrec.errors import DataError
from pslrec.experiment import load_training_data


def log(pairs, **columns):
    users, items = zip(*pairs, strict=True)
    return Interactions.from_ids(users, items, **columns)


def rows(interactions):
    return interactions.to_frame().rows()


EVERYTHING = Preparation()


def test_paper_keeps_ratings_from_three_and_the_ten_core():
    assert Preparation(minimum_rating=3, k_core=10, weights="none") == PAPER


def test_ratings_below_the_threshold_go_and_those_at_it_stay():
    kept = prepare(
        log([(1, 1), (1, 2), (1, 3)], ratings=[2.9, 3, 5]), Preparation(minimum_rating=3)
    )
    assert rows(kept) == [(1, 2, 3.0), (1, 3, 5.0)]


def test_threshold_means_nothing_without_ratings():
    assert len(prepare(log([(1, 1), (1, 2)]), Preparation(minimum_rating=3))) == 2


def test_threshold_above_every_rating_is_explained():
    with pytest.raises(
        DataError, match="no interaction has a rating of at least 6, the highest is 5"
    ):
        prepare(log([(1, 1), (1, 2)], ratings=[4, 5]), Preparation(minimum_rating=6))


def test_a_low_rating_does_not_hide_a_later_high_one_of_the_same_pair():
    again = log([(1, 1), (1, 1)], ratings=[1, 5], timestamps=[10, 20])
    assert rows(prepare(again, Preparation(minimum_rating=3))) == [(1, 1, 5.0, 20)]


def test_repeated_pairs_count_once_and_the_earliest_stays():
    again = log([(1, 2), (1, 1), (1, 2), (1, 2)], timestamps=[30, 5, 10, 20], ratings=[1, 2, 3, 4])
    assert rows(prepare(again, EVERYTHING)) == [(1, 1, 2.0, 5), (1, 2, 3.0, 10)]


def test_without_times_the_first_of_a_repeated_pair_stays():
    assert rows(prepare(log([(1, 2), (1, 1), (1, 2)], ratings=[3, 2, 1]), EVERYTHING)) == [
        (1, 1, 2.0),
        (1, 2, 3.0),
    ]


def test_result_is_sorted_by_user_and_item():
    assert rows(prepare(log([("b", 2), ("a", 9), ("b", 1)]), EVERYTHING)) == [
        ("a", 9),
        ("b", 1),
        ("b", 2),
    ]


@pytest.mark.parametrize(
    "columns", [{}, {"ratings": [1, 2, 4]}, {"timestamps": [3, 1, 2]}, {"weights": [1, 2, 4]}]
)
def test_count_is_how_often_a_pair_was_seen(columns):
    prepared = prepare(log([(1, 1), (1, 2), (1, 1)], **columns), Preparation(weights="count"))
    assert prepared.weights.tolist() == ([5, 2] if "weights" in columns else [2, 1])


def test_rating_weight_is_the_sum_of_ratings():
    prepared = prepare(
        log([(1, 1), (1, 2), (1, 1)], ratings=[1, 2, 4]), Preparation(weights="rating")
    )
    assert prepared.weights.tolist() == [5, 2]


def test_weights_of_the_log_add_up_even_if_none_are_asked_for():
    assert prepare(log([(1, 1), (1, 1)], weights=[1.5, 2]), EVERYTHING).weights.tolist() == [3.5]


def test_rating_weights_that_are_not_positive_are_refused():
    with pytest.raises(DataError, match="`weights` must be positive"):
        prepare(log([(1, 1), (1, 2)], ratings=[-1, 2]), Preparation(weights="rating"))


@pytest.mark.parametrize(
    ("preparation", "message"),
    [
        (Preparation(k_core=-1), "`k_core` must not be negative, got -1"),
        (
            Preparation(weights="counts"),
            "`weights` must be one of none, count, rating, got `counts`",
        ),
        (
            Preparation(weights="rating"),
            "`weights` cannot be `rating`, the interactions have no ratings",
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused(preparation, message):
    with pytest.raises(DataError, match=message):
        prepare(log([(1, 1)]), preparation)


def test_nothing_can_not_be_prepared():
    with pytest.raises(DataError, match="there are no interactions to prepare"):
        prepare(Interactions.from_ids([], []), EVERYTHING)


# A square of two users and two items, with a tail that falls off one by one.
TAIL = [("a", 1), ("a", 2), ("b", 1), ("b", 2), ("b", 3), ("c", 3), ("c", 4), ("d", 4)]


def test_core_is_iterated_until_nothing_changes():
    assert rows(prepare(log(TAIL), Preparation(k_core=2))) == [
        ("a", 1),
        ("a", 2),
        ("b", 1),
        ("b", 2),
    ]


@pytest.mark.parametrize("k", [0, 1])
def test_core_of_one_is_everything(k):
    assert len(prepare(log(TAIL), Preparation(k_core=k))) == len(TAIL)
    assert k_core_mask(log(TAIL), k).all()


def test_repeated_pairs_do_not_lift_anybody_into_the_core():
    with pytest.raises(DataError, match="nothing is left"):
        prepare(log([("a", 1), ("a", 1), ("b", 1), ("b", 1)]), Preparation(k_core=2))


@pytest.mark.parametrize("k", [3, 4, 10**12])
def test_empty_core_names_the_largest_that_is_not(k):
    with pytest.raises(DataError) as caught:
        prepare(log([*TAIL, *TAIL]), Preparation(k_core=k))
    assert str(caught.value) == (
        f"nothing is left of 8 interactions in the {k}-core; the largest core that is not empty is 2: "
        "lower `k_core` (on the command line --k-core)"
    )


def test_empty_core_of_a_single_pair_names_the_core_of_one():
    with pytest.raises(DataError, match="the largest core that is not empty is 1"):
        prepare(log([("a", 1)]), Preparation(k_core=2))


def test_vocabularies_hold_only_who_is_left_in_the_order_they_had():
    prepared = prepare(log([*TAIL, ("0", 9)]), Preparation(k_core=2))
    assert prepared.user_vocabulary.ids([0, 1]) == ["a", "b"]
    assert (prepared.n_users, prepared.n_items) == (2, 2)


def test_compact_keeps_every_column():
    whole = log(
        [("a", 1), ("b", 2), ("c", 3)], ratings=[1, 2, 3], timestamps=[4, 5, 6], weights=[7, 8, 9]
    )
    part = compact(whole.select(np.array([2, 0])))
    assert rows(part) == [("c", 3, 3.0, 6, 9.0), ("a", 1, 1.0, 4, 7.0)]
    assert (part.n_users, part.n_items) == (2, 2)


def test_prepare_leaves_its_input_alone():
    whole = log([*TAIL, *TAIL], ratings=range(16), timestamps=range(16, 0, -1))
    before = whole.to_frame()
    prepare(whole, Preparation(minimum_rating=2, k_core=2, weights="count"))
    assert whole.to_frame().equals(before)


def test_large_vocabularies_do_not_overflow_the_keys():
    users = np.repeat(np.arange(60_000), 2)
    items = np.tile([0, 59_999], 60_000)
    whole = Interactions.from_ids(users, items, ratings=np.ones(len(users)))
    assert len(prepare(whole.select(np.arange(len(users))[::-1]), Preparation(k_core=2))) == 120_000


@pytest.mark.parametrize(
    ("ratings", "said"),
    [
        (
            [1, 5, 3, 2],
            [
                "from 1 to 5, and all 4 interactions",
                "the 50.0 % rated below 3",
                "minimum_rating=3`",
            ],
        ),
        ([0.5, 4, 4, 4], ["from 0.5 to 4", "the 25.0 % rated below 4"]),
        ([0, 1, 1, 1], ["the 25.0 % rated below 1", "and 0 keeps all without this warning"]),
        # None are low, the low ones are gone already, counts, no ratings.
        ([5, 5, 5, 5], []),
        ([3, 4, 5, 5], []),
        (list(range(1, 30)), []),
        (None, []),
    ],
)
def test_low_ratings_that_count_as_any_other_are_named(caplog, ratings, said):
    n_pairs = len(ratings or [1, 2])
    log = Interactions.from_ids(list(range(n_pairs)), ["tea"] * n_pairs, ratings=ratings)
    warn_of_low_ratings(log)
    assert len(caplog.records) == bool(said)
    for words in said:
        assert words in caplog.text


@pytest.mark.parametrize("minimum", [None, 3.0])
def test_a_training_says_that_low_ratings_count(caplog, tmp_path, minimum):
    """Half a star was a positive like five, without a word."""
    path = tmp_path / "log.csv"
    rows = [f"u{user},i{item},{1 + (user + item) % 5}" for user in range(30) for item in range(20)]
    path.write_text("\n".join(["user,item,rating", *rows]))
    settings = {"data.source": str(path)}
    if minimum is not None:
        settings["data.minimum_rating"] = minimum
    load_training_data(RunConfig.from_settings(settings).resolved())
    assert ("count alike" in caplog.text) == (minimum is None)
