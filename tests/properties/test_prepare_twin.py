import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pslrec.data import Interactions, Preparation, prepare
from pslrec.data._preparation import _stable_order
from pslrec.errors import DataError

rows = st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(1, 5), st.integers(0, 3))


def naive_prepare(
    log: list[tuple[int, int, int, int]], minimum_rating: int, k: int
) -> list[tuple[int, int, int, int]]:
    first: dict[tuple[int, int], tuple[int, int, int, int]] = {}
    for row in log:
        if row[2] >= minimum_rating and (row[:2] not in first or row[3] < first[row[:2]][3]):
            first[row[:2]] = row
    kept = sorted(first.values())
    while True:
        users, items = [row[0] for row in kept], [row[1] for row in kept]
        inside = [row for row in kept if users.count(row[0]) >= k and items.count(row[1]) >= k]
        if inside == kept:
            return kept
        kept = inside


@given(
    log=st.lists(rows, min_size=1, max_size=60),
    minimum_rating=st.integers(1, 4),
    k=st.integers(0, 4),
)
def test_prepare_equals_its_naive_twin(log, minimum_rating, k):
    users, items, ratings, timestamps = zip(*log, strict=True)
    interactions = Interactions.from_ids(users, items, ratings=ratings, timestamps=timestamps)
    preparation = Preparation(minimum_rating=minimum_rating, k_core=k)
    expected = naive_prepare(log, minimum_rating, k)
    if not expected:
        with pytest.raises(DataError):
            prepare(interactions, preparation)
    else:
        found = prepare(interactions, preparation)
        assert [tuple(row) for row in found.to_frame().rows()] == expected
        assert found.n_users == len({row[0] for row in expected})


@given(keys=st.lists(st.integers(0, 30), max_size=50))
def test_order_is_the_same_whether_or_not_a_position_fits_beside_the_key(keys):
    keys = np.array(keys, dtype=np.int64)
    assert _stable_order(keys, 31).tolist() == _stable_order(keys, 2**62).tolist()
