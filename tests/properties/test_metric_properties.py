import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pslrec.evaluation._exposure import Exposure, gini, tail_share
from pslrec.evaluation._full_ranks import auc, full_ranks, reciprocal_rank_sum
from pslrec.evaluation._metrics import METRICS, RankedLists
from pslrec.kernels._top_k import top_k

USER_METRICS = [name for name in METRICS if METRICS[name].basis == "lists"]
CUTOFFS = st.integers(1, 15)


@st.composite
def ranked_lists(draw: st.DrawFn) -> RankedLists:
    hits = draw(hnp.arrays(bool, st.tuples(st.integers(1, 6), st.integers(1, 12))))
    missed = draw(hnp.arrays(np.int64, len(hits), elements=st.integers(0, 9)))
    return RankedLists(hits, hits.sum(axis=1) + missed)


@given(ranked_lists(), CUTOFFS)
def test_metrics_of_a_list_lie_between_zero_and_one(lists: RankedLists, k: int) -> None:
    for name in USER_METRICS:
        values = METRICS[name].function(lists, k)
        assert values.shape == lists.n_relevant.shape
        assert ((values >= 0) & (values <= 1 + 1e-12)).all(), name


@given(st.integers(1, 12), st.integers(1, 12), CUTOFFS)
def test_ideal_list_has_ndcg_map_and_mrr_one(n_relevant: int, length: int, k: int) -> None:
    length = max(length, min(k, n_relevant))
    ideal = RankedLists(np.arange(length)[None, :] < n_relevant, np.array([n_relevant]))
    for name in ("ndcg", "map", "mrr"):
        np.testing.assert_allclose(METRICS[name].function(ideal, k), 1.0)


@given(ranked_lists(), CUTOFFS, st.randoms(use_true_random=False))
def test_what_is_below_k_changes_nothing(lists: RankedLists, k: int, random) -> None:
    below = list(range(min(k, lists.hits.shape[1]), lists.hits.shape[1]))
    shuffled = list(below)
    random.shuffle(shuffled)
    order = [*range(lists.hits.shape[1] - len(below)), *shuffled]
    other = RankedLists(lists.hits[:, order], lists.n_relevant)
    for name in USER_METRICS:
        np.testing.assert_array_equal(
            METRICS[name].function(lists, k), METRICS[name].function(other, k)
        )


@given(ranked_lists(), CUTOFFS)
def test_moving_a_hit_up_never_hurts(lists: RankedLists, k: int) -> None:
    better = RankedLists(np.sort(lists.hits, axis=1)[:, ::-1], lists.n_relevant)
    # The mean over hits inside k is left out: a further, lower hit pulls it down.
    for name in set(USER_METRICS) - {"mrr_hits"}:
        assert (
            METRICS[name].function(better, k) >= METRICS[name].function(lists, k) - 1e-12
        ).all(), name


@given(ranked_lists(), CUTOFFS)
def test_recall_and_hit_rate_never_fall_with_k(lists: RankedLists, k: int) -> None:
    for name in ("recall", "hit_rate", "mrr"):
        assert (METRICS[name].function(lists, k + 1) >= METRICS[name].function(lists, k)).all()


scores_of_users = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 4), st.integers(2, 40)),
    elements=st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0]),
)


@given(scores_of_users, st.integers(1, 45))
def test_top_k_equals_a_stable_sort(scores: np.ndarray, k: int) -> None:
    values, columns = top_k(torch.from_numpy(scores), k)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(columns.numpy(), order)
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(scores, order, axis=1))


@given(scores_of_users, st.data())
def test_full_ranks_are_places_in_the_sorted_list(scores: np.ndarray, data: st.DataObject) -> None:
    relevant = data.draw(hnp.arrays(bool, scores.shape))
    rows, items = np.nonzero(relevant)
    ranks = full_ranks(scores, rows, items)
    place = np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1)[rows, items] + 1
    shown = scores[rows, items] > -np.inf
    expected = np.bincount(rows, np.where(shown, 1 / place, 0.0), minlength=len(scores))
    np.testing.assert_allclose(reciprocal_rank_sum(ranks), expected)
    assert ((auc(ranks) >= 0) & (auc(ranks) <= 1)).all()


@given(scores_of_users, st.data())
def test_auc_of_reversed_scores_is_the_complement(scores: np.ndarray, data: st.DataObject) -> None:
    scores = np.maximum(scores, -2.0)  # nothing hidden
    relevant = data.draw(hnp.arrays(bool, scores.shape))
    relevant[:, 0] = True
    pairs = np.nonzero(relevant)
    np.testing.assert_allclose(
        auc(full_ranks(scores, *pairs)) + auc(full_ranks(-scores, *pairs)), 1.0
    )


@given(hnp.arrays(np.int64, st.integers(1, 30), elements=st.integers(0, 1000)), st.integers(1, 5))
def test_gini_is_a_share_and_does_not_depend_on_scale_or_order(
    counts: np.ndarray, factor: int
) -> None:
    popularity = np.ones_like(counts)
    plain = gini(Exposure(counts, popularity, 0, 0))
    assert 0 <= plain < 1
    np.testing.assert_allclose(
        gini(Exposure(factor * counts[::-1], popularity, 0, 0)), plain, atol=1e-12
    )
    assert 0 <= tail_share(Exposure(counts, popularity, 0, 0)) <= 1
