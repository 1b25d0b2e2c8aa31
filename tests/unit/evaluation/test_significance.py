import numpy as np
import pytest
from scipy import stats

from pslrec.evaluation import Evaluated, EvaluationResult, compare, compare_results


def test_p_values_are_those_of_the_paired_tests() -> None:
    random = np.random.default_rng(0)
    first, second = random.random(200), random.random(200) + 0.03
    comparison = compare(first, second)
    assert comparison.t_test == pytest.approx(stats.ttest_rel(second, first).pvalue)
    assert comparison.wilcoxon == pytest.approx(stats.wilcoxon(second, first).pvalue)
    assert comparison.difference == pytest.approx(second.mean() - first.mean())


def test_interval_matches_the_normal_one_for_many_users() -> None:
    differences = np.random.default_rng(1).normal(0.1, 1.0, size=2000)
    low, high = compare(np.zeros(2000), differences).interval
    half = 1.96 * differences.std() / np.sqrt(2000)
    assert low == pytest.approx(differences.mean() - half, abs=0.15 * half)
    assert high == pytest.approx(differences.mean() + half, abs=0.15 * half)


def test_equal_scorers_do_not_differ() -> None:
    comparison = compare(np.ones(5), np.ones(5))
    assert (comparison.difference, comparison.t_test, comparison.wilcoxon) == (0.0, 1.0, 1.0)


def test_constant_difference_is_certain() -> None:
    comparison = compare(np.zeros(20), np.ones(20))
    assert comparison.t_test == 0.0
    assert comparison.interval == (1.0, 1.0)


def test_direction_is_second_minus_first() -> None:
    better, worse = np.array([0.5, 0.7, 0.6]), np.array([0.1, 0.2, 0.6])
    assert compare(worse, better).difference == -compare(better, worse).difference > 0


def test_comparison_is_the_same_twice_and_in_small_lots(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = np.random.default_rng(2).random((2, 50))
    before = compare(first, second)
    assert compare(first, second) == before
    assert compare(first, second, seed=1).interval != before.interval


def result(users: list[int], protocol: str = "strict") -> EvaluationResult:
    values = np.linspace(0, 1, len(users))
    return EvaluationResult(
        {}, {"ndcg@20": values}, np.array(users), "test", protocol, Evaluated(1, 1, 1, 1)
    )  # type: ignore[arg-type]


def test_results_of_other_users_or_protocols_cannot_be_compared() -> None:
    assert compare_results(result([0, 1, 2]), result([0, 1, 2]), "ndcg@20").difference == 0.0
    with pytest.raises(ValueError, match="same users"):
        compare_results(result([0, 1]), result([0, 2]), "ndcg@20")
    with pytest.raises(ValueError, match="same split and protocol"):
        compare_results(result([0, 1]), result([0, 1], "paper"), "ndcg@20")
    with pytest.raises(ValueError, match="`name` must be one of ndcg@20"):
        compare_results(result([0, 1]), result([0, 1]), "recall@20")


def test_wrong_arguments_raise() -> None:
    with pytest.raises(ValueError, match="same users"):
        compare(np.zeros(3), np.zeros(4))
    with pytest.raises(ValueError, match="`confidence`"):
        compare(np.zeros(3), np.ones(3), confidence=95)
