"""Whether two scorers differ by more than chance, user by user.

Differences are paired: both values of a pair belong to the same user. What this measures is the
chance of the draw of users; that of training (initial vectors, negatives) needs several seeds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pslrec.evaluation._full_ranking import EvaluationResult
from pslrec.seeding import generator

# Users drawn at a time while resampling: this bounds the memory to some ten megabytes.
_DRAWS = 2**22


@dataclass(frozen=True)
class Comparison:
    """How much better the second of two scorers is.

    Args:
        difference: mean over users of second minus first.
        interval: bootstrap confidence interval of the difference.
        t_test: p-value of the paired t-test (two-sided).
        wilcoxon: p-value of the Wilcoxon signed-rank test (two-sided), users without difference
            left out.
        n_users: users compared.
    """

    difference: float
    interval: tuple[float, float]
    t_test: float
    wilcoxon: float
    n_users: int


def compare(
    first: np.ndarray,
    second: np.ndarray,
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 2024,
) -> Comparison:
    """Compare two scorers by their values of one metric for the same users.

    Args:
        first: one value per user.
        second: one value for each of the same users, in the same order.
        confidence: share of resamples inside the interval.
        resamples: how often users are drawn again, with replacement.
        seed: for those draws.

    >>> comparison = compare(np.zeros(100), np.tile([0.0, 0.2], 50))
    >>> round(comparison.difference, 3), comparison.t_test < 0.001
    (0.1, True)
    """
    are_paired = first.ndim == 1 and first.shape == second.shape
    if not are_paired or len(first) < 2:
        raise ValueError(
            "`first` and `second` must hold values of the same users, at least two, "
            f"got shapes {first.shape} and {second.shape}"
        )
    if not 0 < confidence < 1:
        raise ValueError(f"`confidence` must lie between 0 and 1, got {confidence}")
    # In double precision: most differences are small beside the values.
    differences = np.asarray(second, dtype=np.float64) - first
    if not differences.any():
        # The tests have nothing to rank or to scale by.
        return Comparison(
            difference=0.0,
            interval=(0.0, 0.0),
            t_test=1.0,
            wilcoxon=1.0,
            n_users=len(first),
        )
    # Resampling assumes no distribution: values of metrics are far from normal.
    means = _resampled_means(differences, resamples, seed)
    # The same share of the resamples is left out on both sides.
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, (1 + confidence) / 2])
    return Comparison(
        difference=float(differences.mean()),
        interval=(float(low), float(high)),
        t_test=t_test(differences),
        wilcoxon=_wilcoxon_test(differences[differences != 0]),
        n_users=len(differences),
    )


def compare_results(first: EvaluationResult, second: EvaluationResult, name: str) -> Comparison:
    """Compare two evaluations by one of their metrics.

    Args:
        first: one evaluation.
        second: another one of the same users, split and protocol.
        name: of the metric, such as `ndcg@20`.
    """
    is_same_split = first.split == second.split
    if not is_same_split or first.protocol != second.protocol:
        raise ValueError(
            "`first` and `second` must be evaluations of the same split and protocol, "
            f"got {first.split}/{first.protocol} and {second.split}/{second.protocol}"
        )
    if not np.array_equal(first.users, second.users):
        raise ValueError("`first` and `second` must be evaluations of the same users")
    # One of them may have been evaluated by fewer metrics.
    for result in (first, second):
        if name not in result.per_user:
            raise ValueError(f"`name` must be one of {', '.join(result.per_user)}, got {name!r}")
    return compare(first.per_user[name], second.per_user[name])


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for making several tests, by Holm's method.

    The smallest of n p-values is multiplied by n, the next by n - 1, and so on; none comes out
    smaller than one before it, or larger than 1.

    Args:
        p_values: one for each test; the result has the same order.

    >>> [round(p, 6) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    n = len(p_values)
    order = sorted(range(n), key=lambda place: p_values[place])
    corrected = [0.0] * n
    largest = 0.0
    for rank, place in enumerate(order):
        multiplied = min(1.0, (n - rank) * p_values[place])
        largest = max(largest, multiplied)
        corrected[place] = largest
    return corrected


def _wilcoxon_test(differences: np.ndarray) -> float:
    # Importing it takes half a second, which a training without a comparison need not spend.
    from scipy import stats

    return float(stats.wilcoxon(differences).pvalue)


def t_test(differences: Sequence[float] | np.ndarray) -> float:
    """The p-value of Student's test, two-sided, that paired differences are 0 on average.

    Args:
        differences: at least two, of users or of seeds.

    >>> round(t_test([0.1, 0.2, 0.3]), 3), t_test([0.1, 0.1]), t_test([0.0, 0.0])
    (0.074, 0.0, 1.0)
    """
    if np.ptp(differences) == 0:
        # The same each time leaves no variance to test against, and no chance.
        return 0.0 if differences[0] else 1.0
    from scipy import stats

    return float(stats.ttest_1samp(differences, 0.0).pvalue)


def _resampled_means(differences: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    draws = generator(seed, "bootstrap")
    at_once = max(1, _DRAWS // len(differences))
    means = np.empty(resamples)
    n_users = len(differences)
    for start in range(0, resamples, at_once):
        count = min(at_once, resamples - start)
        chosen = draws.integers(n_users, size=(count, n_users), dtype=np.int32)
        means[start : start + count] = differences[chosen].mean(axis=1)
    return means
