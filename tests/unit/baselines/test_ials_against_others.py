"""From the same first vectors our iALS is to find the vectors that two other implementations find.

`reproductions/agreement.py` compares them on published data, by NDCG.
"""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from pslrec.baselines import ImplicitALS
from pslrec.data import Interactions, planted_tastes

EPOCHS = 3


@pytest.fixture(scope="module")
def log() -> Interactions:
    return planted_tastes(150, 80, seed=3).interactions


@pytest.fixture(scope="module")
def matrix(log: Interactions) -> csr_matrix:
    pairs = log.matrix().astype(np.float32)
    pairs.data[:] = 1.0
    return pairs


# Fewer dimensions than most rows have interactions, and more than any has.
@pytest.mark.parametrize("dimension", [4, 100])
@pytest.mark.parametrize(
    ("weight", "penalty", "exponent"), [(0.1, 0.3, 0.5), (0.03, 0.03, 1.0), (0.3, 2.0, 0.0)]
)
def test_vectors_are_those_of_irspack(
    log: Interactions,
    matrix: csr_matrix,
    dimension: int,
    weight: float,
    penalty: float,
    exponent: float,
) -> None:
    recommenders = pytest.importorskip("irspack.recommenders")
    ours = ImplicitALS(
        dimension=dimension,
        unobserved_weight=weight,
        regularization=penalty,
        exponent=exponent,
        epochs=EPOCHS,
    ).fit(log)
    model = recommenders.IALSRecommender(
        matrix,
        n_components=dimension,
        alpha0=weight,
        reg=penalty,
        nu=exponent,
        loss_type="IALSPP",
        solver_type="CHOLESKY",
        n_threads=1,
    )
    model.start_learning()
    model.trainer.core_trainer.item = ours.initial_vectors(log.n_items).numpy()
    for _ in range(EPOCHS):
        model.run_epoch()
    assert_close(model.get_user_embedding(), ours.user_vectors.numpy())
    assert_close(model.get_item_embedding(), ours.item_vectors.numpy())


# It advises against more than one thread, which matters for its speed alone.
@pytest.mark.filterwarnings("ignore:OpenBLAS is configured:RuntimeWarning")
@pytest.mark.parametrize("dimension", [4, 100])
@pytest.mark.parametrize(("weight", "penalty"), [(0.1, 1.0), (0.3, 2.0)])
def test_vectors_are_those_of_implicit(
    log: Interactions, matrix: csr_matrix, dimension: int, weight: float, penalty: float
) -> None:
    als = pytest.importorskip("implicit.als")
    ours = ImplicitALS(
        dimension=dimension,
        unobserved_weight=weight,
        regularization=penalty,
        exponent=0.0,
        epochs=EPOCHS,
    ).fit(log)
    # It weights observed pairs with `alpha` and the others with 1, where ours have 1 + weight and
    # weight, with a target of 1 / (1 + weight): the same but for the scale of the vectors.
    scale = (1.0 + weight) / weight
    model = als.AlternatingLeastSquares(
        factors=dimension,
        alpha=scale,
        regularization=penalty * scale,
        iterations=EPOCHS,
        use_cg=False,
        use_gpu=False,
        num_threads=1,
    )
    length = np.sqrt(np.float32(1.0 + weight))
    model.item_factors = length * ours.initial_vectors(log.n_items).numpy()
    model.user_factors = np.zeros((log.n_users, dimension), dtype=np.float32)
    model.fit(matrix, show_progress=False)
    assert_close(model.user_factors / length, ours.user_vectors.numpy())
    assert_close(model.item_factors / length, ours.item_vectors.numpy())


def assert_close(found: np.ndarray, expected: np.ndarray) -> None:
    largest = float(np.abs(expected).max())
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-3 * largest)
