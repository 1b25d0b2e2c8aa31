import dataclasses

import numpy as np
import polars as pl
import pytest

from pslrec.data import Dataset, Interactions, Vocabulary
from pslrec.data._interactions import concatenate
from pslrec.errors import DataError

USERS, ITEMS = (
    Vocabulary(["ann", "bob"], kind="user"),
    Vocabulary(["milk", "tea", "wine"], kind="item"),
)


def interactions(users=(0, 1, 0), items=(1, 1, 2), **columns):
    return Interactions(np.array(users), np.array(items), USERS, ITEMS, **columns)


def test_rows_are_numbered_in_sorted_order_whatever_the_order_of_the_data():
    one = Interactions.from_ids(["bob", "ann"], [30, 4])
    other = Interactions.from_ids(["ann", "bob"], [4, 30])
    assert one.user_vocabulary.ids([0, 1]) == ["ann", "bob"]
    assert one.item_vocabulary.ids([0, 1]) == [4, 30]
    assert one.user_vocabulary == other.user_vocabulary
    assert one.to_frame().rows() == [("bob", 30), ("ann", 4)]


def test_text_that_spells_numbers_becomes_numbers_only_if_no_spelling_is_lost():
    assert Interactions.from_ids(["10", "9"], ["007", "7"]).to_frame().rows() == [
        (10, "007"),
        (9, "7"),
    ]
    assert Interactions.from_ids(["-1", "+1"], ["1", " 1"]).to_frame().rows() == [
        ("-1", "1"),
        ("+1", " 1"),
    ]


def test_columns_have_fixed_types():
    log = interactions(ratings=[1, 2, 3], timestamps=[1, 2, 3], weights=[1, 2, 3])
    assert [getattr(log, name).dtype for name in ("users", "items", "ratings", "timestamps", "weights")] == [
        np.int32, np.int32, np.float32, np.int64, np.float32,
    ]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_interactions_do_not_change_with_the_arrays_they_were_made_of(dtype):
    users, ratings = np.array([0, 1], dtype=dtype), np.array([1.0, 2.0], dtype=np.float32)
    log = Interactions(users, np.array([0, 0]), USERS, ITEMS, ratings=ratings)
    users[0], ratings[0] = 1, 9
    assert log.users.tolist() == [0, 1]
    assert log.ratings.tolist() == [1, 2]


@pytest.mark.parametrize("name", ["users", "items", "ratings", "timestamps", "weights"])
def test_columns_can_not_be_written_to(name):
    log = interactions(ratings=[1, 2, 3], timestamps=[1, 2, 3], weights=[1, 2, 3])
    with pytest.raises(ValueError, match="read-only"):
        getattr(log, name)[0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        getattr(log, name).flags.writeable = True
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(log, name, np.zeros(3))


def test_columns_of_an_arrow_column_are_shared_not_copied():
    column = pl.Series([0, 1], dtype=pl.Int32).to_numpy()
    assert np.shares_memory(Interactions(column, column, USERS, ITEMS).users, column)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"users": [0, 1, 2]}, "`users` must be row numbers below 2, got 0 to 2"),
        ({"users": [0, -1, 1]}, "`users` must be row numbers below 2, got -1 to 1"),
        ({"items": [0, 1, 2**32]}, "`items` must be row numbers below 3, got 0 to 4294967296"),
        (
            {"users": [0.5, 0.7, 0]},
            "`users` must be row numbers, whole numbers from 0, got float64",
        ),
        ({"items": [0, 1]}, r"`items` must be as long as `users` \(3\), got 2"),
        ({"ratings": [1, 2]}, r"`ratings` must be as long as `users` \(3\), got 2"),
        (
            {"ratings": [1, float("nan"), 2]},
            "`ratings` must be finite, 1 of 3 are not; the first is at position 1",
        ),
        (
            {"ratings": [1, 2, 1e300]},
            "`ratings` must be finite, 1 of 3 are not; the first is at position 2",
        ),
        ({"ratings": ["a", "b", "c"]}, "`ratings` must be numbers, got <U1"),
        ({"timestamps": [1, float("inf"), 2]}, "`timestamps` must be finite"),
        (
            {"timestamps": [1, -5, 2]},
            "`timestamps` must be seconds since 1970 and not negative, the least is -5",
        ),
        ({"weights": [1, 0, 2]}, "`weights` must be positive, the least is 0"),
        ({"weights": [1, -2, 2]}, "`weights` must be positive, the least is -2"),
        ({"users": [[0, 1, 0]]}, r"`users` must be one column, got shape \(1, 3\)"),
    ],
)
def test_columns_that_make_no_sense_are_refused(columns, message):
    with pytest.raises(DataError, match=message):
        interactions(**columns)


def test_dates_become_seconds():
    days = np.array(["1970-01-02", "1970-01-03", "1970-01-01"], dtype="datetime64[ns]")
    assert interactions(timestamps=days).timestamps.tolist() == [86400, 2 * 86400, 0]


def test_missing_dates_are_refused():
    with pytest.raises(DataError, match="`timestamps` must be seconds since 1970"):
        interactions(
            timestamps=np.array(["1970-01-02", "NaT", "1970-01-01"], dtype="datetime64[ns]")
        )


@pytest.mark.parametrize(
    ("users", "message"),
    [
        ([None, "a"], "the user column has 1 missing values"),
        ([float("nan"), 1.0], "the user column has 1 ids that are NaN"),
        (["", "a"], "the user column has ids that are empty text"),
        ([1, "a"], "user ids must all be whole numbers or all be text"),
    ],
)
def test_ids_that_name_nobody_are_refused(users, message):
    with pytest.raises(DataError, match=message):
        Interactions.from_ids(users, [1, 2])


def test_from_ids_takes_any_iterable():
    log = Interactions.from_ids(
        (name for name in "ab"), range(2), ratings=(r for r in (1, 2)), weights=pl.Series([1, 2])
    )
    assert log.to_frame().rows() == [("a", 0, 1.0, 1.0), ("b", 1, 2.0, 2.0)]


def test_no_interactions_are_allowed():
    log = Interactions.from_ids([], [])
    assert (len(log), log.n_users, log.n_items) == (0, 0, 0)
    assert len(log.sorted()) == 0


def test_counts_cover_the_whole_vocabulary():
    log = interactions()
    assert log.user_counts().tolist() == [2, 1]
    assert log.item_counts().tolist() == [0, 2, 1]


def test_matrix_adds_up_repeated_pairs_and_uses_weights():
    assert interactions([0, 0], [1, 1]).matrix().toarray().tolist() == [[0, 2, 0], [0, 0, 0]]
    assert interactions([0, 1], [1, 2], weights=[0.5, 3]).matrix().toarray().tolist() == [
        [0, 0.5, 0],
        [0, 0, 3],
    ]


def test_matrix_is_a_copy():
    log = interactions(weights=[1, 2, 3])
    log.matrix().data[:] = 9
    assert log.weights.tolist() == [1, 2, 3]


@pytest.mark.parametrize("which", [np.array([True, False, True]), np.array([0, 2])])
def test_select_by_mask_or_position_takes_every_column(which):
    log = interactions(ratings=[1, 2, 3], timestamps=[4, 5, 6], weights=[7, 8, 9]).select(which)
    assert log.to_frame().rows() == [("ann", "tea", 1.0, 4, 7.0), ("ann", "wine", 3.0, 6, 9.0)]


def test_sorted_orders_by_user_then_item():
    assert interactions().sorted().to_frame().rows() == [
        ("ann", "tea"),
        ("ann", "wine"),
        ("bob", "tea"),
    ]


def test_sorted_does_not_depend_on_the_order_of_repeated_pairs():
    times, ratings = np.array([30, 10, 20]), np.array([1.0, 2.0, 3.0])
    one = interactions([0, 0, 1], [1, 1, 0], timestamps=times, ratings=ratings)
    assert (
        one.sorted().to_frame().rows() == one.select(np.array([2, 1, 0])).sorted().to_frame().rows()
    )
    assert one.sorted().timestamps.tolist() == [10, 30, 20]


def test_pair_keys_are_equal_for_equal_pairs_only_and_do_not_overflow():
    many = Vocabulary(np.arange(70_000), kind="user")
    log = Interactions(
        np.array([69_999, 69_999, 0]), np.array([69_999, 69_999, 69_999]), many, many
    )
    assert log.pair_keys().tolist() == [70_000**2 - 1, 70_000**2 - 1, 69_999]


def test_to_frame_names_what_there_is():
    assert interactions(weights=[1, 2, 3]).to_frame().columns == ["user", "item", "weight"]


def test_concatenate_leaves_out_what_a_part_lacks():
    joined = concatenate([interactions(ratings=[1, 2, 3]), interactions([1], [0])])
    assert len(joined) == 4
    assert joined.ratings is None


def test_repr_counts():
    assert repr(interactions()) == "Interactions(3 pairs of 2 users and 3 items)"


def test_dataset_refuses_parts_over_other_vocabularies_of_the_same_size():
    train, other = (
        Interactions.from_ids(["a", "b"], [1, 2]),
        Interactions.from_ids(["a", "c"], [1, 2]),
    )
    with pytest.raises(DataError, match="must share the same vocabularies"):
        Dataset(train, other)
    with pytest.raises(DataError, match="must share the same vocabularies"):
        Dataset(train, train, other)


def test_dataset_whole_is_all_parts():
    log = interactions()
    dataset = Dataset(
        log.select(np.array([0])), log.select(np.array([1])), log.select(np.array([2])), name="shop"
    )
    assert sorted(dataset.whole().to_frame().rows()) == sorted(log.to_frame().rows())
    assert list(dataset.parts()) == ["train", "validation", "test"]
    assert repr(dataset) == "Dataset(shop: 2 users, 3 items, 1 train / 1 validation / 1 test)"
    assert list(Dataset(log, log).parts()) == ["train", "test"]
