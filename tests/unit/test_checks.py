"""Checks of single settings: what is allowed comes back, anything else is named."""

import math

import numpy as np
import pytest

from pslrec.checks import number_from_zero, one_of, positive_number, whole_number
from pslrec.errors import ConfigError


@pytest.mark.parametrize("value", [1e-12, 0.1, 1e12, 3])
def test_a_positive_number_comes_back(value):
    assert positive_number("rate", value) == value


@pytest.mark.parametrize("value", [0, -0.1, math.nan, math.inf])
def test_what_is_not_positive_is_refused(value):
    with pytest.raises(ConfigError, match=r"^`rate` must be positive, got "):
        positive_number("rate", value)


@pytest.mark.parametrize("value", [1e-13, 1e13])
def test_numbers_beyond_single_precision_are_refused(value):
    with pytest.raises(ConfigError, match=r"^`rate` must be from 1e-12 to 1e\+12, got "):
        positive_number("rate", value)


def test_a_number_from_zero_may_be_zero_and_no_less():
    assert number_from_zero("noise", 0.0) == 0.0
    for value in (-1e-9, math.nan, math.inf):
        with pytest.raises(ConfigError, match="`noise` must be a finite number of at least 0"):
            number_from_zero("noise", value)
    with pytest.raises(ConfigError, match="`noise` must be from 0 to"):
        number_from_zero("noise", 1e13)


@pytest.mark.parametrize("value", [2, 2.0, np.int64(2), np.float32(2)])
def test_a_whole_number_comes_back_as_an_int(value):
    found = whole_number("layers", value)
    assert found == 2
    assert type(found) is int


@pytest.mark.parametrize("value", [0, 1.5, True, "2", None, math.nan, math.inf])
def test_what_is_no_whole_number_in_the_range_is_refused(value):
    with pytest.raises(ConfigError, match=r"^`layers` must be a whole number of at least 1, got "):
        whole_number("layers", value)


def test_a_whole_number_has_an_upper_end():
    assert whole_number("layers", 64, maximum=64) == 64
    with pytest.raises(ConfigError, match="`layers` must be a whole number of at most 64, got 65"):
        whole_number("layers", 65, maximum=64)


def test_one_of_lists_what_is_allowed():
    assert one_of("form", "inside", ("outside", "inside")) == "inside"
    with pytest.raises(ConfigError, match="`form` must be one of outside, inside, got 'middle'"):
        one_of("form", "middle", ("outside", "inside"))
