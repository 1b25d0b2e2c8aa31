"""Blocks of users for exact training: who is in them, in which order, and what is refused."""

import numpy as np
import pytest
import torch

from pslrec.data import Interactions
from pslrec.data._synthetic import planted_tastes
from pslrec.errors import ConfigError
from pslrec.sampling import Hiding, UserBlocks


@pytest.fixture(scope="module")
def train():
    return planted_tastes(120, 90, seed=3).interactions


def users_of(blocks, epoch, **options):
    return [block.users.tolist() for block in blocks.epoch(epoch, **options)]


def test_an_epoch_holds_every_user_and_pair_once(train):
    blocks = UserBlocks(train, batch_pairs=100)
    seen = [user for block in users_of(blocks, 0) for user in block]
    assert sorted(seen) == sorted(np.flatnonzero(train.user_counts()))
    pairs = sum(len(block.pairs()[0]) for block in blocks.epoch(0))
    assert pairs == blocks.n_pairs == len(train)


def test_blocks_hold_about_as_many_pairs_as_asked_for(train):
    blocks = UserBlocks(train, batch_pairs=100)
    longest = int(train.user_counts().max())
    counts = [len(block.pairs()[0]) for block in blocks.epoch(0)]
    assert max(counts) <= 100 + longest
    assert len(counts) <= len(blocks)


def test_order_depends_on_seed_and_epoch_alone(train):
    first, again, other = (UserBlocks(train, batch_pairs=100, seed=seed) for seed in (1, 1, 2))
    assert users_of(first, 4) == users_of(again, 4)
    assert users_of(first, 4) != users_of(first, 5)
    assert users_of(first, 4) != users_of(other, 4)


def test_a_resumed_epoch_goes_on_with_the_blocks_that_were_left(train):
    blocks = UserBlocks(train, batch_pairs=100)
    assert users_of(blocks, 2, first_batch=3) == users_of(blocks, 2)[3:]


def test_positives_are_negatives_only_where_asked_for(train):
    for include, expected in ((False, 0.0), (True, 1.0)):
        block = next(UserBlocks(train, include_positives=include).epoch(0))
        owners, items = block.pairs()
        assert (block.weights()[owners, items] == expected).all()


@pytest.mark.parametrize("include", [False, True])
def test_negatives_are_all_items_or_those_without_the_positives_for_every_user(train, include):
    """One block of all users: a single positive that was left out by mistake would lie with one user alone."""
    (block,) = UserBlocks(train, batch_pairs=len(train), include_positives=include).epoch(0)
    assert len(block.users) == np.count_nonzero(train.user_counts())
    expected = torch.ones(len(block.users), train.n_items)
    if not include:
        row_of = {user: row for row, user in enumerate(block.users.tolist())}
        for user, item in zip(train.users.tolist(), train.items.tolist(), strict=True):
            expected[row_of[user], item] = 0.0
    assert torch.equal(block.weights(), expected)


def test_a_user_with_all_items_but_one_keeps_its_positives_as_negatives():
    log = Interactions.from_ids(["ann", "ann", "bob"], ["tea", "milk", "tea"])
    (block,) = UserBlocks(log, include_positives=True).epoch(0)
    assert torch.equal(block.weights(), torch.ones(2, 2))


@pytest.mark.parametrize("batch_pairs", [1, 30, 100, 10**6])
@pytest.mark.parametrize("n_shared", [None, 10, 90])
def test_candidates_are_the_scores_of_an_average_block(train, batch_pairs, n_shared):
    blocks = UserBlocks(train, batch_pairs=batch_pairs, n_shared=n_shared)
    n_users = np.count_nonzero(train.user_counts())
    users_per_block = -(-n_users // len(blocks))
    is_part = n_shared is not None and n_shared < train.n_items
    columns = min(train.n_items, n_shared + batch_pairs) if is_part else train.n_items
    assert blocks.n_candidates == users_per_block * columns


def test_a_user_with_every_item_is_refused():
    log = Interactions.from_ids(["ann", "ann", "bob"], ["tea", "milk", "tea"])
    with pytest.raises(ConfigError, match="`ann` has interacted with every item"):
        UserBlocks(log)
    assert len(list(UserBlocks(log, include_positives=True).epoch(0))) == 1


def drawn_of(blocks, epoch, **options):
    return [block.drawn.tolist() for block in blocks.epoch(epoch, **options)]


def test_shared_items_depend_on_seed_epoch_and_block_alone(train):
    first, again, other = (
        UserBlocks(train, batch_pairs=100, n_shared=20, seed=seed) for seed in (1, 1, 2)
    )
    drawn = drawn_of(first, 4)
    assert all(len(set(block)) == len(block) == 20 and block == sorted(block) for block in drawn)
    assert drawn == drawn_of(again, 4)
    assert drawn[2:] == drawn_of(first, 4, first_batch=2)
    assert len(
        {tuple(block) for block in [*drawn, *drawn_of(first, 5), *drawn_of(other, 4)]}
    ) == 3 * len(drawn)


def test_every_item_is_drawn_alike(train):
    blocks = UserBlocks(train, batch_pairs=100, n_shared=30)
    counts = np.bincount(
        np.concatenate([np.concatenate(drawn_of(blocks, epoch)) for epoch in range(20)])
    )
    n_blocks = counts.sum() / 30
    assert len(counts) == 90
    assert np.abs(counts / n_blocks - 1 / 3).max() < 5 * np.sqrt(2 / 9 / n_blocks)


@pytest.mark.parametrize("n_shared", [None, 90, 1000])
def test_nothing_is_drawn_where_all_items_are_asked_for(train, n_shared):
    assert next(UserBlocks(train, n_shared=n_shared).epoch(0)).drawn is None


def test_a_user_who_has_all_that_is_drawn_keeps_a_negative():
    log = Interactions.from_ids(["ann"] * 8 + ["bob"], [*"abcdefgh", "z"])
    for epoch in range(20):
        for block in UserBlocks(log, n_shared=1, seed=epoch).epoch(epoch):
            reduced = block.reduced()
            assert (reduced.block.weights().sum(dim=1) >= 1).all()
            assert (reduced.shares >= 1).all()


def test_a_part_has_the_positives_and_weighs_as_the_whole_does(train):
    false = train.select(np.arange(0, len(train), 7))
    kept = train.select(np.setdiff1d(np.arange(len(train)), np.arange(0, len(train), 7)))
    for options in ({}, {"false_negatives": false, "noise": 0.3}):
        block = next(UserBlocks(kept, batch_pairs=100, n_shared=25, **options).epoch(0))
        reduced = block.reduced()
        part, whole = reduced.block.weights(torch.float64), block.weights(torch.float64)
        owners, columns = reduced.block.pairs()
        assert (owners.tolist(), reduced.columns[columns].tolist()) == tuple(
            each.tolist() for each in block.pairs()
        )
        # What is drawn weighs alike, what is not weighs nothing, unless it is the user's own false negative.
        torch.testing.assert_close((part * reduced.shares.unsqueeze(1)).sum(1), whole.sum(1))
        is_plain = (whole == 1.0)[:, reduced.columns]
        is_drawn = torch.isin(reduced.columns, block.drawn)
        torch.testing.assert_close(part * is_plain, (is_plain & is_drawn).double())
        assert bool(((part > 0) <= (whole[:, reduced.columns] > 0)).all())


@pytest.mark.parametrize(
    ("option", "value"), [("batch_pairs", 0), ("noise", 1.0), ("noise", -0.1), ("n_shared", 0)]
)
def test_impossible_options_are_refused(train, option, value):
    with pytest.raises(ConfigError, match=r"must be|needs an N"):
        UserBlocks(train, **{option: value})


@pytest.mark.parametrize("hiding", [None, Hiding(0.5, "hidden"), Hiding(0.5, "all")])
@pytest.mark.parametrize("n_shared", [None, 3])
def test_blocks_of_kept_users_are_what_they_were(train, hiding, n_shared):
    def blocks():
        return UserBlocks(train, batch_pairs=100, n_shared=n_shared, hiding=hiding, seed=1)

    owned = range(30, 70)
    kept = blocks()
    kept.keep(owned)
    n_seen = 0
    for found, wanted in zip(
        kept.epoch(2, owned=owned), blocks().epoch(2, owned=owned), strict=True
    ):
        assert found.users.tolist() == wanted.users.tolist()
        assert found.share == wanted.share
        assert [each.tolist() for each in found.pairs()] == [
            each.tolist() for each in wanted.pairs()
        ]
        if n_shared is not None:
            # Three drawn items may all be taken by somebody who is not kept.
            assert found.drawn.tolist() == wanted.drawn.tolist()
        for user in found.users.tolist():
            taken = wanted.pool.taken.list_of(user)
            assert found.pool.taken.list_of(user).tolist() == taken.tolist()
            if wanted.visible is not None:
                visible = wanted.visible.list_of(user)
                assert found.visible.list_of(user).tolist() == visible.tolist()
        n_seen += len(found.users)
    assert n_seen == len(owned)
    assert found.positives.lengths.sum() < wanted.positives.lengths.sum()
