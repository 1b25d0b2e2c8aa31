import math

import pytest
import torch

from pslrec.losses import SURROGATES, PairwiseSoftmaxLoss

GRID = torch.linspace(-1, 1, 401, dtype=torch.float64)

# Figure 1b of the paper: weights at temperature 0.2.
FIGURE_1B = {
    "exp": lambda d: 5 * math.exp(5 * d),
    "tanh": lambda d: 5 * (1 - math.tanh(d) ** 2) * (1 + math.tanh(d)) ** 4,
    "atan": lambda d: 5 * (1 + math.atan(d)) ** 4 / (1 + d**2),
    "relu": lambda d: 5 * (1 + d) ** 4,
}
CLOSED_FORMS = [pytest.param(name, form, id=name) for name, form in FIGURE_1B.items()]


@pytest.mark.parametrize("name", SURROGATES.names())
def test_log_value_is_the_logarithm_of_value(name):
    surrogate = SURROGATES[name]()
    torch.testing.assert_close(surrogate.log_value(GRID).exp(), surrogate.value(GRID))


@pytest.mark.parametrize("name", SURROGATES.names())
def test_derivative_is_that_of_value(name):
    surrogate = SURROGATES[name]()
    difference = GRID[1:].clone().requires_grad_()
    surrogate.value(difference).sum().backward()
    torch.testing.assert_close(surrogate.derivative(difference.detach()), difference.grad)


@pytest.mark.parametrize("name", SURROGATES.names())
def test_log_value_is_finite_on_the_domain_in_float32(name):
    difference = GRID.float().requires_grad_()
    value = SURROGATES[name]().log_value(difference)
    value.sum().backward()
    assert torch.isfinite(value).all()
    assert torch.isfinite(difference.grad).all()


@pytest.mark.parametrize("name", ["tanh", "relu", "softplus", "atan", "exp"])
def test_log_value_is_finite_far_outside_of_the_domain(name):
    difference = torch.tensor([-1e4, -300.0, -1.5575, -1.0, 300.0, 1e4], requires_grad=True)
    value = SURROGATES[name]().log_value(difference)
    value.sum().backward()
    assert torch.isfinite(value).all()
    assert torch.isfinite(difference.grad).all()


@pytest.mark.parametrize(("name", "closed_form"), CLOSED_FORMS)
def test_weights_have_the_closed_forms_of_figure_1b(name, closed_form):
    expected = torch.tensor([closed_form(d) for d in GRID.tolist()], dtype=torch.float64)
    torch.testing.assert_close(
        SURROGATES[name]().weight(GRID, 0.2), expected, rtol=1e-9, atol=1e-20
    )


@pytest.mark.parametrize(("name", "closed_form"), CLOSED_FORMS)
def test_gradients_of_psl_are_the_weights_over_their_sum(name, closed_form):
    positive = torch.tensor([0.1], dtype=torch.float64, requires_grad=True)
    negative = torch.tensor([[0.5, 0.2, -0.1, -0.4]], dtype=torch.float64, requires_grad=True)
    loss = PairwiseSoftmaxLoss(name, 0.2)
    total = loss(positive, negative)
    total.backward()
    weights = torch.tensor(
        [[closed_form(n - 0.1) for n in negative[0].tolist()]], dtype=torch.float64
    )
    torch.testing.assert_close(negative.grad, weights / total.detach().exp())
    torch.testing.assert_close(positive.grad, -(weights / total.detach().exp()).sum(dim=1))


def test_weights_end_where_the_figure_ends():
    end = torch.tensor([1.0], dtype=torch.float64)
    ends = {name: SURROGATES[name]().weight(end, 0.2).item() for name in FIGURE_1B}
    assert ends == pytest.approx({"exp": 742.1, "tanh": 20.2, "atan": 25.4, "relu": 80.0}, abs=0.1)
    weights = SURROGATES["tanh"]().weight(GRID, 0.2)
    assert weights.max().item() == pytest.approx(21.43, abs=0.005)
    assert GRID[weights.argmax()].item() == pytest.approx(0.805, abs=0.003)


def test_all_surrogates_of_the_figure_meet_the_step_at_zero():
    zero = torch.zeros(1)
    assert all(SURROGATES[name]().value(zero).item() == 1.0 for name in FIGURE_1B)
