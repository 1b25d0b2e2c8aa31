"""Evaluation over the whole catalogue: all items are ranked for every user, once for all lists."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pslrec.data import Dataset
from pslrec.distributed import Group, Partition
from pslrec.errors import DataError
from pslrec.evaluation._evaluated import Evaluated
from pslrec.evaluation._exposure import Exposure
from pslrec.evaluation._full_ranks import full_ranks
from pslrec.evaluation._metrics import METRICS, Basis, RankedLists
from pslrec.evaluation._scorer import AddingScorer, Scorer, VectorScorer
from pslrec.evaluation._task import Protocol, RankingTask, Split, ranking_task
from pslrec.kernels import HIDDEN, NOT_NUMBERS, rows_at_once, times_transposed, top_k

DEFAULT_MEMORY_BUDGET = 256 * 2**20
COUNTED_PAIRS = 5_000_000
# Metrics of full ranks sort all scores of every user, which takes many times as long.
DEFAULT_METRICS = tuple(name for name in METRICS if METRICS[name].basis != "ranks")


@dataclass(frozen=True, eq=False)
class EvaluationResult:
    """What an evaluation found.

    Args:
        metrics: means (or totals, for metrics of the whole catalogue) by name, such as
            `recall@20`.
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
    n_users: int | None = None,
    seed: int = 0,
    group: Group | None = None,
) -> EvaluationResult:
    """Rank the catalogue for every user and compare with what they did.

    Args:
        scorer: scores items for users; raw scores are ranked, equal ones by lower item row.
        dataset: its training part is hidden from the lists, and `split` says which part holds the
            hits.
        split: `test`, or `validation` while choices are still being made.
        k: lengths of the lists.
        protocol: `strict` hides validation items at test and averages over users that have relevant
            items; `paper` hides training items only and averages over all users, as the published
            numbers were made.
        metrics: names from `METRICS`; by default all but those that need the rank of every item
            (`auc`, ...).
        memory_budget: bytes that the evaluation may use at most, its result included; a tight budget
            means fewer users at a time. Of more than five million pairs, the pairs are not counted.
        n_users: evaluate a sample of so many users, if there are more.
        seed: of the sample; the same seed gives the same users.
        group: processes that share the users, each of which gets the whole result.

    >>> from pslrec.data import Interactions
    >>> from pslrec.evaluation import EmbeddingScorer
    >>> log = Interactions.from_ids(["ann", "ann", "bob"], ["milk", "tea", "tea"])
    >>> dataset = Dataset(train=log.select(np.array([0, 2])), test=log.select(np.array([1])))
    >>> scorer = EmbeddingScorer(torch.eye(2), torch.eye(2))
    >>> evaluate(scorer, dataset, k=[1], metrics=["recall"]).metrics
    {'recall@1': 1.0}
    """
    if scorer.n_users != dataset.n_users or scorer.n_items != dataset.n_items:
        raise DataError(
            f"`scorer` knows {scorer.n_users} users and {scorer.n_items} items, `dataset` has "
            f"{dataset.n_users} and {dataset.n_items}; evaluate on the data set that the scorer "
            "was fitted on"
        )
    cutoffs = sorted(set(k))
    if not cutoffs or cutoffs[0] < 1:
        raise ValueError(f"`k` must hold list lengths of at least 1, got {list(k)}")
    if n_users is not None and n_users < 1:
        raise ValueError(f"`n_users` must be at least 1, got {n_users}")
    task = ranking_task(dataset, split=split, protocol=protocol, n_users=n_users, seed=seed)
    rows = users_at_once(task, cutoffs, metrics, memory_budget=memory_budget)
    tally = _Tally(task, cutoffs, metrics)
    group = group or Group()
    parts = Partition.even(len(task.users), group.size)
    own = parts.of(group.rank)
    # Vectors may be parameters; their gradients are of no use here.
    with torch.inference_mode():
        for place, scores in _score_blocks(scorer, task.users[own.start : own.stop], rows):
            start = own.start + place
            users = task.users[start : start + len(scores)]
            hidden_rows, hidden_items = task.hidden_from(users)
            hidden = (torch.from_numpy(hidden_rows), torch.from_numpy(hidden_items))
            # Hiding would cover these up; ranking finds NaN everywhere else.
            if bool(scores[hidden].isnan().any()):
                raise ValueError(NOT_NUMBERS)
            scores[hidden] = HIDDEN
            tally.add(start, users, scores)
    tally.gather(group, parts)
    return EvaluationResult(
        metrics=tally.means(),
        per_user=tally.per_user,
        users=task.users,
        split=split,
        protocol=protocol,
        evaluated=task.evaluated,
    )


def _score_blocks(
    scorer: Scorer,
    users: np.ndarray,
    rows: int,
) -> Iterator[tuple[int, Tensor]]:
    """Scores of some users at a time, with the position of the first."""
    if isinstance(scorer, VectorScorer):
        yield from _product_blocks(scorer, users, rows)
        return
    if isinstance(scorer, AddingScorer):
        for start, scores in _product_blocks(scorer.vectors, users, rows):
            scorer.add_to(scores, users[start : start + len(scores)])
            yield start, scores
        return
    for start in range(0, len(users), rows):
        block = users[start : start + rows]
        scores = scorer.score(block)
        shape = (len(block), scorer.n_items)
        if tuple(scores.shape) != shape:
            raise ValueError(
                f"`scorer.score` must return scores of shape {shape}, got {tuple(scores.shape)}"
            )
        yield start, scores.to(device="cpu", dtype=torch.float32)


def _product_blocks(
    scorer: VectorScorer,
    users: np.ndarray,
    rows: int,
) -> Iterator[tuple[int, Tensor]]:
    # One buffer for all blocks, instead of fresh memory of that size for each of them.
    n_rows = min(rows, len(users))
    buffer = torch.empty((n_rows, scorer.n_items))
    for start in range(0, len(users), rows):
        block = users[start : start + rows]
        vectors = scorer.user_vectors[torch.from_numpy(block)]
        scores = buffer[: len(block)]
        times_transposed(vectors, scorer.item_vectors, out=scores)
        yield start, scores


class _Tally:
    """Values of the metrics, gathered block by block."""

    def __init__(
        self,
        task: RankingTask,
        cutoffs: list[int],
        names: Sequence[str],
    ) -> None:
        self.task = task
        self.cutoffs = cutoffs
        # In the order asked for, each once.
        self.names = list(dict.fromkeys(names))
        n_items = len(task.popularity)
        n_users = len(task.users)
        self.per_user: dict[str, np.ndarray] = {}
        for name in self._wants("lists"):
            for k in cutoffs:
                self.per_user[f"{name}@{k}"] = np.zeros(n_users)
        for name in self._wants("ranks"):
            self.per_user[name] = np.zeros(n_users)
        self.counts: dict[int, np.ndarray] = {}
        self.n_hits: dict[int, int] = {}
        if self._wants("exposure"):
            for k in cutoffs:
                self.counts[k] = np.zeros(n_items, dtype=np.int64)
                self.n_hits[k] = 0
        self.relevant = torch.zeros((0, n_items), dtype=torch.bool)

    def _wants(self, basis: Basis) -> list[str]:
        return [name for name in self.names if METRICS[name].basis == basis]

    def add(
        self,
        start: int,
        users: np.ndarray,
        scores: Tensor,
    ) -> None:
        """Take in the masked scores of some users, the first of them at position `start`."""
        rows, items = self.task.relevant.positions(users)
        here = slice(start, start + len(users))
        by_ranks = self._wants("ranks")
        if by_ranks:
            ranks = full_ranks(scores.numpy(), rows, items)
            for name in by_ranks:
                self.per_user[name][here] = METRICS[name].function(ranks)
        if len(self.names) == len(by_ranks):
            return

        # The longest list holds all shorter ones.
        longest = self.cutoffs[-1]
        values, columns = top_k(scores, longest)
        is_shown = values > HIDDEN
        is_relevant = self._marks(rows, items, len(users))
        hits = (is_relevant.gather(1, columns) & is_shown).numpy()
        # Only the marks that were set are cleared, not the whole matrix of users by items.
        self.relevant[rows, items] = False

        lists = RankedLists(hits, self.task.relevant.lengths[users])
        for name in self._wants("lists"):
            for k in self.cutoffs:
                label = f"{name}@{k}"
                self.per_user[label][here] = METRICS[name].function(lists, k)
        shown_items = np.where(is_shown.numpy(), columns.numpy(), -1)
        self._add_exposure(hits, shown_items)

    def _marks(
        self,
        rows: np.ndarray,
        items: np.ndarray,
        n_users: int,
    ) -> Tensor:
        """Which items are relevant to which of the users, in a buffer that is used again."""
        n_rows, n_items = self.relevant.shape
        if n_rows < n_users:
            self.relevant = torch.zeros((n_users, n_items), dtype=torch.bool)
        self.relevant[rows, items] = True
        return self.relevant[:n_users]

    def _add_exposure(self, hits: np.ndarray, items: np.ndarray) -> None:
        n_items = len(self.task.popularity)
        for k in self.counts:
            listed = items[:, :k]
            # Lists of users who have seen nearly everything end before `k`.
            listed = listed[listed >= 0]
            self.counts[k] += np.bincount(listed, minlength=n_items)
            n_hits = np.count_nonzero(hits[:, :k])
            self.n_hits[k] += int(n_hits)

    def gather(self, group: Group, parts: Partition) -> None:
        """Put together what the processes found for their users.

        Args:
            group: the processes.
            parts: who ranked for which users.
        """
        if group.is_single:
            return
        own = parts.of(group.rank)
        for label, values in self.per_user.items():
            # The values themselves: means of parts would depend on how many there are.
            part = torch.from_numpy(values[own.start : own.stop])
            self.per_user[label] = group.whole(part, parts).numpy()
        for k, counts in self.counts.items():
            summed = torch.from_numpy(np.append(counts, self.n_hits[k]))
            group.sum(summed)
            self.counts[k] = summed[:-1].numpy()
            self.n_hits[k] = int(summed[-1])

    def means(self) -> dict[str, float]:
        """Each metric's mean over users, or its value for the catalogue, in the order asked for."""
        result: dict[str, float] = {}
        n_relevant = int(self.task.relevant.lengths.sum())
        for name in self.names:
            metric = METRICS[name]
            if metric.basis == "ranks":
                result[name] = _mean(self.per_user[name])
                continue
            for k in self.cutoffs:
                label = f"{name}@{k}"
                if metric.basis == "lists":
                    result[label] = _mean(self.per_user[label])
                    continue
                exposure = Exposure(
                    counts=self.counts[k],
                    popularity=self.task.popularity,
                    n_hits=self.n_hits[k],
                    n_relevant=n_relevant,
                )
                result[label] = float(metric.function(exposure))
        return result


def _mean(values: np.ndarray) -> float:
    # Without users there is no mean, and numpy would warn.
    if not len(values):
        return 0.0
    return float(values.mean())


def users_at_once(
    task: RankingTask,
    cutoffs: Sequence[int],
    metrics: Sequence[str],
    *,
    memory_budget: int,
) -> int:
    """How many users are ranked at a time; raises if there is no memory even for one.

    Args:
        task: what is to be ranked.
        cutoffs: lengths of the lists.
        metrics: names of the metrics, which keep a value per user or a count per item.
        memory_budget: bytes in all.
    """
    n_users = len(task.users)
    n_items = len(task.popularity)
    n_cutoffs = len(cutoffs)
    bases = [METRICS[name].basis for name in metrics]

    n_values = bases.count("lists") * n_cutoffs + bases.count("ranks")
    fixed = 8 * n_users * n_values
    if "exposure" in bases:
        fixed += 8 * n_items * n_cutoffs
    n_pairs = len(task.relevant.items) + sum(len(rows.items) for rows in task.seen)
    # Pairs by the million are held by training as well, or mapped from files; a budget for scores
    # cannot make room for them.
    if n_pairs <= COUNTED_PAIRS:
        # Sorting the pairs takes 64-bit copies of them, which the system may keep after they are
        # freed.
        fixed += task.nbytes + 16 * n_pairs

    # A score (4 bytes) and a mark (1) for every item, and the list in a dozen forms.
    longest = min(max(cutoffs), n_items)
    per_user = 5 * n_items + 128 * longest
    users = (memory_budget - fixed) // per_user
    if users < 1:
        raise ValueError(
            f"`memory_budget` must be at least {fixed + per_user} bytes for these data, got "
            f"{memory_budget}"
        )
    return int(min(users, rows_at_once(n_items)))
