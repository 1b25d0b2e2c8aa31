"""What a run does not keep, computed from its model: values of single users, scores of pairs, hits by popularity."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from pslrec.artifacts import Model, RunDirectory
from pslrec.config import RunConfig
from pslrec.data import Dataset, Interactions, SealedInteractions
from pslrec.evaluation import EmbeddingScorer, EvaluationResult, RankingTask, evaluate, ranking_task
from pslrec.experiment import TrainingData, load_training_data
from pslrec.kernels import HIDDEN, top_k
from pslrec.losses import LOSSES
from pslrec.reporting._run_record import RunRecord
from pslrec.seeding import generator

K = 20
SAMPLED_PAIRS = 20_000
_SCORES_AT_ONCE = 2**24


@dataclass(frozen=True, eq=False)
class Measures:
    """What the model of a run does to single users and pairs.

    Args:
        test: values of single users on the test part, at list length 20.
        history: training interactions of those users.
        found: for each test pair of those users whether its item is in the list.
        popularity: for each of these pairs the training interactions of its item.
        scores: scores of a sample of pairs by kind.
        similarity: what a score is.
        facts: counts of the data.
    """

    test: EvaluationResult
    history: np.ndarray
    found: np.ndarray
    popularity: np.ndarray
    scores: Mapping[str, np.ndarray]
    similarity: str
    facts: Mapping[str, int]


class Measurer:
    """Measures runs one after the other; runs on the same data load them once."""

    def __init__(self) -> None:
        self._loaded: tuple[str, TrainingData] | None = None

    def measure(self, record: RunRecord) -> Measures:
        """Measure a finished run; its data must still be there.

        Raises:
            PslrecError: the data or the model are gone, or are no longer those of the run.
            ValueError: the model has diverged.
        """
        config = RunConfig.from_toml(record.path / "config.toml")
        data = self._data(config)
        directory = RunDirectory(record.path)
        directory.check_data(data.dataset)
        similarity = LOSSES[config.loss.name].similarity
        scorer = Model(directory.read_tables(), similarity).scorer()
        if isinstance(data.dataset.test, SealedInteractions):
            data.dataset.test.unseal("the run is finished")
        section = config.evaluation
        test = evaluate(
            scorer,
            data.dataset,
            k=(K,),
            protocol=section.protocol,
            metrics=("ndcg", "recall"),
            memory_budget=section.memory_megabytes * 2**20,
        )
        task = ranking_task(data.dataset, split="test", protocol=section.protocol)
        found, items = hits(scorer, task)
        return Measures(
            test=test,
            history=data.train.user_counts()[test.users],
            found=found,
            popularity=task.popularity[items],
            scores=score_sample(scorer, data),
            similarity=similarity,
            facts=_facts(data.dataset),
        )

    def _data(self, config: RunConfig) -> TrainingData:
        key = f"{config.data!r} {config.sampling.noise!r} {config.evaluation.protocol}"
        if self._loaded is None or self._loaded[0] != key:
            self._loaded = (key, load_training_data(config))
        return self._loaded[1]


def hits(
    scorer: EmbeddingScorer, task: RankingTask, *, k: int = K
) -> tuple[np.ndarray, np.ndarray]:
    """For each relevant pair of the task whether the item is in the user's list, and the item.

    Args:
        scorer: ranks the catalogue.
        task: which users, what is hidden, what is relevant.
        k: length of the lists.
    """
    found, relevant = [], []
    rows_at_once = max(1, _SCORES_AT_ONCE // scorer.n_items)
    with torch.inference_mode():
        for start in range(0, len(task.users), rows_at_once):
            users = task.users[start : start + rows_at_once]
            scores = scorer.score(users)
            rows, items = task.seen.positions(users)
            scores[torch.from_numpy(rows), torch.from_numpy(items)] = HIDDEN
            listed = torch.zeros(scores.shape, dtype=torch.bool)
            listed.scatter_(1, top_k(scores, k)[1], True)
            rows, items = task.relevant.positions(users)
            found.append(listed[torch.from_numpy(rows), torch.from_numpy(items)].numpy())
            relevant.append(items)
    return np.concatenate([*found, np.zeros(0, dtype=bool)]), np.concatenate(
        [*relevant, np.zeros(0, dtype=np.int64)]
    )


def score_sample(
    scorer: EmbeddingScorer, data: TrainingData, *, seed: int = 2024
) -> dict[str, np.ndarray]:
    """Scores of random pairs: positives, negatives, and both kinds of false negatives.

    Items of the test part were negatives during training although the user went on to them, which makes them false negatives
    of the natural kind; planted ones are there in the noise setting only.

    Args:
        scorer: scores pairs.
        data: where they come from.
        seed: of the sample.
    """
    draws = generator(seed, "report")
    dataset = data.dataset
    kinds = {"positives (training)": data.train, "false negatives (test)": dataset.test}
    if data.false_negatives is not None:
        kinds["false negatives (planted)"] = data.false_negatives
    pairs = {name: _sampled(part, draws) for name, part in kinds.items()}
    users = pairs["positives (training)"][0]
    known = [part.pair_keys() for part in (*dataset.parts().values(), *kinds.values())]
    pairs["negatives"] = _negatives(users, dataset.n_items, np.concatenate(known), draws)
    order = ["negatives", *kinds]
    return {name: _pair_scores(scorer, *pairs[name]) for name in order if len(pairs[name][0])}


def _sampled(part: Interactions, draws: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    chosen = draws.choice(len(part), min(len(part), SAMPLED_PAIRS), replace=False)
    return part.users[chosen].astype(np.int64), part.items[chosen].astype(np.int64)


def _negatives(
    users: np.ndarray, n_items: int, known: np.ndarray, draws: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    items = draws.integers(n_items, size=len(users))
    is_new = ~np.isin(users * n_items + items, known)
    return users[is_new], items[is_new]


def _pair_scores(scorer: EmbeddingScorer, users: np.ndarray, items: np.ndarray) -> np.ndarray:
    vectors = (
        scorer.user_vectors[torch.from_numpy(users)] * scorer.item_vectors[torch.from_numpy(items)]
    )
    return vectors.sum(dim=1).numpy()


def _facts(dataset: Dataset) -> dict[str, int]:
    counts = {f"{name} pairs": len(part) for name, part in dataset.parts().items()}
    return {"users": dataset.n_users, "items": dataset.n_items, **counts}
