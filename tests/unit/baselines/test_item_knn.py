import numpy as np
import pytest

from matrices import interactions_of
from pslrec.baselines import ItemKNN, _neighbours
from pslrec.data import Interactions


def random_log(n_users: int = 30, n_items: int = 17) -> Interactions:
    return interactions_of(np.random.default_rng(0).random((n_users, n_items)) < 0.3)


def naive_scores(log: Interactions, neighbours: int, shrinkage: float) -> np.ndarray:
    matrix = log.matrix().toarray()
    n_items = log.n_items
    similarity = np.zeros((n_items, n_items))
    for one in range(n_items):
        for other in range(n_items):
            common = (matrix[:, one] * matrix[:, other]).sum()
            lengths = np.sqrt(matrix[:, one].sum() * matrix[:, other].sum())
            similarity[one, other] = common / (lengths + shrinkage) if one != other else 0.0
    scores = np.zeros(matrix.shape)
    for item in range(n_items):
        nearest = sorted(
            range(n_items), key=lambda other, item=item: (-similarity[item, other], other)
        )[:neighbours]
        scores[:, item] = matrix[:, nearest] @ similarity[item, nearest]
    return scores


@pytest.mark.parametrize(("neighbours", "shrinkage"), [(1, 0.0), (5, 3.0), (100, 10.0)])
@pytest.mark.parametrize("block_bytes", [1, 2**20])
def test_scores_equal_a_loop(
    monkeypatch: pytest.MonkeyPatch, neighbours, shrinkage, block_bytes: int
) -> None:
    monkeypatch.setattr(_neighbours, "_BLOCK_BYTES", block_bytes)
    log = random_log()
    scores = (
        ItemKNN(neighbours=neighbours, shrinkage=shrinkage).fit(log).score(np.arange(log.n_users))
    )
    np.testing.assert_allclose(
        scores.numpy(), naive_scores(log, neighbours, shrinkage), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("options", [{"neighbours": 0}, {"shrinkage": -1.0}])
def test_impossible_options_raise(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"`{next(iter(options))}` must"):
        ItemKNN(**options)
