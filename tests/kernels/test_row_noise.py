"""Noise by counter against the formula with Python's whole numbers, and what a Gaussian direction has to be."""

import math

import pytest
import torch

from pslrec.kernels import _row_noise as row_noise
from pslrec.kernels._native import IS_COMPILED, native
from pslrec.kernels._row_noise import add_row_noise, row_noise_plainly

compiled_only = pytest.mark.skipif(not IS_COMPILED, reason="the compiled kernels are not built")
MASK = 2**64 - 1


@pytest.fixture(
    params=[
        pytest.param("compiled", marks=compiled_only),
        pytest.param("portable", marks=compiled_only),
        "plain",
    ]
)
def variant(request, monkeypatch):
    if request.param == "plain":
        monkeypatch.setattr(row_noise, "runs_compiled", lambda table: False)
    elif request.param == "portable":
        native.use_instructions("portable")
    yield request.param
    if request.param == "portable":
        native.use_instructions("avx512")


def mixed(value: int) -> int:
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


def naive_direction(key: int, row: int, n_columns: int) -> list[float]:
    golden = 0x9E3779B97F4A7C15
    stream = mixed((key + (row + 1) * golden) & MASK)
    cosines, sines = [], []
    for pair in range((n_columns + 1) // 2):
        number = mixed((stream + (pair + 1) * golden) & MASK)
        radius = math.sqrt(-2 * math.log(((number >> 40) + 0.5) / 2**24))
        fraction = (number >> 8) % 2**24
        fraction -= 2**24 if fraction >= 2**23 else 0
        angle = (fraction + 0.5) / 2**23 * math.pi / 4 + (number & 3) * math.pi / 2
        cosines.append(radius * math.cos(angle))
        sines.append(radius * math.sin(angle))
    numbers = (cosines + sines)[:n_columns]
    length = math.sqrt(sum(number**2 for number in numbers))
    return [number / length for number in numbers]


@pytest.mark.parametrize("n_columns", [1, 2, 7, 64, 200])
def test_noise_follows_the_formula(variant, n_columns):
    table = torch.randn(5, n_columns, generator=torch.Generator().manual_seed(0))
    table[1] = 0
    directions = torch.tensor([naive_direction(2**62 + 12345, row, n_columns) for row in range(5)])
    expected = table + table.sign() * 0.3 * directions
    torch.testing.assert_close(
        add_row_noise(table.clone(), key=2**62 + 12345, length=0.3), expected, rtol=2e-6, atol=2e-6
    )


def test_noise_in_double_precision_is_the_same(variant):
    table = torch.ones(6, 9, dtype=torch.float64)
    noisy = add_row_noise(table.clone(), key=5, length=1.0)
    assert noisy.dtype == torch.float64
    torch.testing.assert_close(
        noisy.float(), add_row_noise(table.float(), key=5, length=1.0), rtol=2e-6, atol=2e-6
    )


def test_directions_are_uniform_on_the_sphere(variant):
    n_rows, n_columns = 20_000, 8
    noise = add_row_noise(torch.ones(n_rows, n_columns), key=1, length=1.0) - 1
    torch.testing.assert_close(noise.norm(dim=1), torch.ones(n_rows), rtol=1e-5, atol=1e-5)
    moments = noise.T @ noise / n_rows
    assert noise.mean(0).abs().max() < 5 / math.sqrt(n_rows * n_columns)
    torch.testing.assert_close(
        moments, torch.eye(n_columns) / n_columns, rtol=0, atol=5 * 0.125 / math.sqrt(n_rows)
    )
    # The fourth moment of an entry, 3 / (d (d + 2)), tells a Gaussian direction from others with the same variance.
    torch.testing.assert_close(
        (noise**4).mean(), torch.tensor(3 / (n_columns * (n_columns + 2))), rtol=0.02, atol=0
    )


def test_angles_are_uniform_over_the_circle():
    noise = row_noise_plainly(torch.empty(40_000, 2, dtype=torch.float64), key=3, length=1.0)
    shares = (torch.atan2(noise[:, 1], noise[:, 0]) / (2 * math.pi)) % 1
    ordered = torch.sort(shares).values
    distance = (ordered - torch.linspace(0, 1, len(ordered), dtype=torch.float64)).abs().max()
    assert distance < 1.63 / math.sqrt(len(ordered))  # Kolmogorov's bound at one in a hundred


@compiled_only
def test_noise_does_not_depend_on_threads():
    table = torch.randn(1001, 33)
    before = torch.get_num_threads()
    results = []
    for n_threads in (1, 2, 5):
        torch.set_num_threads(n_threads)
        results.append(add_row_noise(table.clone(), key=11, length=0.1))
    torch.set_num_threads(before)
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])


def test_keys_and_rows_give_other_noise(variant):
    table = torch.ones(2, 16)
    one, other = (add_row_noise(table.clone(), key=key, length=1.0) for key in (0, 1))
    assert not torch.allclose(one, other)
    assert not torch.allclose(one[0], one[1])
    assert not torch.allclose(one[1], other[0])


def test_gradient_is_that_of_the_sum(variant):
    table, weights = torch.randn(5, 4, requires_grad=True), torch.randn(5, 4)
    (add_row_noise(table * 2, key=0, length=0.1) * weights).sum().backward()
    torch.testing.assert_close(table.grad, 2 * weights)


def test_a_table_without_rows_or_columns_stays(variant):
    assert add_row_noise(torch.empty(0, 4), key=0, length=0.1).shape == (0, 4)
    assert add_row_noise(torch.empty(3, 0), key=0, length=0.1).shape == (3, 0)


def test_not_a_number_stays_visible(variant):
    noisy = add_row_noise(torch.tensor([[math.nan, 1.0], [1.0, 1.0]]), key=0, length=0.1)
    assert noisy[0, 0].isnan()
    assert noisy[1].isfinite().all()
