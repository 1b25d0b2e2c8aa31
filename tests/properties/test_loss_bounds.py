"""The chain of bounds between DCG, MRR, ranks and losses (sections 3 and 4, appendix A.3) on random rankings.

One user with items of any score, some of them positive; j runs over all items and means are over the positives.
These are theorems, so a violation is a bug.
"""

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pslrec.losses import SURROGATES, BPRLoss, PairwiseSoftmaxLoss, SoftmaxLoss
from pslrec.losses._base import TEMPERATURES


@st.composite
def rankings(draw):
    # Few distinct scores, so that there are ties; the ends of the domain are among them.
    scores = draw(st.lists(st.integers(-20, 20), min_size=1, max_size=30))
    positives = draw(
        st.lists(st.integers(0, len(scores) - 1), min_size=1, max_size=10, unique=True)
    )
    scores = torch.tensor(scores, dtype=torch.float64) / 40
    return scores[positives], scores.expand(len(positives), -1)


def not_above(low: float, high: float) -> bool:
    return low <= high + 1e-9 * (1 + abs(high))


def ranks(positive: torch.Tensor, items: torch.Tensor) -> list[int]:
    return (items >= positive.unsqueeze(1)).sum(dim=1).tolist()


@pytest.mark.parametrize("surrogate", ["tanh", "atan", "relu"])
@given(ranking=rankings(), temperature=st.sampled_from(TEMPERATURES))
def test_psl_bounds_dcg_more_tightly_than_softmax(surrogate, ranking, temperature):
    rank = ranks(*ranking)
    n_positives = len(rank)
    chain = {
        "dcg": -math.log(sum(1 / math.log2(1 + r) for r in rank)) + math.log(n_positives),
        "mrr": -math.log(sum(1 / r for r in rank) / n_positives),
        "mean log rank": sum(math.log(r) for r in rank) / n_positives,
        "psl": PairwiseSoftmaxLoss(surrogate, temperature)(*ranking).item(),
        "sl": SoftmaxLoss(temperature)(*ranking).item(),
        "psl exp-exp": PairwiseSoftmaxLoss("exp-exp", temperature)(*ranking).item(),
    }
    values = list(chain.values())
    assert all(not_above(low, high) for low, high in pairwise(values)), chain


@pytest.mark.parametrize("surrogate", SURROGATES.names())
@given(ranking=rankings(), temperature=st.sampled_from(TEMPERATURES))
def test_psl_is_below_the_logarithm_of_bpr_with_the_same_surrogate(surrogate, ranking, temperature):
    positive, items = ranking
    powers = SURROGATES[surrogate]().log_value(items - positive.unsqueeze(1)) / temperature
    bpr = torch.logsumexp(powers.flatten(), dim=0) - math.log(len(positive))
    assert not_above(PairwiseSoftmaxLoss(surrogate, temperature)(*ranking).item(), bpr.item())


@pytest.mark.parametrize("surrogate", ["softplus", "exp-exp"])
@given(ranking=rankings(), temperature=st.sampled_from(TEMPERATURES))
def test_loose_surrogates_bound_dcg_less_tightly_than_softmax(surrogate, ranking, temperature):
    loose = PairwiseSoftmaxLoss(surrogate, temperature)(*ranking).item()
    assert loose > SoftmaxLoss(temperature)(*ranking).item()


@pytest.mark.parametrize("surrogate", SURROGATES.names())
@given(ranking=rankings(), temperature=st.sampled_from(TEMPERATURES))
def test_psl_is_at_least_bpr_over_temperature_up_to_the_number_of_items(
    surrogate, ranking, temperature
):
    # Jensen for the logarithm of the mean: without perturbation (all items alike) the robust loss is BPR.
    psl = PairwiseSoftmaxLoss(surrogate, temperature)(*ranking).item()
    bpr = BPRLoss(surrogate)(*ranking).item()
    assert not_above(bpr / temperature + math.log(ranking[1].shape[1]), psl)
