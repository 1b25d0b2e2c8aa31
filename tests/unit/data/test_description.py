import numpy as np
import pytest

from pslrec.data import Interactions, Vocabulary, describe


def with_popularity(*counts):
    """Items seen by so many users each."""
    items = np.repeat(np.arange(len(counts)), counts)
    return Interactions.from_ids(np.concatenate([np.arange(count) for count in counts]), items)


def test_counts_who_occurs_not_who_is_in_the_vocabulary():
    people, things = Vocabulary(range(9), kind="user"), Vocabulary(range(9), kind="item")
    summary = describe(Interactions(np.array([1, 1, 2]), np.array([3, 4, 3]), people, things))
    assert (summary.n_users, summary.n_items, summary.n_interactions) == (2, 2, 3)
    assert summary.history_lengths.tolist() == [1, 2]
    assert summary.item_popularity.tolist() == [2, 1]


def test_density_is_the_share_of_filled_places():
    assert describe(Interactions.from_ids([1, 1, 2], ["a", "b", "a"])).density == 3 / (2 * 2)


def test_density_counts_repeated_pairs_once():
    summary = describe(Interactions.from_ids([1, 1, 2], ["a", "a", "b"]))
    assert summary.density == 2 / (2 * 2)
    assert (summary.n_interactions, summary.n_pairs) == (3, 2)


def test_who_has_an_item_ten_times_has_one_item():
    summary = describe(Interactions.from_ids([1] * 10 + [2, 2, 3], ["a"] * 10 + ["b", "c", "b"]))
    assert summary.history_lengths.tolist() == [1, 1, 2]
    assert summary.item_popularity.tolist() == [2, 1, 1]
    assert summary.head_share == 2 / 4
    assert summary.gini == pytest.approx(1 / 6)


def test_gini_is_zero_if_all_items_are_equally_popular():
    assert describe(with_popularity(3, 3, 3)).gini == pytest.approx(0)


def test_gini_is_the_mean_difference_of_all_pairs_of_items():
    counts = np.array([9, 4, 1, 1])
    differences = np.abs(counts[:, None] - counts[None, :]).sum()
    assert describe(with_popularity(*counts)).gini == pytest.approx(
        differences / (2 * 4**2 * counts.mean())
    )


def test_head_share_is_that_of_the_top_tenth():
    assert describe(with_popularity(11, *[1] * 19)).head_share == pytest.approx((11 + 1) / 30)


def test_head_has_at_least_one_item():
    assert describe(with_popularity(3, 1)).head_share == pytest.approx(3 / 4)


def test_tail_items_share_a_fifth_of_the_interactions():
    # 2 of 10 interactions are a fifth: the two items with one each.
    assert describe(with_popularity(5, 3, 1, 1)).tail_items == 2


def test_nothing_is_described_as_nothing():
    summary = describe(Interactions.from_ids([], []))
    assert (summary.n_users, summary.n_items, summary.n_interactions, summary.density) == (
        0,
        0,
        0,
        0.0,
    )
