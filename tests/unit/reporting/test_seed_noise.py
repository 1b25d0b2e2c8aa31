"""Inside the noise: the one rule that reports and reproductions share."""

import pytest

from pslrec.reporting import is_inside_noise, verdict_over_seeds
from pslrec.reporting._results import Result
from pslrec.reproduction._layouts import compared_value

SEEDS = {1: 0.0500, 2: 0.0501, 3: 0.0502}
# Three seeds: 4.30 standard deviations times sqrt(4/3), and half a digit of the fourth decimal.
REACH = 4.3027 * 0.0001 * (4 / 3) ** 0.5 + 5e-5


@pytest.mark.parametrize(
    ("published", "is_inside"),
    [
        (0.0501, True),
        (0.0501 + REACH - 1e-7, True),
        (0.0501 - REACH + 1e-7, True),
        (0.0501 + REACH + 1e-7, False),
        (0.0501 - REACH - 1e-7, False),
    ],
)
def test_reports_and_reproductions_agree_at_the_edge_of_the_noise(published, is_inside):
    by_seed = {str(seed): value for seed, value in SEEDS.items()}
    result = Result({}, {"ndcg20": by_seed}, {"ndcg20": published})
    assert is_inside_noise(SEEDS.values(), published) is is_inside
    assert result.is_inside_noise("ndcg20") is is_inside
    assert compared_value(result, "ndcg20").endswith(", inside") is is_inside


def test_two_seeds_say_nothing():
    assert is_inside_noise([0.05, 0.06], 0.5) is None
    assert verdict_over_seeds({1: 0.05, 2: 0.06}).interval is None


def test_interval_of_a_mean_is_narrower_than_that_of_one_more_run():
    found = verdict_over_seeds(SEEDS)
    assert found.interval == pytest.approx(
        (0.0501 - 4.3027 * 0.0001 / 3**0.5, 0.0501 + 4.3027 * 0.0001 / 3**0.5), abs=1e-8
    )
    assert is_inside_noise(SEEDS.values(), found.interval[1]) is True


def test_one_deviation_stands_for_both_sides_where_only_one_has_seeds():
    found = verdict_over_seeds({1: 0.06}, SEEDS)
    assert (found.verdict, found.seeds) == ("holds", "1 and 3")
    assert found.interval[1] - found.value == pytest.approx(
        4.3027 * 0.0001 * (1 + 1 / 3) ** 0.5, abs=1e-8
    )
    assert verdict_over_seeds({1: 0.04}, SEEDS).verdict == "fails"
    assert verdict_over_seeds({1: 0.04}, {1: 0.05}).verdict == "needs seeds"
