"""Blocks of users for exact training: who is in them, in which order, and what is refused."""

import numpy as np
import pytest

from pslrec.data.interactions import Interactions
from pslrec.data.synthetic import planted_tastes
from pslrec.errors import ConfigError
from pslrec.sampling import UserBlocks


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


def test_a_user_with_every_item_is_refused():
    log = Interactions.from_ids(["ann", "ann", "bob"], ["tea", "milk", "tea"])
    with pytest.raises(ConfigError, match="`ann` has interacted with every item"):
        UserBlocks(log)
    assert len(list(UserBlocks(log, include_positives=True).epoch(0))) == 1


@pytest.mark.parametrize(("option", "value"), [("batch_pairs", 0), ("noise", 1.0), ("noise", -0.1)])
def test_impossible_options_are_refused(train, option, value):
    with pytest.raises(ConfigError, match="must be"):
        UserBlocks(train, **{option: value})
