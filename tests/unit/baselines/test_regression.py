"""The regression beside vectors: the weights of EASE, cut to the largest of all items together."""

import numpy as np
import pytest

from pslrec.baselines import EASE, _regression, regression_matrix
from pslrec.data import Interactions
from pslrec.data._synthetic import planted_tastes

N_ITEMS = 25


@pytest.fixture(scope="module")
def log() -> Interactions:
    return planted_tastes(80, N_ITEMS).interactions


def test_small_catalogues_keep_every_weight(log: Interactions) -> None:
    expected = EASE(regularization=7.0).fit(log).weights.numpy()
    found = regression_matrix(log, regularization=7.0).toarray()
    np.testing.assert_array_equal(found, expected)


def test_the_largest_weights_of_all_items_are_kept(
    log: Interactions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_regression, "_ENTRIES_PER_ITEM", 4)
    weights = EASE(regularization=7.0).fit(log).weights.numpy()
    found = regression_matrix(log, regularization=7.0)
    by_size = np.sort(np.abs(weights).ravel())[::-1]
    assert found.nnz == 4 * N_ITEMS
    np.testing.assert_array_equal(np.sort(np.abs(found.data))[::-1], by_size[: 4 * N_ITEMS])
    rows, columns = found.nonzero()
    np.testing.assert_array_equal(found.data, weights[rows, columns])
    # Not the same number for every item, and negative ones among them.
    assert len(set(np.diff(found.indptr).tolist())) > 1
    assert (found.data < 0).any()
