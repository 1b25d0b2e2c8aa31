"""Histories divided into a visible and a hidden part: how many, by what, and who is left out."""

import math
from itertools import pairwise

import numpy as np
import pytest

from matrices import interactions_of
from pslrec.data import Interactions
from pslrec.data._synthetic import planted_tastes
from pslrec.errors import DataError
from pslrec.rows import Rows
from pslrec.sampling import DividedHistories, Hiding, PairBatches, UserBlocks

HALF = Hiding(0.5, predicts="hidden")
each_kind = pytest.mark.parametrize("predicts", ["all", "hidden"])


@pytest.fixture(scope="module")
def train() -> Interactions:
    return planted_tastes(120, 90, seed=3).interactions


def pairs_of(rows: Rows) -> set[tuple[int, int]]:
    owners, items = rows.positions(np.arange(len(rows)))
    return set(zip(owners.tolist(), items.tolist(), strict=True))


@pytest.mark.parametrize("visible", [0.1, 0.3, 0.5, 0.9])
def test_both_parts_together_are_the_history_and_have_the_counts_promised(
    train: Interactions, visible: float
) -> None:
    divided = DividedHistories(train.rows, Hiding(visible, predicts="hidden"), seed=1)
    shown, hidden = divided.divide(4)
    assert pairs_of(shown) | pairs_of(hidden) == pairs_of(train.rows)
    assert not pairs_of(shown) & pairs_of(hidden)
    for user, length in enumerate(train.rows.lengths.tolist()):
        wanted = math.ceil(round(visible * length, 6))
        expected = min(max(wanted, 1), max(length - 1, 1))
        if length:
            assert shown.lengths[user] == expected
    assert hidden.lengths.tolist() == divided.n_positives.tolist()
    assert divided.n_pairs == len(shown.items) + len(hidden.items)
    for part in (shown, hidden):
        for user in range(len(part)):
            assert all(low < high for low, high in pairwise(part.list_of(user).tolist()))


@pytest.mark.parametrize("visible", [0.1, 0.5, 0.9])
def test_all_items_are_positives_and_the_same_ones_are_visible(
    train: Interactions, visible: float
) -> None:
    parts = []
    for predicts in ("hidden", "all"):
        divided = DividedHistories(train.rows, Hiding(visible, predicts), seed=1)
        parts.append(divided.divide(4))
    (shown, _), (also_shown, positives) = parts
    assert pairs_of(also_shown) == pairs_of(shown)
    assert pairs_of(positives) == pairs_of(train.rows)
    assert divided.n_positives.tolist() == train.rows.lengths.tolist()


def test_with_all_visible_nothing_is_divided(train: Interactions) -> None:
    divided = DividedHistories(train.rows, Hiding(1.0, predicts="all"), seed=1)
    for part in divided.divide(3):
        assert pairs_of(part) == pairs_of(train.rows)
    assert divided.is_visible(3).all()
    assert divided.n_positives.tolist() == train.rows.lengths.tolist()


def test_a_product_that_is_a_whole_number_is_not_rounded_up() -> None:
    # In floating point, 0.1 times 30 is more than 3.
    hiding = Hiding(0.1, predicts="hidden")
    divided = DividedHistories(Rows.from_lists([range(30)]), hiding, seed=0)
    assert divided.n_positives.tolist() == [27]


def test_a_division_depends_on_seed_and_epoch(train: Interactions) -> None:
    def hidden(seed: int, epoch: int) -> set[tuple[int, int]]:
        return pairs_of(DividedHistories(train.rows, HALF, seed=seed).divide(epoch)[1])

    assert hidden(1, 3) == hidden(1, 3)
    assert hidden(1, 3) != hidden(1, 4)
    assert hidden(1, 3) != hidden(2, 3)


def test_a_division_does_not_depend_on_other_users_nor_on_the_order_of_the_log(
    train: Interactions,
) -> None:
    whole, _ = DividedHistories(train.rows, HALF, seed=7).divide(2)
    shuffled = train.select(np.random.default_rng(0).permutation(len(train)))
    again, _ = DividedHistories(shuffled.rows, HALF, seed=7).divide(2)
    assert pairs_of(again) == pairs_of(whole)
    for user in (0, 31, 119):
        alone = train.select(train.users == user)
        part, _ = DividedHistories(alone.rows, HALF, seed=7).divide(2)
        assert part.list_of(user).tolist() == whole.list_of(user).tolist()


def test_every_pair_and_every_two_pairs_are_hidden_as_often_as_by_chance() -> None:
    hidden = DividedHistories(Rows.from_lists([range(6), range(6)]), HALF, seed=0)
    n_epochs = 2000
    masks = np.array([~hidden.is_visible(epoch) for epoch in range(n_epochs)], dtype=float)
    together = masks.T @ masks / n_epochs
    # Of six items three are hidden; within five standard errors.
    margin = 5 * 0.5 / math.sqrt(n_epochs)
    assert np.abs(np.diag(together) - 1 / 2).max() < margin
    of_one_user = together[:6, :6][~np.eye(6, dtype=bool)]
    assert np.abs(of_one_user - 1 / 2 * 2 / 5).max() < margin
    # The same items of another user are hidden at other times.
    assert np.abs(together[:6, 6:] - 1 / 4).max() < margin


def test_users_with_one_item_or_none_are_left_out_of_both_kinds_of_batches() -> None:
    train = interactions_of(np.array([[1, 1, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0], [1, 0, 1, 0]]) > 0)
    for epoch in range(5):
        blocks = UserBlocks(train, batch_pairs=2, hiding=HALF)
        users = [user for block in blocks.epoch(epoch) for user in block.users.tolist()]
        assert sorted(users) == [0, 3]
        pairs = PairBatches(train, n_negatives=2, batch_pairs=2, hiding=HALF)
        users = [user for batch in pairs.epoch(epoch) for user in batch.users.tolist()]
        assert sorted(users) == [0, 3]


@pytest.mark.parametrize("visible", [0.5, 1.0])
def test_users_with_one_item_are_trained_on_where_all_items_are_predicted(visible: float) -> None:
    train = interactions_of(np.array([[1, 1, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0], [1, 0, 1, 0]]) > 0)
    hiding = Hiding(visible, predicts="all")
    for epoch in range(5):
        blocks = UserBlocks(train, batch_pairs=2, hiding=hiding)
        users = [user for block in blocks.epoch(epoch) for user in block.users.tolist()]
        assert sorted(users) == [0, 1, 3]
        pairs = PairBatches(train, n_negatives=2, batch_pairs=2, hiding=hiding)
        users = [user for batch in pairs.epoch(epoch) for user in batch.users.tolist()]
        assert sorted(users) == [0, 0, 0, 1, 3, 3]


def test_data_in_which_nobody_has_two_items_are_refused() -> None:
    train = interactions_of(np.eye(3, 5) > 0)
    message = r"no user has two items.*give more data, or set `backbone.predicts` to all"
    with pytest.raises(DataError, match=message):
        UserBlocks(train, hiding=HALF)
    with pytest.raises(DataError, match=message):
        PairBatches(train, n_negatives=1, hiding=HALF)


def test_data_in_which_nobody_has_two_items_are_trained_on_where_all_are_predicted() -> None:
    train = interactions_of(np.eye(3, 5) > 0)
    for batches in (
        UserBlocks(train, hiding=Hiding()),
        PairBatches(train, n_negatives=1, hiding=Hiding()),
    ):
        (batch,) = batches.epoch(0)
        assert batch.visible is not None
        assert pairs_of(batch.visible) == {(0, 0), (1, 1), (2, 2)}


@pytest.mark.parametrize("n_shared", [None, 20])
def test_positives_of_a_block_are_hidden_and_negatives_are_not_in_the_history(
    train: Interactions, n_shared: int | None
) -> None:
    blocks = UserBlocks(train, batch_pairs=100, n_shared=n_shared, hiding=HALF, seed=1)
    _, hidden = DividedHistories(train.rows, HALF, seed=1).divide(0)
    n_pairs = 0
    for block in blocks.epoch(0):
        assert block.visible is not None
        owners, items = block.pairs()
        users = block.users[owners].tolist()
        assert set(zip(users, items.tolist(), strict=True)) <= pairs_of(hidden)
        assert not set(zip(users, items.tolist(), strict=True)) & pairs_of(block.visible)
        places, history = train.rows.positions(block.users.numpy())
        assert not block.weights()[places, history].any()
        n_pairs += block.n_pairs
    assert n_pairs == len(hidden.items)


def test_positives_of_pairs_are_hidden_and_negatives_are_not_in_the_history(
    train: Interactions,
) -> None:
    batches = PairBatches(train, n_negatives=5, batch_pairs=64, hiding=HALF, seed=1)
    shown, hidden = DividedHistories(train.rows, HALF, seed=1).divide(2)
    history = pairs_of(train.rows)
    found = []
    for batch in batches.epoch(2):
        assert batch.visible is not None
        assert pairs_of(batch.visible) == pairs_of(shown)
        found += zip(batch.users.tolist(), batch.positives.tolist(), strict=True)
        for user, negatives in zip(batch.users.tolist(), batch.negatives.tolist(), strict=True):
            assert not {(user, item) for item in negatives} & history
    assert len(found) == len(set(found)) == batches.n_pairs
    assert set(found) == pairs_of(hidden)


@pytest.mark.parametrize("visible", [0.5, 1.0])
@pytest.mark.parametrize("n_shared", [None, 20])
def test_positives_of_a_block_are_all_items_where_all_are_predicted(
    train: Interactions, n_shared: int | None, visible: float
) -> None:
    hiding = Hiding(visible, predicts="all")
    blocks = UserBlocks(train, batch_pairs=100, n_shared=n_shared, hiding=hiding, seed=1)
    shown, _ = DividedHistories(train.rows, hiding, seed=1).divide(0)
    found = []
    for block in blocks.epoch(0):
        assert block.visible is not None
        assert pairs_of(block.visible) == pairs_of(shown)
        owners, items = block.pairs()
        found += zip(block.users[owners].tolist(), items.tolist(), strict=True)
        assert not block.weights()[owners, items].any()
    assert len(found) == len(set(found)) == blocks.n_pairs
    assert set(found) == pairs_of(train.rows)


@pytest.mark.parametrize("visible", [0.5, 1.0])
def test_positives_of_pairs_are_all_items_where_all_are_predicted(
    train: Interactions, visible: float
) -> None:
    hiding = Hiding(visible, predicts="all")
    batches = PairBatches(train, n_negatives=5, batch_pairs=64, hiding=hiding, seed=1)
    shown, _ = DividedHistories(train.rows, hiding, seed=1).divide(2)
    history = pairs_of(train.rows)
    found = []
    for batch in batches.epoch(2):
        assert batch.visible is not None
        assert pairs_of(batch.visible) == pairs_of(shown)
        found += zip(batch.users.tolist(), batch.positives.tolist(), strict=True)
        for user, negatives in zip(batch.users.tolist(), batch.negatives.tolist(), strict=True):
            assert not {(user, item) for item in negatives} & history
    assert len(found) == len(set(found)) == batches.n_pairs
    assert set(found) == history


@each_kind
def test_a_repeated_pair_gave_more_pairs_than_batches_were_promised(
    train: Interactions, predicts: str
) -> None:
    hiding = Hiding(0.5, predicts)
    repeated = train.select(np.concatenate([np.arange(len(train)), np.arange(50)]))
    batches, once = (
        PairBatches(log, n_negatives=3, batch_pairs=32, hiding=hiding, seed=1)
        for log in (repeated, train)
    )
    for epoch in range(3):
        sizes = [len(batch.users) for batch in batches.epoch(epoch)]
        assert len(sizes) == len(batches)
        assert sum(sizes) == batches.n_pairs == once.n_pairs


@each_kind
@pytest.mark.parametrize("n_shared", [None, 20])
def test_a_resumed_epoch_hides_what_was_hidden(
    train: Interactions, n_shared: int | None, predicts: str
) -> None:
    hiding = Hiding(0.5, predicts)
    blocks = UserBlocks(train, batch_pairs=100, n_shared=n_shared, hiding=hiding)
    whole = list(blocks.epoch(1))[2:]
    for block, expected in zip(blocks.epoch(1, first_batch=2), whole, strict=True):
        assert block.users.tolist() == expected.users.tolist()
        assert block.pairs()[1].tolist() == expected.pairs()[1].tolist()
        assert block.visible is not None
        assert expected.visible is not None
        assert pairs_of(block.visible) == pairs_of(expected.visible)
