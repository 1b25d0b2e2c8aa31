"""Fit the polynomials of `native/elementary.hpp` and `surrogates.hpp`: near-minimax, at Chebyshev nodes in double precision.

Prints coefficients, highest power first, with the largest error of the function they serve.
"""

import math

import numpy as np


def fit(function, low, high, degree):
    nodes = np.cos((2 * np.arange(degree + 1) + 1) / (2 * degree + 2) * np.pi)
    x = (low + high) / 2 + (high - low) / 2 * nodes
    return np.polyfit(x, function(x), degree)


def show(name, coefficients, error):
    print(f"{name}: largest error {error:.1e}")
    for coefficient in coefficients:
        print(f"    {coefficient:.12e}f")


def series_difference(x, exact, series, switch=0.02):
    """`exact(x)` away from 0, where it does not cancel, and its series near 0."""
    near = np.abs(x) < switch
    return np.where(near, series(x), exact(np.where(near, 1.0, x)))


def exponential():
    # e^r = 1 + r + r^2 p(r)
    def p(r):
        return series_difference(
            r,
            lambda v: (np.exp(v) - 1 - v) / v**2,
            lambda v: sum(v**k / math.factorial(k + 2) for k in range(8)),
        )

    half = math.log(2) / 2
    coefficients = fit(p, -half, half, 5)
    r = np.linspace(-half, half, 100001)
    show(
        "exponential",
        coefficients,
        np.abs((1 + r + r * r * np.polyval(coefficients, r)) / np.exp(r) - 1).max(),
    )


def logarithm():
    # log(1 + f) = f - f^2 / 2 + f^3 p(f)
    def p(f):
        return series_difference(
            f,
            lambda v: (np.log1p(v) - v + v**2 / 2) / v**3,
            lambda v: sum((-1) ** k * v**k / (k + 3) for k in range(10)),
        )

    low, high = math.sqrt(0.5) - 1, math.sqrt(2) - 1
    coefficients = fit(p, low, high, 9)
    f = np.linspace(low, high, 100001)
    show(
        "logarithm",
        coefficients,
        np.abs(f - f * f / 2 + f**3 * np.polyval(coefficients, f) - np.log1p(f)).max(),
    )


def arc_tangent():
    # atan t = t + t z p(z), z = t^2
    def p(z):
        return series_difference(
            z,
            lambda v: (np.arctan(np.sqrt(v)) / np.sqrt(v) - 1) / v,
            lambda v: sum((-1) ** (k + 1) * v**k / (2 * k + 3) for k in range(8)),
        )

    end = (math.sqrt(2) - 1) ** 2
    coefficients = fit(p, 0.0, end, 5)
    t = np.linspace(-math.sqrt(end), math.sqrt(end), 100001)
    show(
        "arc tangent",
        coefficients,
        np.abs(t + t**3 * np.polyval(coefficients, t * t) - np.arctan(t)).max(),
    )


if __name__ == "__main__":
    exponential()
    logarithm()
    arc_tangent()
