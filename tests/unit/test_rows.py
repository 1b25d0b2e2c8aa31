"""One list of items per owner, laid end to end."""

import numpy as np
import pytest
import torch

from pslrec.data import Interactions
from pslrec.data._sealing import SealedInteractions, SealedTestError
from pslrec.rows import Rows


def as_lists(rows: Rows) -> list[list[int]]:
    return [rows.list_of(owner).tolist() for owner in range(len(rows))]


def test_lists_become_ascending_and_distinct() -> None:
    rows = Rows.from_lists([[3, 1, 3], [], [2]])
    assert as_lists(rows) == [[1, 3], [], [2]]
    assert rows.lengths.tolist() == [2, 0, 1]
    assert (rows.offsets.dtype, rows.items.dtype) == (np.int64, np.int32)


def test_keys_may_come_in_any_order_and_repeat() -> None:
    pairs = [(2, 4), (0, 1), (2, 0), (0, 1), (2, 4)]
    keys = np.array([owner * 5 + item for owner, item in pairs])
    assert as_lists(Rows.from_keys(keys, n_owners=4, n_items=5)) == [[1], [], [0, 4], []]


def test_no_owners_and_no_items_are_lists_as_well() -> None:
    assert as_lists(Rows.from_lists([])) == []
    assert as_lists(Rows.empty(2)) == [[], []]
    assert as_lists(Rows.empty(2).merged(Rows.empty(2))) == [[], []]
    nothing = Rows.from_keys(np.zeros(0, dtype=np.int64), n_owners=1, n_items=0)
    assert as_lists(nothing) == [[]]
    assert [len(each) for each in Rows.empty(3).positions(np.array([2, 0]))] == [0, 0]


def test_owners_are_selected_in_the_order_asked_for_and_may_repeat() -> None:
    rows = Rows.from_lists([[5, 7], [], [6], [1, 2, 3]])
    chosen = np.array([3, 1, 0, 3])
    assert as_lists(rows.select(chosen)) == [[1, 2, 3], [], [5, 7], [1, 2, 3]]
    positions, items = rows.positions(chosen)
    assert positions.tolist() == [0, 0, 0, 2, 2, 3, 3, 3]
    assert items.tolist() == [1, 2, 3, 5, 7, 1, 2, 3]
    assert (positions.dtype, items.dtype) == (np.int64, np.int64)


def test_lists_of_equal_owners_are_merged() -> None:
    first, second = Rows.from_lists([[1], [0, 9], []]), Rows.from_lists([[0, 1], [], [4]])
    assert as_lists(first.merged(second)) == [[0, 1], [0, 9], [4]]
    assert first.merged() is first


def test_tensors_lie_in_the_same_memory() -> None:
    rows = Rows.from_lists([[1], [0, 9]])
    offsets, items = rows.tensors
    assert offsets.data_ptr() == rows.offsets.ctypes.data
    assert items.data_ptr() == rows.items.ctypes.data
    assert (offsets.dtype, items.dtype) == (torch.int64, torch.int32)


def test_interactions_build_their_rows_once() -> None:
    log = Interactions.from_ids(["b", "a", "b", "b"], ["y", "x", "x", "y"])
    assert as_lists(log.rows) == [[0], [0, 1]]
    assert log.rows is log.rows


def test_rows_of_a_sealed_part_stay_closed_until_it_is_opened() -> None:
    sealed = SealedInteractions.of(Interactions.from_ids(["a"], ["x"]))
    with pytest.raises(SealedTestError):
        _ = sealed.rows
    assert as_lists(sealed.unseal("training has ended").rows) == [[0]]


def test_a_range_of_owners_is_a_view_of_the_same_items() -> None:
    rows = Rows.from_lists([[5, 7], [], [6], [1, 2, 3]])
    some = rows.between(range(1, 3))
    assert some.lengths.tolist() == [0, 0, 1, 0]
    assert some.list_of(2).tolist() == [6]
    assert np.shares_memory(some.items, rows.items)
    assert rows.between(range(4, 4)).lengths.tolist() == [0, 0, 0, 0]
    assert rows.between(range(4)).items.tolist() == rows.items.tolist()
