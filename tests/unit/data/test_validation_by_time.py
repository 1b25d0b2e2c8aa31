"""Validation of splits by time follows time as well."""

import numpy as np
import pytest

from pslrec.data import Dataset, Interactions
from pslrec.data.splits import carve_validation, split_by_name
from pslrec.errors import DataError
from pslrec.evaluation._task import ranking_task

BY_TIME = ["temporal", "temporal-per-user", "leave-one-out"]


@pytest.fixture
def log():
    """Users who come one after the other and stay for a while, with many equal times."""
    chance = np.random.default_rng(0)
    users, items, times = [], [], []
    for user in range(80):
        chosen = chance.choice(50, 20, replace=False)
        users += [user] * 20
        items += chosen.tolist()
        times += (user * 5 + chance.integers(0, 200, 20)).tolist()
    return Interactions.from_ids(users, items, timestamps=times)


def older_than_training(dataset):
    """How many validation pairs are older than some training pair of the same user."""
    latest = np.full(dataset.n_users, -1)
    np.maximum.at(latest, dataset.train.users, dataset.train.timestamps)
    return int((dataset.validation.timestamps < latest[dataset.validation.users]).sum())


@pytest.mark.parametrize("split", BY_TIME)
@pytest.mark.parametrize("rule", ["fraction", "paper"])
def test_no_validation_pair_is_older_than_training(log, split, rule):
    dataset = split_by_name(log, split, validation=rule)
    assert older_than_training(dataset) == 0
    assert len(dataset.validation) > 50


def test_validation_of_a_random_split_is_drawn(log):
    dataset = split_by_name(log, "iid", validation="fraction")
    assert older_than_training(dataset) > 0.5 * len(dataset.validation)


def test_all_of_training_comes_before_all_of_validation_before_all_of_test(log):
    dataset = split_by_name(log, "temporal", validation="fraction")
    assert dataset.train.timestamps.max() <= dataset.validation.timestamps.min()
    assert dataset.validation.timestamps.max() <= dataset.test.timestamps.min()


@pytest.mark.parametrize("split", BY_TIME)
def test_nothing_is_lost_between_training_and_validation(log, split):
    whole = split_by_name(log, split)
    carved = split_by_name(log, split, validation="fraction")
    both = np.concatenate([carved.train.pair_keys(), carved.validation.pair_keys()])
    assert np.array_equal(np.sort(both), np.sort(whole.train.pair_keys()))
    assert np.array_equal(np.sort(carved.test.pair_keys()), np.sort(whole.test.pair_keys()))


def test_leave_one_out_validates_on_the_last_but_one():
    times = {"a": 40, "b": 10, "c": 30, "d": 20}
    users = [1] * 4 + [2] * 4 + [3] * 3
    items = [*"abcd", *"abcd", *"cab"]
    log = Interactions.from_ids(users, items, timestamps=[*times.values(), 10, 20, 30, 40, 1, 2, 3])
    dataset = split_by_name(log, "leave-one-out", validation="fraction")
    assert dataset.test.sorted().to_frame().rows() == [(1, "a", 40), (2, "d", 40), (3, "b", 3)]
    assert dataset.validation.sorted().to_frame().rows() == [(1, "c", 30), (2, "c", 30)]


def test_users_with_few_pairs_keep_them_in_training():
    users = [1] * 3 + [2] * 10 + [3] * 10
    items = [*"abc", *"abcdefghij", *"jihgfedcba"]
    log = Interactions.from_ids(users, items, timestamps=range(23))
    dataset = split_by_name(log, "temporal-per-user", validation="fraction", train_fraction=0.7)
    assert dataset.train.user_counts().tolist() == [2, 6, 6]
    assert dataset.validation.user_counts().tolist() == [0, 1, 1]


def test_choices_are_made_by_those_that_training_knows():
    train = Interactions.from_ids(
        [1, 1, 2, 2, 3], ["a", "b", "a", "b", "c"], timestamps=[1, 2, 3, 4, 90]
    )
    dataset = Dataset(train, train.select(np.zeros(0, dtype=np.int64)))
    chosen = np.array([False, True, False, True, True])
    dataset = Dataset(train.select(~chosen), dataset.test, train.select(chosen))
    strict = ranking_task(dataset, split="validation", protocol="strict")
    # Item b and user 3 come only in validation.
    assert strict.users.tolist() == []
    paper = ranking_task(dataset, split="validation", protocol="paper")
    assert paper.relevant.lengths.tolist() == [1, 1, 1]


def test_validation_in_which_nobody_is_known_is_refused():
    log = Interactions.from_ids([1] * 11 + [2], [*range(11), 0], timestamps=range(12))
    dataset = Dataset(log, log.select(np.zeros(0, dtype=np.int64)))
    with pytest.raises(
        DataError,
        match="none of the 1 validation pairs, the latest of training, has a user and an item that occur before",
    ):
        carve_validation(dataset, "fraction", split="temporal")


def test_times_are_needed(log):
    untimed = Dataset(Interactions.from_ids([1, 2], [1, 2]), Interactions.from_ids([1, 2], [1, 2]))
    with pytest.raises(DataError, match="needs timestamps"):
        carve_validation(untimed, "fraction", split="temporal")
    assert log.timestamps is not None


def test_leave_one_out_without_times_draws_one_of_each_user():
    log = Interactions.from_ids(np.repeat(np.arange(20), 6), np.tile(np.arange(6), 20))
    dataset = split_by_name(log, "leave-one-out", validation="fraction")
    assert dataset.validation.user_counts().tolist() == [1] * 20
    assert len(set(dataset.validation.items.tolist())) > 1
