"""Noise on the rows of a table, drawn by counter: it depends on key and row number only."""

import math
from typing import Any

import torch
from torch import Tensor

from pslrec.kernels._native import native
from pslrec.kernels._sampled import runs_compiled

# 64-bit constants as torch's signed whole numbers hold them; its arithmetic is modulo 2^64.
_GOLDEN_RATIO = 0x9E3779B97F4A7C15 - 2**64
_FIRST_FACTOR = 0xBF58476D1CE4E5B9 - 2**64
_SECOND_FACTOR = 0x94D049BB133111EB - 2**64


def add_row_noise(table: Tensor, *, key: int, length: float) -> Tensor:
    """Add to each row, in place, the signs of its entries times a random vector of this length.

    The direction of the vector is uniform. A row of zeros has no signs and stays as it is. Neither
    signs nor noise have a gradient: what flows back is that of the sum.

    Args:
        table: shape (rows, columns), contiguous; not a leaf that asks for a gradient.
        key: of the noise, from 0 to 2^63 - 1; different keys give independent noise.
        length: of each row's noise.

    >>> table = torch.tensor([[3.0, -4.0], [0.0, 0.0]])
    >>> (add_row_noise(table.clone(), key=7, length=0.5) - table).norm(dim=1)
    tensor([0.5000, 0.0000])
    """
    noisy: Tensor = _RowNoise.apply(table, key, length)  # type: ignore[no-untyped-call]
    return noisy


class _RowNoise(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, key: int, length: float) -> Tensor:
        ctx.mark_dirty(table)
        if runs_compiled(table) and table.is_contiguous():
            native.add_row_noise(table.detach(), key, length, torch.get_num_threads())
            return table
        return table.addcmul_(table.sign(), row_noise_plainly(table, key, length))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:  # noqa: ARG004
        return gradients[0], None, None


def row_noise_plainly(table: Tensor, key: int, length: float) -> Tensor:
    """The same noise in torch, before the signs, of the table's shape, type and device."""
    n_rows, n_columns = table.shape
    # A number of 64 bits is enough for two of the noise.
    n_pairs = (n_columns + 1) // 2
    rows = torch.arange(1, n_rows + 1, device=table.device)
    draws = torch.arange(1, n_pairs + 1, device=table.device)
    streams = _mixed(key + rows * _GOLDEN_RATIO)
    numbers = _mixed(streams.unsqueeze(1) + draws * _GOLDEN_RATIO)
    # Box and Muller's way: 24 bits for the radius, 24 for an angle within an eighth of a turn, 2
    # for the quarter.
    highest_bits = _shifted(numbers, 40)
    # One half more keeps the share above 0, where the logarithm ends.
    shares = (highest_bits + 0.5).to(torch.float64) * 2.0**-24
    radii = torch.sqrt(-2 * torch.log(shares))
    fractions = ((numbers << 32) >> 40).to(torch.float64)
    eighths = (fractions + 0.5) * (math.pi / 4 * 2.0**-23)
    quarters = (numbers & 3) * (math.pi / 2)
    angles = eighths + quarters
    cosines = radii * torch.cos(angles)
    sines = radii * torch.sin(angles)
    noise = torch.cat([cosines, sines], dim=1)
    # One too many of an odd number of columns.
    noise = noise[:, :n_columns]
    directions = torch.nn.functional.normalize(noise, dim=1)
    return (length * directions).to(table.dtype)


def _mixed(values: Tensor) -> Tensor:
    values = (values ^ _shifted(values, 30)) * _FIRST_FACTOR
    values = (values ^ _shifted(values, 27)) * _SECOND_FACTOR
    return values ^ _shifted(values, 31)


def _shifted(values: Tensor, bits: int) -> Tensor:
    # Torch shifts the sign in; a 64-bit number without sign gets zeros.
    shifted: Tensor = (values >> bits) & (2 ** (64 - bits) - 1)
    return shifted
