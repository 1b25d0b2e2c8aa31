import numpy as np
import pytest

from matrices import interactions_of
from pslrec.baselines import GFCF, TurboCF, turbo_cf
from pslrec.data import Interactions, planted_tastes


@pytest.fixture(scope="module")
def log() -> Interactions:
    chances = np.linspace(0.05, 0.6, 16)
    pairs = np.random.default_rng(0).random((45, 16)) < chances
    # Neither a user nor an item without interactions may divide by 0.
    pairs[7] = False
    pairs[:, 4] = False
    return interactions_of(pairs)


def normalized(matrix: np.ndarray, on_users: float, on_items: float) -> np.ndarray:
    result = np.zeros(matrix.shape)
    for user, item in np.argwhere(matrix):
        of_user, of_item = matrix[user].sum(), matrix[:, item].sum()
        result[user, item] = of_user**-on_users * of_item**-on_items
    return result


@pytest.mark.parametrize("dimension", [3, 15, 400])
def test_gf_cf_equals_its_formula(log: Interactions, dimension: int) -> None:
    matrix = log.matrix().toarray().astype(np.float64)
    graph = normalized(matrix, 0.5, 0.5)
    _, values, vectors = np.linalg.svd(graph)
    # The item without interactions is a direction without data.
    vectors = vectors[: min(dimension, int((values > 1e-9).sum()))]
    lengths = np.sqrt(np.maximum(matrix.sum(axis=0), 1.0))
    low_pass = np.diag(1 / lengths) @ vectors.T @ vectors @ np.diag(lengths)
    expected = matrix @ (graph.T @ graph + 0.7 * low_pass)
    baseline = GFCF(dimension=dimension, low_pass_weight=0.7).fit(log)
    scores = baseline.score(np.arange(log.n_users)).numpy()
    np.testing.assert_allclose(scores, expected, atol=1e-4)


def test_low_pass_filter_is_close_to_that_of_the_exact_vectors() -> None:
    log = planted_tastes(400, 300).interactions
    matrix = log.matrix().toarray().astype(np.float64)
    *_, vectors = np.linalg.svd(normalized(matrix, 0.5, 0.5))
    lengths = np.sqrt(np.maximum(matrix.sum(axis=0), 1.0))
    exact = np.diag(1 / lengths) @ vectors[:20].T @ vectors[:20] @ np.diag(lengths)
    baseline = GFCF(dimension=20).fit(log)
    found = baseline.low_pass_in @ baseline.low_pass_out
    assert np.linalg.norm(found - exact) < 0.02 * np.linalg.norm(exact)


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("rows", [5, 1024])
def test_turbo_cf_equals_its_formula(
    monkeypatch: pytest.MonkeyPatch, log: Interactions, degree: int, rows: int
) -> None:
    monkeypatch.setattr(turbo_cf, "_ROWS", rows)
    matrix = log.matrix().toarray().astype(np.float64)
    scaled = normalized(matrix, 0.6, 0.4)
    graph = (scaled.T @ scaled) ** 0.8
    square = graph @ graph
    filters = {
        1: graph,
        2: 2 * graph - square,
        3: graph + 0.01 * (-square @ graph + 10 * square - 29 * graph),
    }
    baseline = TurboCF(normalization=0.6, power=0.8, degree=degree).fit(log)
    scores = baseline.score(np.arange(log.n_users)).numpy()
    np.testing.assert_allclose(scores, matrix @ filters[degree], rtol=1e-4, atol=1e-4)


def test_catalogue_beyond_the_budget_raises_before_it_starts(log: Interactions) -> None:
    needed = TurboCF.memory_needed(log.n_items)
    TurboCF(memory_budget=needed).fit(log)
    with pytest.raises(ValueError, match=r"TurboCF needs .* for 16 items"):
        TurboCF(memory_budget=needed - 1).fit(log)


@pytest.mark.parametrize(
    ("baseline", "options"),
    [
        (GFCF, {"dimension": 0}),
        (GFCF, {"low_pass_weight": -1.0}),
        (TurboCF, {"degree": 4}),
        (TurboCF, {"power": 0.0}),
        (TurboCF, {"normalization": -0.1}),
    ],
)
def test_impossible_options_raise(
    baseline: type[GFCF | TurboCF], options: dict[str, float]
) -> None:
    with pytest.raises(ValueError, match=f"`{next(iter(options))}` must"):
        baseline(**options)
