"""Batches of pairs: every pair once, negatives that are none of the user's, the same whatever the circumstances."""

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from pslrec.data import Interactions
from pslrec.errors import ConfigError, DataError
from pslrec.sampling import PairBatches


def random_log(
    n_users: int = 30, n_items: int = 50, n_pairs: int = 400, seed: int = 0
) -> Interactions:
    random = np.random.default_rng(seed)
    keys = random.choice(n_users * n_items, size=n_pairs, replace=False)
    users, items = np.divmod(keys, n_items)
    everything = Interactions.from_ids(
        np.repeat(np.arange(n_users), n_items), np.tile(np.arange(n_items), n_users)
    )
    mask = np.isin(everything.pair_keys(), users * n_items + items)
    return everything.select(mask)


def of_lists(lists: list[list[int]], n_items: int) -> Interactions:
    users = [user for user, items in enumerate(lists) for _ in items]
    items = [item for items in lists for item in items]
    whole = Interactions.from_ids(
        np.repeat(np.arange(len(lists)), n_items), np.tile(np.arange(n_items), len(lists))
    )
    return whole.select(np.array(users) * n_items + np.array(items))


def pairs_and_negatives(batches: PairBatches, epoch: int = 0) -> dict[tuple[int, int], list[int]]:
    found = {}
    for batch in batches.epoch(epoch):
        for user, (positive, *negatives) in zip(
            batch.users.tolist(), batch.candidates.tolist(), strict=True
        ):
            assert (user, positive) not in found
            found[user, positive] = negatives
    return found


def test_an_epoch_has_every_pair_once_and_never_a_positive_as_negative() -> None:
    train = random_log()
    batches = PairBatches(train, n_negatives=20, batch_pairs=64, seed=1)
    found = pairs_and_negatives(batches)
    pairs = set(zip(train.users.tolist(), train.items.tolist(), strict=True))
    assert found.keys() == pairs
    assert not any(
        (user, item) in pairs for (user, _), negatives in found.items() for item in negatives
    )


def test_the_last_batch_holds_what_is_left() -> None:
    batches = PairBatches(random_log(n_pairs=130), n_negatives=1, batch_pairs=64)
    assert [len(batch.users) for batch in batches.epoch(0)] == [64, 64, 2]
    assert len(batches) == 3
    assert batches.n_pairs == 130


@pytest.mark.parametrize("n_negatives", [1, 2, 7])
@pytest.mark.parametrize("batch_pairs", [1, 64, 129, 130, 131, 1000])
def test_candidates_are_the_scores_of_the_largest_batch(batch_pairs: int, n_negatives: int) -> None:
    batches = PairBatches(random_log(n_pairs=130), n_negatives=n_negatives, batch_pairs=batch_pairs)
    sizes = [batch.candidates.numel() for batch in batches.epoch(0)]
    assert batches.n_candidates == max(sizes)
    assert sum(sizes) == 130 * (1 + n_negatives)


def test_negatives_are_uniform_over_the_items_a_user_does_not_have() -> None:
    train = of_lists([[0, 3, 4, 11], [19]], n_items=20)
    batches = PairBatches(train, n_negatives=4000, seed=3)
    counts = np.zeros(20)
    for (user, _), negatives in pairs_and_negatives(batches).items():
        if user == 0:
            counts += np.bincount(negatives, minlength=20)
    free = np.setdiff1d(np.arange(20), [0, 3, 4, 11])
    assert counts[[0, 3, 4, 11]].sum() == 0
    assert chisquare(counts[free]).pvalue > 1e-3


def test_draws_of_neighbouring_pairs_epochs_and_columns_are_unrelated() -> None:
    batches = PairBatches(of_lists([[0], [1], [2]], n_items=8), n_negatives=6000, seed=5)
    streams = [
        negatives for epoch in (0, 1) for negatives in pairs_and_negatives(batches, epoch).values()
    ]
    for one, other in [(0, 1), (0, 3), (1, 2), (2, 5)]:
        table = np.zeros((8, 8))
        np.add.at(table, (streams[one], streams[other]), 1)
        table = table[np.ix_(table.sum(1) > 0, table.sum(0) > 0)]
        expected = np.outer(table.sum(1), table.sum(0)) / table.sum()
        statistic = ((table - expected) ** 2 / expected).sum()
        assert statistic < 49 + 5 * np.sqrt(2 * 49)  # at most 49 degrees of freedom
    lagged = np.corrcoef(streams[0][:-1], streams[0][1:])[0, 1]
    assert abs(lagged) < 5 / np.sqrt(6000)


def test_negatives_of_a_pair_do_not_depend_on_batch_size_or_order_of_the_log() -> None:
    train = random_log()
    shuffled = train.select(np.random.default_rng(9).permutation(len(train)))
    small = PairBatches(train, n_negatives=7, batch_pairs=3, seed=2)
    large = PairBatches(shuffled, n_negatives=7, batch_pairs=1000, seed=2)
    assert pairs_and_negatives(small, epoch=4) == pairs_and_negatives(large, epoch=4)


def test_fewer_negatives_are_the_first_of_more() -> None:
    train = random_log()
    few = pairs_and_negatives(PairBatches(train, n_negatives=3, seed=2))
    many = pairs_and_negatives(PairBatches(train, n_negatives=9, seed=2))
    assert all(many[pair][:3] == negatives for pair, negatives in few.items())


def test_negatives_without_replacement_are_all_different() -> None:
    log = random_log()
    found = pairs_and_negatives(PairBatches(log, n_negatives=20, replacement=False))
    assert all(len(set(items)) == 20 for items in found.values())
    repeated = pairs_and_negatives(PairBatches(log, n_negatives=20))
    assert any(len(set(items)) < 20 for items in repeated.values())


def test_epoch_and_seed_change_order_and_negatives() -> None:
    train = random_log()
    batches = PairBatches(train, n_negatives=5, seed=1)
    first, second = (next(batches.epoch(epoch)) for epoch in (0, 1))
    other = next(PairBatches(train, n_negatives=5, seed=2).epoch(0))
    assert not torch.equal(first.users, second.users)
    assert not torch.equal(first.users, other.users)
    assert pairs_and_negatives(batches, 0) != pairs_and_negatives(batches, 1)
    again = next(PairBatches(train, n_negatives=5, seed=1).epoch(0))
    assert torch.equal(first.candidates, again.candidates)


def test_batches_can_be_asked_for_from_the_middle_of_an_epoch() -> None:
    batches = PairBatches(random_log(), n_negatives=5, batch_pairs=64)
    whole, rest = list(batches.epoch(2)), list(batches.epoch(2, first_batch=4))
    assert len(rest) == len(whole) - 4
    for one, other in zip(whole[4:], rest, strict=True):
        assert torch.equal(one.users, other.users)
        assert torch.equal(one.candidates, other.candidates)
    assert list(batches.epoch(2, first_batch=len(batches))) == []


def test_a_user_with_all_items_but_one_always_gets_that_one() -> None:
    train = of_lists([[0, 1, 2, 4, 5], [0]], n_items=6)
    found = pairs_and_negatives(PairBatches(train, n_negatives=50))
    assert all(set(negatives) == {3} for (user, _), negatives in found.items() if user == 0)


def test_a_user_with_every_item_is_named() -> None:
    train = of_lists([[0], [0, 1, 2]], n_items=3)
    with pytest.raises(ConfigError, match="user `1` has interacted with every item"):
        PairBatches(train, n_negatives=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_negatives": 0}, "`negatives` and `batch_pairs` must be at least 1"),
        ({"n_negatives": 1, "batch_pairs": 0}, "`negatives` and `batch_pairs` must be at least 1"),
        ({"n_negatives": 1, "noise": 1.5}, "`noise.probability` must lie between 0 and 1"),
        ({"n_negatives": 1, "noise": 0.5}, "needs `false_negatives`"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        PairBatches(random_log(), **options)


def test_no_training_pairs_are_refused() -> None:
    train = random_log()
    with pytest.raises(DataError, match="there are no training pairs"):
        PairBatches(train.select(np.zeros(len(train), dtype=bool)), n_negatives=1)


def test_item_rows_are_the_distinct_items_of_all_parts() -> None:
    whole = of_lists([[0, 1], [], [3]], n_items=4)
    more = of_lists([[1, 2], [0], []], n_items=4)
    rows = whole.rows.merged(more.rows)
    assert rows.offsets.tolist() == [0, 3, 4, 5]
    assert rows.items.tolist() == [0, 1, 2, 0, 3]
    assert rows.lengths.tolist() == [3, 1, 1]
