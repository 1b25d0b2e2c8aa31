import numpy as np
import pytest

from matrices import interactions_of
from pslrec.baselines import EASE, ease
from pslrec.data import Interactions


def random_log(n_users: int = 40, n_items: int = 13) -> Interactions:
    return interactions_of(np.random.default_rng(0).random((n_users, n_items)) < 0.3)


@pytest.mark.parametrize("rows", [4, 1024])
def test_each_column_is_the_ridge_regression_on_the_other_items(
    monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr(ease, "_ROWS", rows)
    log = random_log()
    matrix = log.matrix().toarray().astype(np.float64)
    weights = EASE(regularization=7.0).fit(log).weights.numpy()
    for item in range(log.n_items):
        others = np.delete(np.arange(log.n_items), item)
        known = matrix[:, others]
        expected = np.linalg.solve(
            known.T @ known + 7.0 * np.eye(len(others)), known.T @ matrix[:, item]
        )
        np.testing.assert_allclose(weights[others, item], expected, atol=1e-6)
        assert weights[item, item] == 0.0


def test_scores_are_the_restored_rows() -> None:
    log = random_log()
    baseline = EASE(regularization=7.0).fit(log)
    expected = log.matrix().toarray() @ baseline.weights.numpy()
    np.testing.assert_allclose(baseline.score(np.arange(40)).numpy(), expected, atol=1e-5)


def test_catalogue_beyond_the_budget_raises_before_it_starts() -> None:
    log = random_log()
    needed = EASE.memory_needed(log.n_items)
    EASE(memory_budget=needed).fit(log)
    with pytest.raises(ValueError, match=r"EASE needs .* for 13 items"):
        EASE(memory_budget=needed - 1).fit(log)


def test_regularization_must_be_positive() -> None:
    with pytest.raises(ValueError, match="`regularization` must be positive"):
        EASE(regularization=0.0)
