"""On data whose truth is known, every loss finds it: far better than popularity, and near the oracle."""

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from pslrec.baselines import BASELINES
from pslrec.config import RunConfig
from pslrec.data._synthetic import TasteModel, planted_tastes
from pslrec.evaluation import EmbeddingScorer, evaluate
from pslrec.experiment import load_training_data, run
from pslrec.losses import LOSSES


@dataclass(frozen=True)
class Truth:
    """The data as a file, and the NDCG@20 of popularity and of the true preferences."""

    log: Path
    popularity: float
    oracle: float


def settings(log: Path) -> dict[str, object]:
    return {
        "data.source": str(log),
        "backbone.dimension": 16,
        "sampling.batch_pairs": 256,
        "training.validate_every": 2,
        "training.epochs": 8,
        "evaluation.k": 20,
    }


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> Truth:
    planted = planted_tastes(400, 200, model=TasteModel(n_topics=6), seed=5)
    log = tmp_path_factory.mktemp("data") / "planted.csv"
    planted.interactions.to_frame().write_csv(log)
    dataset = load_training_data(RunConfig.from_settings(settings(log))).dataset
    dataset.test.unseal("to know what is possible")
    # Names end in the row of the planted matrix; all users and items are there, in the same order.
    assert (
        dataset.user_vocabulary.series.to_list()
        == planted.interactions.user_vocabulary.series.to_list()
    )
    assert (
        dataset.item_vocabulary.series.to_list()
        == planted.interactions.item_vocabulary.series.to_list()
    )
    oracle = EmbeddingScorer(torch.tensor(planted.user_tastes), torch.tensor(planted.topic_items.T))
    popularity = BASELINES["popularity"]().fit(dataset.train)
    return Truth(
        log, *(evaluate(scorer, dataset, k=[20])["ndcg@20"] for scorer in (popularity, oracle))
    )


def ndcg_of(loss: str, log: Path, **more: object) -> float:
    is_cosine = LOSSES[loss].similarity == "half-cosine"
    options: dict[str, object] = {
        "loss.name": loss,
        "training.learning_rate": 0.1 if is_cosine else 0.02,
    }
    if LOSSES[loss].default_negatives > 1:
        options["sampling.negatives"] = 50
    result = run(RunConfig.from_settings({**settings(log), **options, **more}))
    return float(result.metrics["test"]["ndcg@20"])


def test_the_oracle_is_far_better_than_popularity(truth: Truth) -> None:
    assert truth.oracle > 2.5 * truth.popularity


@pytest.mark.parametrize("loss", LOSSES.names())
def test_every_loss_beats_popularity_by_half(truth: Truth, loss: str) -> None:
    # LLPAUC starts from tiny tables and looks at a hundredth of the negatives: it takes longer.
    more = {"training.epochs": 12} if loss == "llpauc" else {}
    assert ndcg_of(loss, truth.log, **more) > 1.5 * truth.popularity


@pytest.mark.parametrize("loss", ["psl-relu", "sl"])
@pytest.mark.parametrize("backbone", ["mf", "lightgcn", "history"])
def test_three_quarters_of_what_the_oracle_reaches_are_learnt(
    truth: Truth, loss: str, backbone: str
) -> None:
    assert ndcg_of(loss, truth.log, **{"backbone.name": backbone}) > 0.75 * truth.oracle
