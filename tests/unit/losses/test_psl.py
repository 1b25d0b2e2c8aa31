import pytest
import torch

from pslrec.errors import ConfigError, PslrecError, UnknownNameError
from pslrec.losses import LOSSES, DivergenceError, PairwiseSoftmaxLoss


def test_inside_form_of_atan_says_that_it_diverges():
    loss = PairwiseSoftmaxLoss("atan", 0.1, "inside")
    with pytest.raises(DivergenceError, match=r'sums to -0\.\d+.* use `form="outside"`') as raised:
        loss(torch.tensor([0.4]), torch.tensor([[-0.2, 0.0]]))
    assert isinstance(raised.value, PslrecError)


def test_inside_form_of_atan_works_while_its_sum_is_positive():
    value = PairwiseSoftmaxLoss("atan", 0.1, "inside")(
        torch.tensor([0.0]), torch.tensor([[-0.2, 0.3]])
    )
    expected = torch.log(2 + torch.atan(torch.tensor(-2.0)) + torch.atan(torch.tensor(3.0)))
    torch.testing.assert_close(value, expected)


def test_inside_form_of_exp_exp_says_that_it_overflows():
    with pytest.raises(
        DivergenceError, match=r"overflows torch.float32 at a scaled difference of 200"
    ):
        PairwiseSoftmaxLoss("exp-exp", 0.005, "inside")(torch.tensor([-0.5]), torch.tensor([[0.5]]))


def test_inside_form_of_relu_has_no_gradient_when_every_negative_is_beyond_the_margin():
    positive = torch.tensor([0.4], requires_grad=True)
    value = PairwiseSoftmaxLoss("relu", 0.1, "inside")(positive, torch.tensor([[0.0, -0.3]]))
    value.backward()
    assert value.item() == pytest.approx(torch.log(torch.tensor(2e-7)).item())
    assert positive.grad.item() == 0.0


def test_outside_form_of_relu_has_no_gradient_at_the_far_corner():
    positive = torch.tensor([0.5], requires_grad=True)
    PairwiseSoftmaxLoss("relu", 0.005)(positive, torch.tensor([[-0.5, -0.5]])).backward()
    assert positive.grad.item() == 0.0


def test_float32_keeps_the_200th_power():
    positive, negative = torch.tensor([-0.5]), torch.tensor([[0.5, 0.45]])
    for surrogate in ("tanh", "atan", "relu", "softplus", "exp", "exp-exp"):
        loss = PairwiseSoftmaxLoss(surrogate, 0.005)
        exact = loss(positive.double(), negative.double())
        assert loss(positive, negative).item() == pytest.approx(exact.item(), rel=1e-6)


def test_search_space_of_the_inside_form_goes_up_to_one():
    assert PairwiseSoftmaxLoss("tanh").search_space["loss.temperature"] == (
        0.005,
        0.025,
        0.05,
        0.1,
        0.25,
    )
    inside = PairwiseSoftmaxLoss("tanh", form="inside").search_space
    assert inside["loss.temperature"] == (0.005, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
    assert inside["training.learning_rate"] == (0.1, 0.01, 0.001)


@pytest.mark.parametrize("surrogate", ["tanh", "atan", "relu", "softplus"])
def test_names_with_a_surrogate_are_psl_with_it_fixed(surrogate):
    loss = LOSSES[f"psl-{surrogate}"](temperature=0.25)
    assert isinstance(loss, PairwiseSoftmaxLoss)
    assert loss.surrogate == surrogate
    assert loss.options() == {"temperature": 0.25, "form": "outside"}


def test_wrong_options_raise():
    with pytest.raises(ConfigError, match=r"`temperature` must be positive, got -0\.1"):
        PairwiseSoftmaxLoss("relu", -0.1)
    with pytest.raises(ConfigError, match="`form` must be one of outside, inside, got 'middle'"):
        PairwiseSoftmaxLoss("relu", form="middle")
    with pytest.raises(UnknownNameError, match="unknown surrogate `rely`; did you mean `relu`"):
        PairwiseSoftmaxLoss("rely")
