import numpy as np
import polars as pl
import pytest

from pslrec.data._interactions import encode

NAMES = ["tea", "milk", "tea", "ähre", "milk and honey, with sugar", "tea"]


def test_encode_gives_rows_in_sorted_order_of_the_ids():
    rows, vocabulary = encode(pl.Series(NAMES), kind="item")
    assert vocabulary.series.to_list() == sorted(set(NAMES))
    assert vocabulary.ids(rows) == NAMES


def test_encode_does_not_mix_up_ids_whose_hashes_are_equal(monkeypatch: pytest.MonkeyPatch):
    expected, _ = encode(pl.Series(NAMES), kind="item")
    monkeypatch.setattr(
        pl.Series, "hash", lambda self, *_: pl.Series(np.zeros(len(self), dtype=np.uint64))
    )
    rows, vocabulary = encode(pl.Series(NAMES), kind="item")
    assert rows.tolist() == expected.tolist()
    assert vocabulary.ids(rows) == NAMES


def test_encode_orders_numbers_by_size_when_they_are_written_as_text():
    rows, vocabulary = encode(pl.Series(["10", "9", "10"]), kind="user")
    assert vocabulary.series.to_list() == [9, 10]
    assert rows.tolist() == [1, 0, 1]
