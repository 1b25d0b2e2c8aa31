import math

import pytest
import torch

from pslrec.losses import (
    AdvInfoNCELoss,
    BilateralSoftmaxLoss,
    BPRLoss,
    PairwiseSoftmaxLoss,
    SoftmaxAtKLoss,
    SoftmaxLoss,
    adv_infonce_loss,
    softmax_loss,
)
from pslrec.losses._base import TEMPERATURES


@pytest.fixture
def scores():
    generator = torch.Generator().manual_seed(7)
    positive = torch.rand(5, generator=generator, dtype=torch.float64) - 0.5
    return positive, torch.rand(5, 8, generator=generator, dtype=torch.float64) - 0.5


@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize("form", ["outside", "inside"])
def test_psl_equals_softmax_for_exp_surrogate(scores, temperature, form):
    psl = PairwiseSoftmaxLoss("exp", temperature, form)
    torch.testing.assert_close(
        psl.pairwise_values(*scores), SoftmaxLoss(temperature).pairwise_values(*scores)
    )


def test_softmax_on_half_cosines_is_plain_cosine_code_at_twice_the_temperature(scores):
    cosines = [2 * score for score in scores]
    plain = torch.logsumexp(cosines[1] / 0.2, dim=1) - cosines[0] / 0.2
    torch.testing.assert_close(SoftmaxLoss(0.1).pairwise_values(*scores), plain)


@pytest.mark.parametrize("positive_temperature", TEMPERATURES)
@pytest.mark.parametrize("negative_temperature", TEMPERATURES)
def test_bsl_of_the_tables_is_scaled_softmax(scores, positive_temperature, negative_temperature):
    bsl = BilateralSoftmaxLoss(positive_temperature, negative_temperature).pairwise_values(*scores)
    scaled = (
        negative_temperature
        / positive_temperature
        * softmax_loss(*scores, temperature=negative_temperature)
    )
    torch.testing.assert_close(bsl, scaled)


def test_bsl_of_its_authors_is_softmax_where_temperatures_agree_and_not_scaled_softmax_elsewhere(
    scores,
):
    agree = BilateralSoftmaxLoss(0.1, 0.1, variant="original").pairwise_values(*scores)
    torch.testing.assert_close(agree, SoftmaxLoss(0.1).pairwise_values(*scores))
    # Scaled SL does not change when all scores shift; this does.
    differ = BilateralSoftmaxLoss(0.1, 0.15, variant="original")
    shifted = differ.pairwise_values(scores[0] + 0.1, scores[1] + 0.1)
    torch.testing.assert_close(shifted, differ.pairwise_values(*scores) + 0.5)


@pytest.mark.parametrize("surrogate", ["exp", "tanh", "atan", "relu", "softplus", "exp-exp"])
def test_inside_equals_outside_at_temperature_one(scores, surrogate):
    outside, inside = (PairwiseSoftmaxLoss(surrogate, 1.0, form) for form in ("outside", "inside"))
    torch.testing.assert_close(inside.pairwise_values(*scores), outside.pairwise_values(*scores))


def test_softmax_with_one_negative_is_the_scaled_difference(scores):
    value = SoftmaxLoss(0.1).pairwise_values(scores[0], scores[1][:, :1])
    torch.testing.assert_close(value, (scores[1][:, 0] - scores[0]) / 0.1)


def test_adv_infonce_with_one_negative_of_weight_one_is_bpr_of_scaled_scores(scores):
    pair = scores[0], scores[1][:, :1]
    value = adv_infonce_loss(*pair, torch.zeros(5, 1), temperature=0.1, negative_weight=1.0)
    torch.testing.assert_close(value, BPRLoss().pairwise_values(pair[0] / 0.1, pair[1] / 0.1))


def test_adv_infonce_with_equal_hardness_is_softmax_with_the_positive_in_the_sum(scores):
    value = AdvInfoNCELoss(0.1).pairwise_values(*scores, hardness=torch.zeros(5, 8))
    softmax = SoftmaxLoss(0.1).pairwise_values(*scores)
    torch.testing.assert_close(value, torch.log1p(64 * softmax.exp()))


def test_softmax_at_k_at_its_threshold_is_half_of_softmax(scores):
    value = SoftmaxAtKLoss().pairwise_values(*scores, threshold=scores[0])
    torch.testing.assert_close(value, SoftmaxLoss(0.1).pairwise_values(*scores) / 2)


def test_bpr_with_more_negatives_is_their_mean(scores):
    each = [BPRLoss()(scores[0], scores[1][:, [column]]) for column in range(8)]
    torch.testing.assert_close(BPRLoss()(*scores), torch.stack(each).mean())


def test_sum_over_negatives_is_a_sum_and_not_a_mean():
    scores = torch.tensor([0.2]), torch.full((1, 1000), 0.2)
    assert SoftmaxLoss(0.1)(*scores).item() == pytest.approx(math.log(1000))
    assert PairwiseSoftmaxLoss("relu", 0.1)(*scores).item() == pytest.approx(math.log(1000))
    assert SoftmaxAtKLoss()(*scores, threshold=torch.tensor([0.2])).item() == pytest.approx(
        math.log(1000) / 2
    )
