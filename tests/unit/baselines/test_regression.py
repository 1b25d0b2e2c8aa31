"""The regression beside vectors: the weights of EASE, cut to the largest of all items together."""

import numpy as np
import pytest

from pslrec.baselines import EASE, _regression, ease, regression_matrix
from pslrec.baselines._base import binary_matrix
from pslrec.data import Interactions
from pslrec.data._synthetic import planted_tastes

N_ITEMS = 25


@pytest.fixture(scope="module")
def log() -> Interactions:
    return planted_tastes(80, N_ITEMS).interactions


def test_small_catalogues_keep_every_weight(log: Interactions) -> None:
    expected = EASE(regularization=7.0).fit(log).weights.numpy()
    found = regression_matrix(log, regularization=7.0, most_items=N_ITEMS).toarray()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_little_regularization_takes_double_precision(log: Interactions) -> None:
    """In single precision, so few digits would be left that the weights came from rounding."""
    expected = EASE(regularization=1e-4).fit(log).weights.numpy()
    found = regression_matrix(log, regularization=1e-4, most_items=N_ITEMS).toarray()
    np.testing.assert_array_equal(found, expected)


def test_double_precision_begins_where_rounding_could_be_seen(log: Interactions) -> None:
    histories = binary_matrix(log).toarray()
    largest = (histories.T @ histories).sum(axis=1).max()
    limit = np.finfo(np.float32).eps * largest / 0.01
    for factor, expected in ((0.99, EASE), (1.01, _regression._QuickEASE)):
        regularization = float(factor * limit)
        weights = expected(regularization=regularization).fit(log).weights.numpy()
        found = regression_matrix(log, regularization=regularization, most_items=N_ITEMS)
        np.testing.assert_array_equal(found.toarray(), weights)


def test_where_single_precision_fails_double_precision_is_taken(
    log: Interactions, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("too small to invert")

    monkeypatch.setattr(_regression._QuickEASE, "_fit", fail)
    expected = EASE(regularization=7.0).fit(log).weights.numpy()
    found = regression_matrix(log, regularization=7.0, most_items=N_ITEMS).toarray()
    np.testing.assert_array_equal(found, expected)


def test_single_precision_needs_less_memory() -> None:
    assert _regression._QuickEASE.memory_needed(1_000) == 8e6
    assert EASE.memory_needed(1_000) == 12e6


def test_the_largest_weights_of_all_items_are_kept(
    log: Interactions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_regression, "_ENTRIES_PER_ITEM", 4)
    weights = _regression._QuickEASE(regularization=7.0).fit(log).weights.numpy()
    found = regression_matrix(log, regularization=7.0, most_items=N_ITEMS)
    by_size = np.sort(np.abs(weights).ravel())[::-1]
    assert found.nnz == 4 * N_ITEMS
    np.testing.assert_array_equal(np.sort(np.abs(found.data))[::-1], by_size[: 4 * N_ITEMS])
    rows, columns = found.nonzero()
    np.testing.assert_array_equal(found.data, weights[rows, columns])
    # Not the same number for every item, and negative ones among them.
    assert len(set(np.diff(found.indptr).tolist())) > 1
    assert (found.data < 0).any()


def test_of_large_catalogues_the_most_popular_items_take_part(log: Interactions) -> None:
    found = regression_matrix(log, regularization=7.0, most_items=9)
    popular = np.sort(np.argsort(-log.item_counts(), kind="stable")[:9])
    # As if the log had no others.
    histories = binary_matrix(log).toarray()[:, popular]
    inverse = np.linalg.inv(histories.T @ histories + 7.0 * np.eye(9))
    expected = -inverse / np.diagonal(inverse)
    np.fill_diagonal(expected, 0.0)
    np.testing.assert_allclose(found.toarray()[np.ix_(popular, popular)], expected, atol=1e-5)
    assert found.nnz == 9 * 8


def test_large_matrices_are_read_in_blocks(
    log: Interactions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_regression, "_ENTRIES_PER_ITEM", 4)
    whole = regression_matrix(log, regularization=7.0, most_items=N_ITEMS)
    assert whole.nnz == 4 * N_ITEMS
    monkeypatch.setattr(_regression, "_ROWS", 4)
    monkeypatch.setattr(ease, "_ROWS", 7)
    in_blocks = regression_matrix(log, regularization=7.0, most_items=N_ITEMS)
    np.testing.assert_array_equal(in_blocks.toarray(), whole.toarray())


def test_of_equally_popular_items_the_first_take_part() -> None:
    n_items = 400
    everybody = np.arange(50).repeat(n_items)
    log = Interactions.from_ids(everybody, np.tile(np.arange(n_items), 50))
    found = regression_matrix(log, regularization=7.0, most_items=90)
    assert set(found.nonzero()[0].tolist()) == set(range(90))
