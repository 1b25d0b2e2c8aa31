"""Evaluation over the whole catalogue: every item is ranked for every user, all cut-offs in one pass."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from pslrec.data import Dataset
from pslrec.errors import DataError
from pslrec.evaluation._evaluated import Evaluated
from pslrec.evaluation._exposure import Exposure
from pslrec.evaluation._full_ranks import full_ranks
from pslrec.evaluation._metrics import METRICS, Basis, RankedLists
from pslrec.evaluation._scorer import Scorer, VectorScorer
from pslrec.evaluation._task import Protocol, RankingTask, Split, ranking_task
from pslrec.kernels import HIDDEN, NOT_NUMBERS, top_k

DEFAULT_MEMORY_BUDGET = 256 * 2**20
DEFAULT_METRICS = tuple(name for name in METRICS if METRICS[name].basis != "ranks")


@dataclass(frozen=True, eq=False)
class EvaluationResult:
    """What an evaluation found.

    Args:
        metrics: means (or totals, for metrics of the whole catalogue) by name, such as `recall@20`.
        per_user: values of the single users under the same names, in the order of `users`.
        users: rows of the users that count in the means.
        split: which part of the data was ranked.
        protocol: which items were hidden and which users counted.
        evaluated: how many users and pairs that was, out of how many.
    """

    metrics: dict[str, float]
    per_user: dict[str, np.ndarray]
    users: np.ndarray
    split: Split
    protocol: Protocol
    evaluated: Evaluated

    def __getitem__(self, name: str) -> float:
        return self.metrics[name]


def evaluate(
    scorer: Scorer,
    dataset: Dataset,
    *,
    split: Split = "test",
    k: Sequence[int] = (5, 20, 50),
    protocol: Protocol = "strict",
    metrics: Sequence[str] = DEFAULT_METRICS,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> EvaluationResult:
    """Rank the catalogue for every user and compare with what they did.

    Args:
        scorer: scores items for users; raw scores are ranked, equal ones by lower item row.
        dataset: its training part is hidden from the lists, and `split` says which part holds the hits.
        split: `test`, or `validation` while choices are still being made.
        k: lengths of the lists.
        protocol: `strict` hides validation items at test and averages over users that have relevant items;
            `paper` hides training items only and averages over all users, as the published numbers were made.
        metrics: names from `METRICS`; by default all but those that need the rank of every item (`auc`, ...).
        memory_budget: bytes that the evaluation may use, its result included; less memory means fewer users
            at a time.

    >>> from pslrec.data._interactions import Interactions
    >>> from pslrec.evaluation import EmbeddingScorer
    >>> log = Interactions.from_ids(["ann", "ann", "bob"], ["milk", "tea", "tea"])
    >>> dataset = Dataset(train=log.select(np.array([0, 2])), test=log.select(np.array([1])))
    >>> scorer = EmbeddingScorer(torch.eye(2), torch.eye(2))
    >>> evaluate(scorer, dataset, k=[1], metrics=["recall"]).metrics
    {'recall@1': 1.0}
    """
    if (scorer.n_users, scorer.n_items) != (dataset.n_users, dataset.n_items):
        raise DataError(
            f"`scorer` knows {scorer.n_users} users and {scorer.n_items} items, `dataset` has "
            f"{dataset.n_users} and {dataset.n_items}; evaluate on the data set that the scorer was fitted on"
        )
    cutoffs = sorted(set(k))
    if not cutoffs or cutoffs[0] < 1:
        raise ValueError(f"`k` must hold list lengths of at least 1, got {list(k)}")
    task = ranking_task(dataset, split=split, protocol=protocol)
    rows = users_at_once(task, cutoffs, metrics, memory_budget=memory_budget)
    tally = _Tally(task, cutoffs, metrics)
    with torch.inference_mode():
        for start, scores in _score_blocks(scorer, task.users, rows):
            users = task.users[start : start + len(scores)]
            hidden_rows, hidden_items = task.seen.positions(users)
            hidden = torch.from_numpy(hidden_rows), torch.from_numpy(hidden_items)
            # Hiding would cover them up; ranking finds all others.
            if bool(scores[hidden].isnan().any()):
                raise ValueError(NOT_NUMBERS)
            scores[hidden] = HIDDEN
            tally.add(start, users, scores)
    return EvaluationResult(
        tally.means(), tally.per_user, task.users, split, protocol, task.evaluated
    )


def _score_blocks(
    scorer: Scorer, users: np.ndarray, rows: int
) -> Iterator[tuple[int, torch.Tensor]]:
    """Scores of some users at a time, with the position of the first."""
    product = isinstance(scorer, VectorScorer)
    buffer = torch.empty((min(rows, len(users)), scorer.n_items)) if product else None
    for start in range(0, len(users), rows):
        block = users[start : start + rows]
        if isinstance(scorer, VectorScorer) and buffer is not None:
            vectors = scorer.user_vectors[torch.from_numpy(block)]
            yield start, torch.mm(vectors, scorer.item_vectors.T, out=buffer[: len(block)])
        else:
            yield start, _checked(scorer.score(block), (len(block), scorer.n_items))


def _checked(scores: torch.Tensor, shape: tuple[int, int]) -> torch.Tensor:
    if tuple(scores.shape) != shape:
        raise ValueError(
            f"`scorer.score` must return scores of shape {shape}, got {tuple(scores.shape)}"
        )
    return scores.to(device="cpu", dtype=torch.float32)


class _Tally:
    """Values of the metrics, gathered block by block."""

    def __init__(self, task: RankingTask, cutoffs: list[int], names: Sequence[str]) -> None:
        self.task = task
        self.cutoffs = cutoffs
        self.names = list(dict.fromkeys(names))
        self.longest = cutoffs[-1]
        n_items = len(task.popularity)
        self.per_user = {label: np.zeros(len(task.users)) for label in self._labels()}
        exposed = cutoffs if self._wants("exposure") else []
        self.counts = {k: np.zeros(n_items, dtype=np.int64) for k in exposed}
        self.n_hits = dict.fromkeys(exposed, 0)
        self.relevant = torch.zeros((0, n_items), dtype=torch.bool)

    def _wants(self, basis: Basis) -> list[str]:
        return [name for name in self.names if METRICS[name].basis == basis]

    def _labels(self) -> list[str]:
        at_k = [f"{name}@{k}" for name in self._wants("lists") for k in self.cutoffs]
        return at_k + self._wants("ranks")

    def add(self, start: int, users: np.ndarray, scores: torch.Tensor) -> None:
        """Take in the masked scores of some users."""
        rows, items = self.task.relevant.positions(users)
        here = slice(start, start + len(users))
        if self._wants("ranks"):
            ranks = full_ranks(scores.numpy(), rows, items)
            for name in self._wants("ranks"):
                self.per_user[name][here] = METRICS[name].function(ranks)
        if len(self.names) == len(self._wants("ranks")):
            return
        values, columns = top_k(scores, self.longest)
        shown = values > HIDDEN
        hits = (self._marks(rows, items, len(users)).gather(1, columns) & shown).numpy()
        self.relevant[rows, items] = False
        self._add_lists(here, RankedLists(hits, self.task.relevant.lengths[users]))
        self._add_exposure(hits, np.where(shown.numpy(), columns.numpy(), -1))

    def _marks(self, rows: np.ndarray, items: np.ndarray, n_users: int) -> torch.Tensor:
        if len(self.relevant) < n_users:
            self.relevant = torch.zeros((n_users, self.relevant.shape[1]), dtype=torch.bool)
        self.relevant[rows, items] = True
        return self.relevant[:n_users]

    def _add_lists(self, here: slice, lists: RankedLists) -> None:
        for name in self._wants("lists"):
            for k in self.cutoffs:
                self.per_user[f"{name}@{k}"][here] = METRICS[name].function(lists, k)

    def _add_exposure(self, hits: np.ndarray, items: np.ndarray) -> None:
        for k in self.counts:
            shown = items[:, :k]
            self.counts[k] += np.bincount(shown[shown >= 0], minlength=len(self.task.popularity))
            self.n_hits[k] += int(np.count_nonzero(hits[:, :k]))

    def means(self) -> dict[str, float]:
        """Each metric's mean over users, or its value for the catalogue, in the order asked for."""
        result: dict[str, float] = {}
        n_relevant = int(self.task.relevant.lengths.sum())
        for name in self.names:
            if METRICS[name].basis == "ranks":
                result[name] = _mean(self.per_user[name])
                continue
            for k in self.cutoffs:
                label = f"{name}@{k}"
                if METRICS[name].basis == "lists":
                    result[label] = _mean(self.per_user[label])
                else:
                    exposure = Exposure(
                        self.counts[k], self.task.popularity, self.n_hits[k], n_relevant
                    )
                    result[label] = float(METRICS[name].function(exposure))
        return result


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else 0.0


def users_at_once(
    task: RankingTask, cutoffs: Sequence[int], metrics: Sequence[str], *, memory_budget: int
) -> int:
    """How many users can be ranked at a time within a memory budget in bytes; raises if it is not even one."""
    n_items, longest = len(task.popularity), max(cutoffs)
    bases = [METRICS[name].basis for name in metrics]
    values = 8 * len(task.users) * (bases.count("lists") * len(cutoffs) + bases.count("ranks"))
    fixed = task.nbytes + values + (8 * n_items * len(cutoffs) if "exposure" in bases else 0)
    # Bringing the pairs in order takes 64-bit copies of them, which the system may keep after they are freed.
    fixed += 16 * (len(task.seen.items) + len(task.relevant.items))
    # A score (4 bytes) and a mark (1) for every item, and the list in a dozen forms.
    per_user = 5 * n_items + 128 * min(longest, n_items)
    users = (memory_budget - fixed) // per_user
    if users < 1:
        raise ValueError(
            f"`memory_budget` must be at least {fixed + per_user} bytes for these data, got {memory_budget}"
        )
    return int(users)
