"""What a run does not keep, computed from its model: per-user values, scores of pairs, hits."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from pslrec.artifacts import RunDirectory
from pslrec.config import RunConfig
from pslrec.data import Dataset, Interactions, SealedInteractions
from pslrec.evaluation import (
    EmbeddingScorer,
    EvaluationResult,
    RankingTask,
    Scorer,
    Split,
    evaluate,
    ranking_task,
)
from pslrec.experiment import TrainingData, load_training_data, with_validation
from pslrec.kernels import HIDDEN, top_k
from pslrec.losses import LOSSES
from pslrec.reporting._run_record import RunRecord
from pslrec.seeding import generator

# The list length of the paper's tables.
K = 20
SAMPLED_PAIRS = 20_000
# Users are ranked in blocks, so that a block's scores stay below 64 MB whatever the catalogue.
_SCORES_AT_ONCE = 2**24


@dataclass(frozen=True, eq=False)
class Measures:
    """What the model of a run does to single users and pairs.

    Args:
        test: metrics of each user on the test set, at list length 20; on the validation set where
            there is no test set.
        history: number of training interactions of each of these users.
        found: for each held-out pair of these users, whether its item is in the user's list.
        popularity: for each of these pairs, the training interactions of its item.
        scores: scores of a sample of pairs, by kind of pair.
        similarity: what a score is, as the loss declares it.
        facts: sizes of the data.
    """

    test: EvaluationResult
    history: np.ndarray
    found: np.ndarray
    popularity: np.ndarray
    scores: Mapping[str, np.ndarray]
    similarity: str
    facts: Mapping[str, int]


class Measurer:
    """Measures runs one after the other; consecutive runs on the same data load it once."""

    def __init__(self) -> None:
        self._loaded: tuple[str, TrainingData] | None = None

    def measure(self, record: RunRecord) -> Measures:
        """Measure a finished run, whose data must still be in its place.

        Raises:
            PslrecError: the data or the model is gone, or is no longer that of the run.
            ValueError: the model has diverged.
        """
        config = RunConfig.from_toml(record.path / "config.toml")
        data = self._data(config)
        directory = RunDirectory(record.path)
        # The files may have changed since: then all numbers here would be of other data.
        directory.check_data(data.dataset)
        similarity = LOSSES[config.loss.name].similarity
        known = data
        if "refit" in record.metrics:
            # The model has learnt the validation part, too.
            known = with_validation(data)
        model = directory.read_model(similarity, known.train.rows)
        scorer = model.scorer()
        # Nothing is chosen any more, so the test set may be read.
        if isinstance(data.dataset.test, SealedInteractions):
            data.dataset.test.unseal("the run is finished")

        section = config.evaluation
        split: Split = "test"
        if not len(data.dataset.test) and data.dataset.validation is not None:
            # Nothing was held out to test on.
            split = "validation"
        # Only what the charts need; all other metrics are in the run's own files.
        test = evaluate(
            scorer,
            data.dataset,
            split=split,
            k=(K,),
            protocol=section.protocol,
            metrics=("ndcg", "recall"),
            memory_budget=section.memory_megabytes * 2**20,
        )
        task = ranking_task(data.dataset, split=split, protocol=section.protocol)
        found, items = hits(scorer, task)
        return Measures(
            test=test,
            history=data.train.user_counts()[test.users],
            found=found,
            popularity=task.popularity[items],
            # Those that the loss has seen.
            scores=score_sample(model.vector_scorer(), data),
            similarity=similarity,
            facts=_facts(data.dataset),
        )

    def _data(self, config: RunConfig) -> TrainingData:
        # Everything that decides which pairs a run trains on and is evaluated by.
        key = f"{config.data!r} {config.sampling.noise!r} {config.evaluation.protocol}"
        if self._loaded is None or self._loaded[0] != key:
            self._loaded = (key, load_training_data(config))
        return self._loaded[1]


def hits(scorer: Scorer, task: RankingTask, *, k: int = K) -> tuple[np.ndarray, np.ndarray]:
    """For each relevant pair of the task, whether the item is in the user's list, and the item.

    Args:
        scorer: ranks the catalogue.
        task: which users to rank for, which items to hide, and which are relevant.
        k: length of the lists.
    """
    # Empty arrays to begin with: a task without users has nothing to join.
    found = [np.zeros(0, dtype=bool)]
    relevant = [np.zeros(0, dtype=np.int64)]
    rows_at_once = max(1, _SCORES_AT_ONCE // scorer.n_items)
    with torch.inference_mode():
        for start in range(0, len(task.users), rows_at_once):
            users = task.users[start : start + rows_at_once]
            scores = scorer.score(users)
            rows, items = task.hidden_from(users)
            scores[torch.from_numpy(rows), torch.from_numpy(items)] = HIDDEN
            _, best = top_k(scores, k)
            # Flags for the whole block, so that pairs are looked up at once instead of searched.
            listed = torch.zeros(scores.shape, dtype=torch.bool)
            listed.scatter_(1, best, True)
            rows, items = task.relevant.positions(users)
            found.append(listed[torch.from_numpy(rows), torch.from_numpy(items)].numpy())
            relevant.append(items)
    return np.concatenate(found), np.concatenate(relevant)


def score_sample(
    scorer: EmbeddingScorer, data: TrainingData, *, seed: int = 2024
) -> dict[str, np.ndarray]:
    """Score random pairs: positives, negatives, and both kinds of false negatives.

    Items of the test set were negatives during training although the user did interact with them,
    which makes them natural false negatives; planted ones exist in the noise setting only.

    Args:
        scorer: scores the pairs.
        data: where they come from.
        seed: of the sample; fixed, so that a report can be written again.
    """
    draws = generator(seed, "report")
    dataset = data.dataset
    kinds = {"positives (training)": data.train, "false negatives (test)": dataset.test}
    if data.false_negatives is not None:
        kinds["false negatives (planted)"] = data.false_negatives
    pairs = {}
    for kind, part in kinds.items():
        pairs[kind] = _sampled(part, draws)

    # Negatives belong to the same users as the positives, so that the two differ in the item only.
    users, _ = pairs["positives (training)"]
    items = draws.integers(dataset.n_items, size=len(users))
    known = [part.pair_keys() for part in (*dataset.parts().values(), *kinds.values())]
    is_new = ~np.isin(users * dataset.n_items + items, np.concatenate(known))
    pairs["negatives"] = (users[is_new], items[is_new])

    scores = {}
    for kind in ("negatives", *kinds):
        users, items = pairs[kind]
        if len(users):
            scores[kind] = _pair_scores(scorer, users, items)
    return scores


def _sampled(part: Interactions, draws: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    chosen = draws.choice(len(part), min(len(part), SAMPLED_PAIRS), replace=False)
    # Row numbers are stored in 32 bits, which their products with the number of items overflow.
    return part.users[chosen].astype(np.int64), part.items[chosen].astype(np.int64)


def _pair_scores(scorer: EmbeddingScorer, users: np.ndarray, items: np.ndarray) -> np.ndarray:
    of_users = scorer.user_vectors[torch.from_numpy(users)]
    of_items = scorer.item_vectors[torch.from_numpy(items)]
    return (of_users * of_items).sum(dim=1).numpy()


def _facts(dataset: Dataset) -> dict[str, int]:
    facts = {"users": dataset.n_users, "items": dataset.n_items}
    for name, part in dataset.parts().items():
        facts[f"{name} pairs"] = len(part)
    return facts
