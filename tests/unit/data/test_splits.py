import numpy as np
import pytest

from pslrec.data import Dataset, Interactions
from pslrec.data.splits import (
    SPLITS,
    carve_validation,
    fraction_validation,
    iid_split,
    leave_one_out_split,
    no_split,
    paper_validation,
    popularity_split,
    split_by_name,
    temporal_split,
    temporal_split_per_user,
)
from pslrec.data.splits._base import divide
from pslrec.errors import DataError, UnknownNameError


def grid(n_users=10, n_items=10):
    """Every user with every item, each user beginning at another one."""
    users, items = np.divmod(np.arange(n_users * n_items), n_items)
    return Interactions.from_ids(users, items, timestamps=(items - users) % n_items * 100 + users)


def rows(interactions):
    return interactions.to_frame().rows()


def parts(dataset):
    return {name: rows(part) for name, part in dataset.parts().items()}


def test_registered_names_are_those_of_the_command_line():
    named = ["iid", "leave-one-out", "none", "popularity", "temporal", "temporal-per-user"]
    assert SPLITS.names() == named


@pytest.mark.parametrize("name", SPLITS)
def test_parts_share_vocabularies_with_the_log_and_make_it_up(name):
    log = grid()
    dataset = SPLITS[name](log)
    assert dataset.train.user_vocabulary is dataset.test.user_vocabulary is log.user_vocabulary
    assert sorted(rows(dataset.whole())) == sorted(rows(log))


@pytest.mark.parametrize("name", SPLITS)
def test_same_data_and_seed_give_the_same_parts_in_any_order_of_the_file(name):
    log = grid()
    shuffled = log.select(np.random.default_rng(5).permutation(len(log)))
    assert parts(SPLITS[name](log, seed=3)) == parts(SPLITS[name](shuffled, seed=3))


@pytest.mark.parametrize("name", ["iid", "popularity"])
def test_another_seed_gives_other_parts(name):
    assert parts(SPLITS[name](grid(), seed=0)) != parts(SPLITS[name](grid(), seed=1))


def test_splits_leave_the_global_generators_alone():
    import random

    state = random.getstate()
    paper_validation(popularity_split(grid()))
    assert random.getstate() == state


@pytest.mark.parametrize(("n_items", "n_train"), [(10, 8), (9, 7), (4, 3), (5, 4)])
def test_iid_keeps_the_floor_of_the_fraction_of_each_user(n_items, n_train):
    assert iid_split(grid(n_items=n_items)).train.user_counts().tolist() == [n_train] * 10


def test_no_split_holds_nothing_out():
    dataset = no_split(grid())
    assert len(dataset.train) == 100
    assert len(dataset.test) == 0


def test_who_has_one_item_is_trained_on_and_not_tested():
    log = Interactions.from_ids([1] * 10 + [2] * 10 + [3], [*range(10), *range(10), 5])
    dataset = iid_split(log)
    assert dataset.train.user_counts().tolist() == [8, 8, 1]
    assert dataset.test.user_counts()[2] == 0
    # A small fraction for training takes nobody's last one either.
    assert iid_split(grid(n_items=2), train_fraction=0.1).train.user_counts().tolist() == [1] * 10


def test_popularity_test_part_is_flat_and_every_item_stays_in_training():
    users, items = np.meshgrid(np.arange(200), np.arange(40))
    popular = users < np.geomspace(200, 10, 40).astype(int)[items]
    log = Interactions.from_ids(users[popular], items[popular])
    dataset = popularity_split(log)
    assert len(dataset.train) == int(0.8 * len(log))
    assert dataset.train.item_counts().min() >= 1
    drawn = dataset.test.item_counts()
    # The most popular item has 20 times the pairs of the least popular one, yet hardly more test pairs.
    assert drawn.max() < 3 * drawn.mean()
    assert log.item_counts().max() > 3 * log.item_counts().mean()


def test_popularity_comes_to_an_end_where_hardly_any_item_has_pairs_to_give():
    lonely = 3000
    log = Interactions.from_ids(
        [*range(lonely), *range(lonely)], [*range(lonely), *[lonely] * lonely]
    )
    dataset = popularity_split(log, train_fraction=0.6)
    assert len(dataset.test) == 2 * lonely - int(0.6 * 2 * lonely)
    assert dataset.train.item_counts().min() == 1


def test_popularity_takes_no_more_than_the_items_can_give():
    dataset = popularity_split(grid(3, 3), train_fraction=0.01)
    assert dataset.train.item_counts().tolist() == [1, 1, 1]


def test_temporal_tests_on_the_latest_of_all():
    dataset = temporal_split(grid())
    assert dataset.train.timestamps.max() < dataset.test.timestamps.min()
    assert len(dataset.train) + len(dataset.test) <= 100


def test_temporal_leaves_out_what_only_the_future_knows():
    log = Interactions.from_ids(
        [1, 1, 2, 2, 2], ["a", "b", "a", "b", "new"], timestamps=[1, 2, 3, 4, 5]
    )
    dataset = temporal_split(log, train_fraction=0.6)
    assert rows(dataset.test) == [(2, "b", 4)]


def test_temporal_per_user_tests_on_the_latest_of_each():
    dataset = temporal_split_per_user(grid())
    for user in range(10):
        train, test = (
            part.timestamps[part.users == user] for part in (dataset.train, dataset.test)
        )
        assert train.max() < test.min()
        assert (len(train), len(test)) == (8, 2)


def test_temporal_per_user_keeps_one_for_training():
    log = Interactions.from_ids([1, 1, 2, 2], ["a", "b", "b", "a"], timestamps=[1, 2, 1, 2])
    assert temporal_split_per_user(log, train_fraction=0.1).train.user_counts().tolist() == [1, 1]


@pytest.mark.parametrize("split", [temporal_split, temporal_split_per_user])
def test_temporal_needs_times(split):
    with pytest.raises(
        DataError, match="a temporal split needs timestamps, the interactions have none"
    ):
        split(Interactions.from_ids([1, 1], [1, 2]))


def test_equal_times_are_in_random_order_by_seed():
    log = Interactions.from_ids(
        np.repeat(np.arange(20), 10), np.tile(np.arange(10), 20), timestamps=np.zeros(200)
    )
    assert parts(temporal_split_per_user(log, seed=0)) != parts(
        temporal_split_per_user(log, seed=1)
    )


def test_leave_one_out_takes_the_latest_of_each_user_with_two():
    log = Interactions.from_ids([1, 1, 2, 2, 3], [*"abbab"], timestamps=[10, 20, 30, 40, 5])
    assert rows(leave_one_out_split(log).test) == [(1, "b", 20), (2, "a", 40)]


def test_leave_one_out_without_times_takes_any():
    log = Interactions.from_ids(np.repeat(np.arange(50), 4), np.tile(np.arange(4), 50))
    dataset = leave_one_out_split(log)
    assert dataset.test.user_counts().tolist() == [1] * 50
    assert len(set(dataset.test.items.tolist())) == 4


@pytest.mark.parametrize("name", SPLITS)
def test_repeated_pairs_are_never_on_both_sides(name):
    log = grid(20, 5)
    repeated = log.select(
        np.sort(np.concatenate([np.arange(100), np.arange(0, 100, 3), np.arange(0, 100, 6)]))
    )
    dataset = carve_validation(SPLITS[name](repeated), "fraction")
    found = [set(part.pair_keys().tolist()) for part in dataset.parts().values()]
    assert sum(map(len, found)) == len(set().union(*found))
    assert len(dataset.test) == len(found[2])


@pytest.mark.parametrize("fraction", [0, 1, -0.5, 2, float("nan")])
@pytest.mark.parametrize(
    "split", [iid_split, popularity_split, temporal_split, temporal_split_per_user]
)
def test_fractions_outside_of_zero_to_one_are_refused(split, fraction):
    with pytest.raises(DataError, match="`train_fraction` must lie between 0 and 1, got"):
        split(grid(), train_fraction=fraction)


@pytest.mark.parametrize("name", ["iid", "popularity", "leave-one-out"])
def test_too_little_data_is_explained(name):
    log = Interactions.from_ids(["a", "b"], [1, 2])
    with pytest.raises(
        DataError, match=r"the split leaves . training and 0 test pairs of 2, which is too little"
    ):
        SPLITS[name](log)


def test_one_user_only_can_not_be_split():
    with pytest.raises(DataError, match="the split leaves 8 training and 0 test pairs of 10"):
        iid_split(Interactions.from_ids([1] * 10, range(10)))


def test_paper_validation_takes_a_tenth_of_each_user_and_at_least_one():
    log = Interactions.from_ids([1] * 30 + [2] * 5 + [3], [*range(30), *range(5), 7])
    dataset = paper_validation(Dataset(log, log))
    # Nothing could be ranked for somebody without training items.
    assert dataset.validation.user_counts().tolist() == [3, 1, 0]
    assert dataset.train.user_counts().tolist() == [27, 4, 1]


def test_paper_validation_is_drawn_as_python_draws():
    import random

    log = Interactions.from_ids([1] * 30 + [2] * 5, [*range(30), *range(5)])
    draw = random.Random(2024)
    expected = {(1, item) for item in draw.sample(range(30), 3)} | {
        (2, item) for item in draw.sample(range(5), 1)
    }
    assert set(rows(paper_validation(Dataset(log, log)).validation)) == expected


def test_fraction_validation_leaves_two_to_each_user_and_one_to_each_item():
    log = Interactions.from_ids([1] * 30 + [2] * 3 + [3] * 2, [*range(30), 0, 1, 2, 0, 1])
    for seed in range(20):
        dataset = fraction_validation(Dataset(log, log), seed=seed)
        assert (dataset.train.user_counts() >= 2).all()
        assert (dataset.train.item_counts() >= 1).all()
        assert dataset.validation.user_counts()[2] == 0


def test_validation_is_carved_once():
    dataset = paper_validation(iid_split(grid()))
    with pytest.raises(DataError, match="has a validation part already"):
        paper_validation(dataset)
    assert carve_validation(dataset, "paper") is dataset


def test_validation_of_too_little_data_is_explained():
    log = Interactions.from_ids([1, 1, 2, 2], [1, 2, 1, 2])
    with pytest.raises(
        DataError, match="leaves 4 training and 0 validation pairs, which is too little"
    ):
        fraction_validation(Dataset(log, log))


def test_carving_keeps_test_and_name():
    before = Dataset(grid(), grid(), name="shop")
    after = paper_validation(before)
    assert after.name == "shop"
    assert after.test is before.test


def test_split_by_name_passes_on_what_it_is_given():
    dataset = split_by_name(grid(), "iid", train_fraction=0.5, validation="paper", seed=4)
    assert parts(dataset) == parts(paper_validation(iid_split(grid(), train_fraction=0.5, seed=4)))
    assert split_by_name(grid()).validation is None


def test_split_by_name_refuses_what_it_does_not_know():
    with pytest.raises(UnknownNameError, match="unknown split `random`"):
        split_by_name(grid(), "random")
    with pytest.raises(DataError, match="the split `leave-one-out` has no `train_fraction`"):
        split_by_name(grid(), "leave-one-out", train_fraction=0.5)
    with pytest.raises(
        DataError, match="`validation` must be one of none, paper, fraction, got `half`"
    ):
        split_by_name(grid(), validation="half")


def test_dividing_a_log_that_repeats_pairs_is_refused():
    log = Interactions.from_ids([1, 1, 2], ["a", "a", "a"])
    with pytest.raises(
        ValueError, match="must hold each pair once; a split starts with `each_pair_once`"
    ):
        divide(log, np.array([False, True, False]))
