"""The popularity split to the last pair: what an item can give, it gives, and it always keeps one."""

from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from pslrec.data import Interactions
from pslrec.data.splits import popularity, popularity_split


def test_popularity_takes_from_an_item_of_two_pairs_as_from_others():
    """Two pairs are one more than training needs."""
    # Each user has an item of its own as well, so that nobody is left without training data.
    own = [f"own {user}" for user in range(9)]
    log = Interactions.from_ids(
        [*range(9), 0, 1, *range(9)], [*["often"] * 9, *["twice"] * 2, *own]
    )
    has_given = []
    for seed in range(40):
        dataset = popularity_split(log, train_fraction=0.9, seed=seed)
        assert len(dataset.test) == 2
        has_given.append("twice" in dataset.test.to_frame()["item"].to_list())
    assert 10 < sum(has_given) < 40


def test_popularity_finds_the_one_item_that_has_a_pair_to_give():
    """Items that have nothing to give are put aside; one of two pairs is none of them."""
    lonely = 3000
    log = Interactions.from_ids([*range(lonely), 0, 1], [*range(lonely), lonely, lonely])
    dataset = popularity_split(log, train_fraction=0.5)
    assert dataset.test.to_frame()["item"].to_list() == [lonely]


@given(
    counts=st.lists(st.integers(1, 6), min_size=1, max_size=12).filter(
        lambda counts: max(counts) > 1
    ),
    share=st.floats(0.01, 0.99),
    seed=st.integers(0, 99),
)
def test_popularity_gives_what_is_asked_for_or_all_that_items_can_give(
    counts: list[int], share: float, seed: int
):
    users = [user for count in counts for user in range(count)]
    items = [item for item, count in enumerate(counts) for _ in range(count)]
    # Each user has an item of its own as well, so that nobody is left without training data.
    n_users = max(counts)
    log = Interactions.from_ids([*users, *range(n_users)], [*items, *range(100, 100 + n_users)])
    with mock.patch.object(popularity, "PATIENCE", 3):
        dataset = popularity_split(log, train_fraction=share, seed=seed)
    n_asked = len(log) - int(share * len(log))
    n_possible = len(log) - log.n_items
    assert len(dataset.test) == min(n_asked, n_possible)
    assert dataset.train.item_counts().min() >= 1
    assert sorted(dataset.whole().pair_keys()) == sorted(log.pair_keys())
