import numpy as np
import pytest

from matrices import interactions_of
from pslrec.baselines import RP3Beta, _neighbours
from pslrec.data import Interactions


def random_log() -> Interactions:
    chances = np.linspace(0.05, 0.6, 17)
    pairs = np.random.default_rng(0).random((30, 17)) < chances
    pairs[:, 4] = False
    return interactions_of(pairs)


def naive_scores(matrix: np.ndarray, *, neighbours: int, alpha: float, beta: float) -> np.ndarray:
    n_users, n_items = matrix.shape
    of_users, of_items = matrix.sum(axis=1), matrix.sum(axis=0)
    weights = np.zeros((n_items, n_items))
    for start in range(n_items):
        for end in range(n_items):
            for user in range(n_users):
                if start != end and matrix[user, start] and matrix[user, end]:
                    walk = (1 / of_items[start]) ** alpha * (1 / of_users[user]) ** alpha
                    weights[start, end] += walk / of_items[end] ** beta
    for start in range(n_items):
        order = sorted(range(n_items), key=lambda end: (-np.float32(weights[start, end]), end))
        weights[start, order[neighbours:]] = 0.0
    return weights


@pytest.mark.parametrize(
    ("neighbours", "alpha", "beta"), [(3, 1.0, 0.5), (100, 0.6, 0.0), (5, 1.3, 0.2)]
)
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("block_bytes", [1, 2**20])
def test_scores_equal_a_loop_over_walks(
    monkeypatch: pytest.MonkeyPatch,
    neighbours: int,
    alpha: float,
    beta: float,
    normalize: bool,
    block_bytes: int,
) -> None:
    monkeypatch.setattr(_neighbours, "_BLOCK_BYTES", block_bytes)
    log = random_log()
    matrix = log.matrix().toarray()
    weights = naive_scores(matrix, neighbours=neighbours, alpha=alpha, beta=beta)
    if normalize:
        weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-30)
    baseline = RP3Beta(
        neighbours=neighbours,
        transition_exponent=alpha,
        popularity_exponent=beta,
        normalize=normalize,
    ).fit(log)
    scores = baseline.score(np.arange(log.n_users)).numpy()
    np.testing.assert_allclose(scores, matrix @ weights, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [{"neighbours": 0}, {"transition_exponent": -1.0}, {"popularity_exponent": -0.1}],
)
def test_impossible_options_raise(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"`{next(iter(options))}` must"):
        RP3Beta(**options)
