"""The condition of the paper's lemma, step <= surrogate <= exp on [-1, 1]: who meets it and who does not."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pslrec.losses import SURROGATES

TIGHT = ["atan", "exp", "relu", "tanh"]
differences = st.floats(-1, 1)


def value(name: str, difference: float) -> float:
    return SURROGATES[name]().value(torch.tensor(difference, dtype=torch.float64)).item()


def test_tight_surrogates_declare_themselves():
    assert [name for name in SURROGATES if SURROGATES[name].is_tight] == TIGHT


@pytest.mark.parametrize("name", TIGHT)
@given(difference=differences)
def test_tight_surrogates_lie_between_step_and_exp(name, difference):
    assert (difference >= 0) <= value(name, difference) <= math.exp(difference) * (1 + 1e-12)


@pytest.mark.parametrize("name", ["softplus", "exp-exp"])
@given(difference=differences)
def test_loose_surrogates_lie_above_exp_everywhere(name, difference):
    assert value(name, difference) > math.exp(difference)


@pytest.mark.parametrize("name", SURROGATES.names())
@given(low=differences, high=differences)
def test_surrogates_increase(name, low, high):
    low, high = sorted((low, high))
    assert value(name, low) <= value(name, high) * (1 + 1e-12)


@given(difference=st.floats(-1e3, 1e3))
@pytest.mark.parametrize("name", ["relu", "tanh"])
def test_relu_and_tanh_lie_between_step_and_exp_on_the_whole_line_up_to_the_floor(name, difference):
    log_value = SURROGATES[name]().log_value(torch.tensor(difference, dtype=torch.float64)).item()
    assert log_value >= 0 or difference < 0
    assert log_value <= max(difference, math.log(1e-7)) + 1e-12 * (1 + abs(difference))
