"""`evaluate` against a loop over users that sorts Python lists."""

import math

import numpy as np
import pytest
import torch

from matrices import interactions_of
from pslrec.data import Dataset, Interactions
from pslrec.errors import ConfigError, DataError, UnknownNameError
from pslrec.evaluation import METRICS, EmbeddingScorer, _full_ranking, evaluate

N_USERS, N_ITEMS = 23, 31


class TableScorer:
    """Scores from a table, as some baseline would give them."""

    def __init__(self, table: np.ndarray) -> None:
        self.table = torch.from_numpy(table.astype(np.float32))
        self.n_users, self.n_items = table.shape
        self.largest_block = 0

    def score(self, users: np.ndarray) -> torch.Tensor:
        self.largest_block = max(self.largest_block, len(users))
        return self.table[users].clone()


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    random = np.random.default_rng(0)
    fate = random.choice(4, p=[0.6, 0.2, 0.1, 0.1], size=(N_USERS, N_ITEMS))
    fate[:4][fate[:4] == 3] = 0  # the first users have nothing to find at test
    fate[5, :] = 1  # one user has seen everything
    return Dataset(
        interactions_of(fate == 1), interactions_of(fate == 3), interactions_of(fate == 2)
    )


@pytest.fixture(scope="module")
def scorer() -> TableScorer:
    # Few distinct values: ties everywhere.
    return TableScorer(np.random.default_rng(1).integers(0, 6, size=(N_USERS, N_ITEMS)))


def items_of(interactions: Interactions | None, user: int) -> set[int]:
    return (
        set()
        if interactions is None
        else set(interactions.items[interactions.users == user].tolist())
    )


def ranked(scorer: TableScorer, dataset: Dataset, user: int, hidden: set[int]) -> list[int]:
    shown = [item for item in range(N_ITEMS) if item not in hidden]
    return sorted(shown, key=lambda item: (-float(scorer.table[user, item]), item))


def naive(
    scorer: TableScorer, dataset: Dataset, split: str, protocol: str, k: int
) -> dict[str, float]:
    values: list[tuple[float, float, float]] = []
    for user in range(N_USERS):
        relevant = items_of(dataset.test if split == "test" else dataset.validation, user)
        hidden = items_of(dataset.train, user)
        if split == "test" and protocol == "strict":
            hidden |= items_of(dataset.validation, user)
        if not relevant:
            if protocol == "paper":
                values.append((0.0, 0.0, 0.0))
            continue
        listed = ranked(scorer, dataset, user, hidden)
        places = [place for place, item in enumerate(listed[:k], start=1) if item in relevant]
        ideal = sum(1 / math.log2(place + 1) for place in range(1, min(k, len(relevant)) + 1))
        gained = sum(1 / math.log2(place + 1) for place in places)
        everywhere = sum(
            1 / place for place, item in enumerate(listed, start=1) if item in relevant
        )
        values.append((len(places) / len(relevant), gained / ideal, everywhere))
    recall, ndcg, reciprocal = np.mean(values, axis=0)
    return {f"recall@{k}": recall, f"ndcg@{k}": ndcg, "reciprocal_rank_sum": reciprocal}


@pytest.mark.parametrize("protocol", ["paper", "strict"])
@pytest.mark.parametrize("split", ["test", "validation"])
@pytest.mark.parametrize("k", [1, 7, 100])
def test_evaluate_equals_a_loop(
    scorer: TableScorer, dataset: Dataset, split, protocol, k: int
) -> None:
    names = ["recall", "ndcg", "reciprocal_rank_sum"]
    result = evaluate(scorer, dataset, split=split, protocol=protocol, k=[k], metrics=names)
    assert result.metrics == pytest.approx(naive(scorer, dataset, split, protocol, k), abs=1e-12)


def test_protocols_differ_in_masks_and_users(scorer: TableScorer, dataset: Dataset) -> None:
    paper = evaluate(scorer, dataset, protocol="paper", metrics=["recall"])
    strict = evaluate(scorer, dataset, protocol="strict", metrics=["recall"])
    assert len(paper.users) == N_USERS
    assert set(strict.users) == set(dataset.test.users)
    assert paper.per_user["recall@20"][:4].tolist() == [0.0] * 4


def test_paper_protocol_leaves_validation_items_in_the_lists() -> None:
    pairs = np.zeros((1, 3), dtype=bool)
    train, validation, test = pairs.copy(), pairs.copy(), pairs.copy()
    train[0, 0] = validation[0, 1] = test[0, 2] = True
    dataset = Dataset(interactions_of(train), interactions_of(test), interactions_of(validation))
    scorer = TableScorer(np.array([[9.0, 5.0, 1.0]]))
    assert evaluate(scorer, dataset, protocol="paper", k=[1])["recall@1"] == 0.0
    assert evaluate(scorer, dataset, protocol="strict", k=[1])["recall@1"] == 1.0


def test_auc_equals_a_count_of_pairs(scorer: TableScorer, dataset: Dataset) -> None:
    result = evaluate(scorer, dataset, metrics=["auc"])
    for user, auc in zip(result.users, result.per_user["auc"], strict=True):
        relevant = items_of(dataset.test, user)
        hidden = items_of(dataset.train, user) | items_of(dataset.validation, user)
        others = set(range(N_ITEMS)) - hidden - relevant
        scores = scorer.table[user].tolist()
        right = [
            (scores[i] > scores[j]) + 0.5 * (scores[i] == scores[j])
            for i in relevant
            for j in others
        ]
        assert auc == pytest.approx(np.mean(right), abs=1e-12)


def test_relevant_items_that_are_hidden_count_as_missed() -> None:
    seen, test = np.zeros((1, 4), dtype=bool), np.zeros((1, 4), dtype=bool)
    seen[0, 0] = test[0, 0] = test[0, 1] = True
    dataset = Dataset(interactions_of(seen), interactions_of(test))
    scorer = TableScorer(np.array([[9.0, 5.0, 1.0, 0.0]]))
    result = evaluate(scorer, dataset, k=[2], metrics=["recall", "auc", "reciprocal_rank_sum"])
    assert result.metrics == {"recall@2": 0.5, "auc": 0.5, "reciprocal_rank_sum": 1.0}


def test_auc_without_other_items_is_a_half() -> None:
    everything = np.ones((1, 3), dtype=bool)
    dataset = Dataset(interactions_of(~everything), interactions_of(everything))
    assert (
        evaluate(TableScorer(np.array([[1.0, 2.0, 3.0]])), dataset, metrics=["auc"])["auc"] == 0.5
    )


def test_hidden_items_fill_no_places() -> None:
    seen, test = np.zeros((1, 4), dtype=bool), np.zeros((1, 4), dtype=bool)
    seen[0, :3] = test[0, 3] = True
    result = evaluate(
        TableScorer(np.ones((1, 4))),
        Dataset(interactions_of(seen), interactions_of(test)),
        k=[4],
        metrics=["coverage", "mrr"],
    )
    assert result.metrics == {"coverage@4": 1 / 4, "mrr@4": 1.0}


def test_result_does_not_depend_on_the_block_size(scorer: TableScorer, dataset: Dataset) -> None:
    names = METRICS.names()
    whole = evaluate(scorer, dataset, metrics=names, protocol="paper")
    smallest = needed_bytes(scorer, dataset, names)
    scorer.largest_block = 0
    blocked = evaluate(scorer, dataset, metrics=names, protocol="paper", memory_budget=smallest)
    assert scorer.largest_block == 1
    assert blocked.metrics == whole.metrics
    assert all(
        np.array_equal(blocked.per_user[name], whole.per_user[name]) for name in whole.per_user
    )


def test_blocks_are_no_larger_than_what_is_ranked_in_the_cache(
    scorer: TableScorer, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = evaluate(scorer, dataset, protocol="paper")
    monkeypatch.setattr(_full_ranking, "rows_at_once", lambda n_columns: 100 // n_columns)
    scorer.largest_block = 0
    blocked = evaluate(scorer, dataset, protocol="paper")
    assert scorer.largest_block == 100 // N_ITEMS > 1
    assert blocked.metrics == whole.metrics


def needed_bytes(scorer: TableScorer, dataset: Dataset, names: list[str]) -> int:
    with pytest.raises(ValueError, match="at least") as caught:
        evaluate(scorer, dataset, metrics=names, protocol="paper", memory_budget=1)
    return int(str(caught.value).split("at least ")[1].split()[0])


def test_embedding_scorer_ranks_as_its_scores_do(dataset: Dataset) -> None:
    generator = torch.Generator().manual_seed(0)
    vectors = (
        torch.randn(N_USERS, 5, generator=generator),
        torch.randn(N_ITEMS, 5, generator=generator),
    )
    embedding = EmbeddingScorer(*vectors)
    table = TableScorer(embedding.score(np.arange(N_USERS)).numpy())
    assert evaluate(embedding, dataset).metrics == pytest.approx(evaluate(table, dataset).metrics)


def test_large_inner_products_do_not_saturate(dataset: Dataset, scorer: TableScorer) -> None:
    raised = TableScorer(scorer.table.numpy() + 1000)
    assert evaluate(raised, dataset).metrics == evaluate(scorer, dataset).metrics


def test_means_are_those_of_the_per_user_values(scorer: TableScorer, dataset: Dataset) -> None:
    result = evaluate(scorer, dataset)
    for name, values in result.per_user.items():
        assert result[name] == values.mean()
        assert len(values) == len(result.users)


def test_scores_that_are_not_numbers_raise(dataset: Dataset) -> None:
    with pytest.raises(ValueError, match="not numbers"):
        evaluate(TableScorer(np.full((N_USERS, N_ITEMS), np.nan)), dataset)
    with pytest.raises(ValueError, match="not numbers"):
        evaluate(TableScorer(np.full((N_USERS, N_ITEMS), np.nan)), dataset, metrics=["auc"])


@pytest.mark.parametrize("metrics", [["recall"], ["auc"]])
def test_a_score_of_a_seen_item_that_is_not_a_number_raises(
    dataset: Dataset, scorer: TableScorer, metrics: list[str]
) -> None:
    table = scorer.table.numpy().copy()
    evaluated = np.flatnonzero(dataset.train.matrix().getnnz(axis=1))[-1]
    table[evaluated, dataset.train.matrix()[evaluated].indices[0]] = np.nan
    with pytest.raises(ValueError, match="not numbers"):
        evaluate(TableScorer(table), dataset, metrics=metrics)


def test_wrong_arguments_say_what_is_allowed(scorer: TableScorer, dataset: Dataset) -> None:
    with pytest.raises(ConfigError, match="`split` must be one of test, validation"):
        evaluate(scorer, dataset, split="train")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="`protocol` must be one of paper, strict"):
        evaluate(scorer, dataset, protocol="loose")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`k` must hold"):
        evaluate(scorer, dataset, k=[0, 5])
    with pytest.raises(UnknownNameError, match="did you mean `ndcg`"):
        evaluate(scorer, dataset, metrics=["ndgc"])
    with pytest.raises(DataError, match="`scorer` knows"):
        evaluate(TableScorer(np.ones((2, 2))), dataset)
    with pytest.raises(DataError, match="no validation part"):
        evaluate(scorer, Dataset(dataset.train, dataset.test), split="validation")


def test_scores_of_the_wrong_shape_raise(dataset: Dataset, scorer: TableScorer) -> None:
    class Narrow(TableScorer):
        def score(self, users: np.ndarray) -> torch.Tensor:
            return super().score(users)[:, 1:]

    with pytest.raises(ValueError, match="must return scores of shape"):
        evaluate(Narrow(scorer.table.numpy()), dataset)


def test_no_user_to_judge_gives_zero(scorer: TableScorer, dataset: Dataset) -> None:
    nobody = interactions_of(np.zeros((N_USERS, N_ITEMS), dtype=bool))
    result = evaluate(scorer, Dataset(dataset.train, nobody), metrics=["recall", "gini"])
    assert result["recall@20"] == result["gini@20"] == 0.0
