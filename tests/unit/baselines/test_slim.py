import numpy as np
import pytest

from matrices import interactions_of
from pslrec.baselines import SLIM, CommonUsers
from pslrec.data import Interactions
from pslrec.kernels import _elastic_nets

L1, L2 = 0.7, 2.0


@pytest.fixture(scope="module")
def log() -> Interactions:
    chances = np.linspace(0.02, 0.6, 14)
    pairs = np.random.default_rng(0).random((50, 14)) < chances
    # An item that nobody has.
    pairs[:, 3] = False
    return interactions_of(pairs)


def naive_weights(matrix: np.ndarray, candidates: list[list[int]], *, positive: bool) -> np.ndarray:
    """Coordinate descent on the residuals themselves, one item after the other."""
    n_items = matrix.shape[1]
    weights = np.zeros((n_items, n_items))
    for item in range(n_items):
        for _ in range(500):
            for other in candidates[item]:
                without = weights[:, item].copy()
                without[other] = 0.0
                pull = matrix[:, other] @ (matrix[:, item] - matrix @ without)
                shrunk = np.sign(pull) * max(abs(pull) - L1, 0.0)
                if positive:
                    shrunk = max(shrunk, 0.0)
                square = matrix[:, other] @ matrix[:, other]
                weights[other, item] = shrunk / (square + L2)
    return weights


def nearest(matrix: np.ndarray, item: int, count: int) -> list[int]:
    def cosine(other: int) -> float:
        lengths = np.sqrt(matrix[:, item].sum() * matrix[:, other].sum())
        return float(matrix[:, item] @ matrix[:, other]) / max(lengths, 1e-30)

    others = [other for other in range(matrix.shape[1]) if other != item and cosine(other) > 0]
    return sorted(others, key=lambda other: (-np.float32(cosine(other)), other))[:count]


@pytest.mark.parametrize("non_negative", [True, False])
@pytest.mark.parametrize("neighbours", [4, 14])
def test_weights_equal_a_loop(
    monkeypatch: pytest.MonkeyPatch,
    log: Interactions,
    non_negative: bool,
    neighbours: int,
) -> None:
    monkeypatch.setattr(_elastic_nets, "_TOLERANCE", 1e-7)
    baseline = SLIM(l1=L1, l2=L2, neighbours=neighbours, non_negative=non_negative).fit(log)
    matrix = log.matrix().toarray().astype(np.float64)
    candidates = [nearest(matrix, item, neighbours) for item in range(log.n_items)]
    expected = naive_weights(matrix, candidates, positive=non_negative)
    np.testing.assert_allclose(baseline.weights.toarray(), expected, atol=1e-5)
    # With all items as candidates, negative weights are there to be ruled out.
    assert (expected < 0).any() == (neighbours == 14 and not non_negative)
    scores = baseline.score(np.arange(log.n_users))
    np.testing.assert_allclose(scores.numpy(), matrix @ expected, atol=1e-4)


def test_weights_agree_with_the_elastic_net_of_scikit_learn(log: Interactions) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    matrix = log.matrix().toarray().astype(np.float64)
    baseline = SLIM(l1=L1, l2=L2, neighbours=14).fit(log)
    # It divides the squared error by the number of rows.
    model = linear_model.ElasticNet(
        alpha=(L1 + L2) / len(matrix),
        l1_ratio=L1 / (L1 + L2),
        positive=True,
        fit_intercept=False,
        tol=1e-10,
        max_iter=10_000,
    )
    for item in (0, 7, 13):
        others = np.delete(np.arange(14), item)
        model.fit(matrix[:, others], matrix[:, item])
        found = baseline.weights.toarray()[others, item]
        np.testing.assert_allclose(found, model.coef_, atol=1e-3)


def test_items_with_too_few_common_users_are_left_out_without_a_difference(
    monkeypatch: pytest.MonkeyPatch, log: Interactions
) -> None:
    """A weight that is positive needs more common users than `l1`, whatever the others are."""
    monkeypatch.setattr(_elastic_nets, "_TOLERANCE", 1e-7)
    common = CommonUsers(log)
    everything = common.nearest(log.n_items)
    for l1 in (0.5, 1.0, 3.0):
        asked = common.weights(l1=l1, l2=L2, candidates=everything)
        found = common.weights(l1=l1, l2=L2)
        np.testing.assert_allclose(found.toarray(), asked.toarray(), atol=1e-5)
        assert found.nnz > 0
        matrix = log.matrix().toarray()
        counts = matrix.T @ matrix
        np.fill_diagonal(counts, 0)
        assert common.n_pairs_above(l1) == (counts > l1).sum()


def test_larger_absolute_penalty_leaves_fewer_weights(log: Interactions) -> None:
    counts = [SLIM(l1=l1, l2=L2).fit(log).weights.nnz for l1 in (0.0, 2.0, 1000.0)]
    assert counts[0] > counts[1] > counts[2] == 0


def test_interactions_beyond_the_budget_raise_before_it_starts(log: Interactions) -> None:
    with pytest.raises(ValueError, match=r"SLIM may need .* GiB for these interactions"):
        SLIM(memory_budget=100).fit(log)
    # Histories of two items each have four pairs of items at most.
    few = interactions_of(np.eye(5, 50, dtype=bool) | np.eye(5, 50, 9, dtype=bool))
    assert CommonUsers.memory_needed(few) == 5 * 2**2 * 8


@pytest.mark.parametrize("options", [{"l1": -1.0}, {"l2": 0.0}, {"neighbours": 0}])
def test_impossible_options_raise(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"`{next(iter(options))}` must"):
        SLIM(**options)
