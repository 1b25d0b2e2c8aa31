"""Our iALS is to rank as well as two other implementations do at the same settings.

All choices and all numbers are those of the validation part.
"""

from pathlib import Path

import numpy as np
import pytest
import torch

from pslrec.baselines import ImplicitALS
from pslrec.data import Dataset, read_published
from pslrec.data.splits import carve_validation
from pslrec.evaluation import EmbeddingScorer, Scorer, evaluate

pytestmark = pytest.mark.slow

# Initial vectors move NDCG; the mean over several of them is compared.
SEEDS = (0, 1, 2, 3)
EPOCHS = 15
DIMENSION = 64


@pytest.fixture(params=["amazon2014-health", "amazon2014-beauty"])
def dataset(request: pytest.FixtureRequest, data_directory: Path) -> Dataset:
    path = data_directory / "iid" / f"{request.param}.zip"
    return carve_validation(read_published(path), "paper")


def ndcg(scorer: Scorer, dataset: Dataset) -> float:
    result = evaluate(
        scorer, dataset, split="validation", k=[20], protocol="paper", metrics=["ndcg"]
    )
    return result["ndcg@20"]


def ours(dataset: Dataset, *, weight: float, penalty: float, exponent: float) -> float:
    values = []
    for seed in SEEDS:
        baseline = ImplicitALS(
            dimension=DIMENSION,
            unobserved_weight=weight,
            regularization=penalty,
            exponent=exponent,
            epochs=EPOCHS,
            seed=seed,
        )
        values.append(ndcg(baseline.fit(dataset.train), dataset))
    return float(np.mean(values))


@pytest.mark.parametrize(
    ("weight", "penalty", "exponent"), [(0.1, 0.3, 0.5), (0.03, 0.03, 1.0), (0.3, 2.0, 0.0)]
)
@pytest.mark.parametrize("solver", ["CHOLESKY", "IALSPP"])
def test_ndcg_is_that_of_irspack(
    dataset: Dataset, weight: float, penalty: float, exponent: float, solver: str
) -> None:
    recommenders = pytest.importorskip("irspack.recommenders")
    values = []
    for seed in SEEDS:
        model = recommenders.IALSRecommender(
            dataset.train.matrix().astype(np.float32),
            n_components=DIMENSION,
            alpha0=weight,
            reg=penalty,
            nu=exponent,
            solver_type=solver,
            random_seed=seed,
            n_threads=1,
            train_epochs=EPOCHS,
        )
        model.learn()
        vectors = (model.get_user_embedding(), model.get_item_embedding())
        scorer = EmbeddingScorer(*(torch.tensor(table) for table in vectors))
        values.append(ndcg(scorer, dataset))
    found = ours(dataset, weight=weight, penalty=penalty, exponent=exponent)
    assert found == pytest.approx(float(np.mean(values)), rel=0.01)


@pytest.mark.parametrize(("weight", "penalty"), [(0.1, 1.0), (0.3, 2.0)])
def test_ndcg_is_that_of_implicit(dataset: Dataset, weight: float, penalty: float) -> None:
    als = pytest.importorskip("implicit.als")
    # It weights observed pairs with `alpha` and the others with 1, where ours have 1 + weight and
    # weight, with a target of 1 / (1 + weight): the same but for the scale of the vectors.
    scale = (1.0 + weight) / weight
    values = []
    for seed in SEEDS:
        model = als.AlternatingLeastSquares(
            factors=DIMENSION,
            alpha=scale,
            regularization=penalty * scale,
            iterations=EPOCHS,
            use_cg=False,
            use_gpu=False,
            num_threads=1,
            random_state=seed,
        )
        model.fit(dataset.train.matrix().astype(np.float32), show_progress=False)
        vectors = (model.user_factors, model.item_factors)
        scorer = EmbeddingScorer(*(torch.tensor(table) for table in vectors))
        values.append(ndcg(scorer, dataset))
    found = ours(dataset, weight=weight, penalty=penalty, exponent=0.0)
    assert found == pytest.approx(float(np.mean(values)), rel=0.01)
