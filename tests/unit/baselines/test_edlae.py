import numpy as np
import pytest
import torch

from matrices import interactions_of
from pslrec.baselines import EASE, EDLAE
from pslrec.data import Interactions


@pytest.fixture(scope="module")
def log() -> Interactions:
    chances = np.linspace(0.05, 0.6, 13)
    return interactions_of(np.random.default_rng(0).random((40, 13)) < chances)


def test_each_column_is_the_regression_with_the_penalty_of_its_items(log: Interactions) -> None:
    matrix = log.matrix().toarray().astype(np.float64)
    weights = EDLAE(dropout=0.4, regularization=3.0).fit(log).weights.numpy()
    for item in range(log.n_items):
        others = np.delete(np.arange(log.n_items), item)
        known = matrix[:, others]
        penalty = 0.4 / 0.6 * known.sum(axis=0) + 3.0
        expected = np.linalg.solve(known.T @ known + np.diag(penalty), known.T @ matrix[:, item])
        np.testing.assert_allclose(weights[others, item], expected, atol=1e-6)
        assert weights[item, item] == 0.0


def test_penalty_is_what_dropout_amounts_to(log: Interactions) -> None:
    # Restoring rows from inputs with dropped entries, many times over, ends at the same weights.
    random = np.random.default_rng(1)
    matrix = log.matrix().toarray().astype(np.float64)
    kept = random.random((4000, *matrix.shape)) < 0.5
    # Scaled up, inputs keep their mean.
    inputs = (kept * matrix / 0.5).reshape(-1, log.n_items)
    targets = np.tile(matrix, (4000, 1))
    weights = EDLAE(dropout=0.5, regularization=1e-6).fit(log).weights.numpy()
    for item in (0, 12):
        others = np.delete(np.arange(log.n_items), item)
        expected, *_ = np.linalg.lstsq(inputs[:, others], targets[:, item], rcond=None)
        np.testing.assert_allclose(weights[others, item], expected, atol=0.02)


def test_without_dropout_it_is_ease(log: Interactions) -> None:
    one = EDLAE(dropout=0.0, regularization=5.0).fit(log)
    assert torch.equal(one.weights, EASE(regularization=5.0).fit(log).weights)


def test_catalogue_beyond_the_budget_raises(log: Interactions) -> None:
    with pytest.raises(ValueError, match=r"EDLAE needs .* for 13 items"):
        EDLAE(memory_budget=1).fit(log)


@pytest.mark.parametrize("dropout", [-0.1, 1.0, float("nan")])
def test_dropout_must_be_a_share_below_one(dropout: float) -> None:
    with pytest.raises(ValueError, match="`dropout` must be at least 0 and below 1"):
        EDLAE(dropout=dropout)
