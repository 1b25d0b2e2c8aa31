import math

import numpy as np
import pytest
import pytrec_eval

from pslrec.evaluation._exposure import (
    Exposure,
    average_popularity,
    coverage,
    gini,
    micro_hit_ratio,
    tail_share,
)
from pslrec.evaluation._metrics import METRICS, RankedLists, divide, metric

TREC_NAMES = {"recall": "recall", "ndcg": "ndcg_cut", "precision": "P", "map": "map_cut"}


def value(name: str, hits: list[int], n_relevant: int, k: int) -> float:
    lists = RankedLists(np.array([hits], dtype=bool), np.array([n_relevant]))
    return float(METRICS[name].function(lists, k)[0])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("recall", 2 / 3),
        ("precision", 2 / 4),
        ("f1", 2 * (2 / 3) * (2 / 4) / (2 / 3 + 2 / 4)),
        ("hit_rate", 1.0),
        ("ndcg", (1 / math.log2(3) + 1 / math.log2(5)) / (1 + 1 / math.log2(3) + 1 / math.log2(4))),
        ("mrr", 1 / 2),
        ("mrr_hits", (1 / 2 + 1 / 4) / 2),
        ("map", (1 / 2 + 2 / 4) / 3),
    ],
)
def test_metric_equals_its_arithmetic(name: str, expected: float) -> None:
    assert value(name, [0, 1, 0, 1, 1], n_relevant=3, k=4) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("name", [name for name in METRICS if METRICS[name].basis == "lists"])
def test_user_without_relevant_items_has_value_zero(name: str) -> None:
    assert value(name, [0, 0, 0], n_relevant=0, k=2) == 0.0


@pytest.mark.parametrize("name", [name for name in METRICS if METRICS[name].basis == "lists"])
def test_user_without_hits_has_value_zero(name: str) -> None:
    assert value(name, [0, 0, 0], n_relevant=4, k=3) == 0.0


@pytest.mark.parametrize(
    ("name", "expected"), [("recall", 1.0), ("precision", 2 / 10), ("ndcg", 1.0), ("map", 1.0)]
)
def test_k_beyond_the_catalogue_keeps_k_as_denominator(name: str, expected: float) -> None:
    assert value(name, [1, 1, 0], n_relevant=2, k=10) == pytest.approx(expected, abs=1e-15)


def test_more_relevant_items_than_places_still_allow_a_perfect_ndcg_and_map() -> None:
    assert value("ndcg", [1, 1, 1], n_relevant=7, k=3) == pytest.approx(1.0)
    assert value("map", [1, 1, 1], n_relevant=7, k=3) == pytest.approx(1.0)


@pytest.mark.parametrize("k", [1, 5, 10, 20])
def test_metrics_agree_with_trec_eval(k: int) -> None:
    random = np.random.default_rng(3)
    n_items, n_users = 60, 40
    order = np.array([random.permutation(n_items) for _ in range(n_users)])
    relevant = random.random((n_users, n_items)) < random.uniform(0.02, 0.6, size=(n_users, 1))
    relevant[:, 0] = True  # trec_eval knows no user without relevant items
    qrel = {f"u{u}": {f"i{i}": int(relevant[u, i]) for i in range(n_items)} for u in range(n_users)}
    run = {
        f"u{u}": {f"i{i}": float(n_items - rank) for rank, i in enumerate(order[u][:20])}
        for u in range(n_users)
    }
    names = {f"{trec}.{k}" for trec in TREC_NAMES.values()}
    theirs = pytrec_eval.RelevanceEvaluator(qrel, names).evaluate(run)
    lists = RankedLists(np.take_along_axis(relevant, order, axis=1)[:, :20], relevant.sum(axis=1))
    for name, trec in TREC_NAMES.items():
        expected = np.array([theirs[f"u{u}"][f"{trec}_{k}"] for u in range(n_users)])
        if name == "map":  # ours divides by what the list can hold, theirs by all relevant items
            expected *= lists.n_relevant / np.minimum(lists.n_relevant, k)
        np.testing.assert_allclose(METRICS[name].function(lists, k), expected, atol=1e-12)


def test_first_hit_agrees_with_trec_eval() -> None:
    random = np.random.default_rng(4)
    hits = random.random((30, 10)) < 0.15
    hits[0] = False
    qrel = {
        f"u{u}": {**{f"i{i}": int(hits[u, i]) for i in range(10)}, "elsewhere": 1}
        for u in range(30)
    }
    run = {f"u{u}": {f"i{i}": float(10 - i) for i in range(10)} for u in range(30)}
    theirs = pytrec_eval.RelevanceEvaluator(qrel, {"recip_rank"}).evaluate(run)
    ours = METRICS["mrr"].function(RankedLists(hits, hits.sum(axis=1) + 1), 10)
    np.testing.assert_allclose(ours, [theirs[f"u{u}"]["recip_rank"] for u in range(30)], atol=1e-12)


def exposure(counts: list[int], popularity: list[int] | None = None) -> Exposure:
    return Exposure(
        np.array(counts), np.array(popularity or [1] * len(counts)), n_hits=3, n_relevant=12
    )


def test_micro_hit_ratio_pools_all_users() -> None:
    assert micro_hit_ratio(exposure([1, 1])) == 3 / 12
    assert micro_hit_ratio(Exposure(np.array([1]), np.array([1]), n_hits=0, n_relevant=0)) == 0.0


def test_coverage_counts_items_in_any_list() -> None:
    assert coverage(exposure([0, 5, 1, 0])) == 2 / 4


def test_gini_equals_the_mean_absolute_difference() -> None:
    counts = np.array([0, 5, 1, 9, 3])
    naive = np.abs(counts[:, None] - counts).sum() / (2 * len(counts) * counts.sum())
    assert gini(exposure(counts.tolist())) == pytest.approx(naive, abs=1e-15)


def test_average_popularity_weighs_items_by_their_places() -> None:
    assert average_popularity(exposure([3, 1, 0], [10, 2, 99])) == (3 * 10 + 1 * 2) / 4


def test_tail_share_leaves_the_head_out_and_breaks_ties_by_row() -> None:
    assert tail_share(exposure([1, 2, 4, 8, 16], [7, 7, 1, 1, 1])) == 30 / 31


@pytest.mark.parametrize("function", [gini, average_popularity, tail_share, coverage])
def test_catalogue_metrics_of_no_lists_are_zero(function: object) -> None:
    assert callable(function)
    assert function(exposure([0, 0, 0])) == 0.0


def test_a_new_metric_is_one_function() -> None:
    @metric("second_place", "lists")
    def second_place(lists: RankedLists, k: int) -> np.ndarray:
        return lists.hits[:, 1].astype(float)

    try:
        assert value("second_place", [0, 1], n_relevant=1, k=2) == 1.0
        assert "second_place" in METRICS
    finally:
        METRICS._parts.pop("second_place")


def test_divide_gives_zero_for_zero_denominators() -> None:
    np.testing.assert_array_equal(divide(np.array([1, 2]), np.array([0, 4])), [0.0, 0.5])
