"""Products of dense matrices as exact training and ranking need them: one factor is a table of vectors.

    times_transposed    scale * left @ right.T    scores of users and items
    times               scale * left @ right      what slopes say about users
    transposed_times    scale * left.T @ right    what they say about items

Torch leaves these to MKL, which uses half of the registers' width on processors with AVX-512 that Intel
did not make. There the compiled products are taken; they sum up in an order that follows from the
shapes alone, whatever the number of threads. `docs/decisions/0020-products.md` has the measurements.
The twins are torch's own products.
"""

import torch
from torch import Tensor

from pslrec.kernels._native import instruction_set, native

# Intel's processors do not run this variant, see `preferred_instructions` in native/dispatch.hpp.
HAS_FASTER_PRODUCTS: bool = instruction_set() == "avx512"


def times_transposed(
    left: Tensor, right: Tensor, *, out: Tensor, scale: float = 1.0, adds: bool = False
) -> Tensor:
    """`scale * left @ right.T` in `out`, or added to what is there.

    Args:
        left: shape (rows, dimension).
        right: shape (columns, dimension).
        out: shape (rows, columns); it is also returned.
        scale: of the product.
        adds: whether `out` holds numbers to add to.

    >>> times_transposed(torch.eye(2), torch.tensor([[2.0, 4.0]]), out=torch.empty(2, 1), scale=0.5)
    tensor([[1.],
            [2.]])
    """
    if _takes(left, right, out):
        arguments = (left.numpy(), right.numpy(), scale, adds, out.numpy())
        native.times_transposed(*arguments, torch.get_num_threads())
        return out
    # What is not added to may hold anything, even what is not a number: a factor of 0 skips it.
    return torch.addmm(out, left, right.T, beta=int(adds), alpha=scale, out=out)


def times(left: Tensor, right: Tensor, *, out: Tensor, scale: float = 1.0) -> Tensor:
    """`scale * left @ right` in `out`.

    Args:
        left: shape (rows, inner).
        right: shape (inner, dimension).
        out: shape (rows, dimension); it is also returned.
        scale: of the product.
    """
    if _takes(left, right, out):
        native.times(left.numpy(), right.numpy(), scale, out.numpy(), torch.get_num_threads())
        return out
    return torch.addmm(out, left, right, beta=0, alpha=scale, out=out)


def transposed_times(
    left: Tensor, right: Tensor, *, out: Tensor, scale: float = 1.0, adds: bool = False
) -> Tensor:
    """`scale * left.T @ right` in `out`, or added to what is there.

    Args:
        left: shape (inner, rows).
        right: shape (inner, dimension).
        out: shape (rows, dimension); it is also returned.
        scale: of the product.
        adds: whether `out` holds numbers to add to.
    """
    if _takes(left, right, out):
        arguments = (left.numpy(), right.numpy(), scale, adds, out.numpy())
        native.transposed_times(*arguments, torch.get_num_threads())
        return out
    return torch.addmm(out, left.T, right, beta=int(adds), alpha=scale, out=out)


def _takes(left: Tensor, right: Tensor, out: Tensor) -> bool:
    if not HAS_FASTER_PRODUCTS or right.shape[1] % native.product_lanes() != 0:
        return False
    for matrix in (left, right, out):
        is_plain = matrix.dtype == torch.float32 and matrix.device.type == "cpu"
        if not is_plain or not matrix.is_contiguous() or matrix.requires_grad:
            return False
    return left.numel() > 0 and right.numel() > 0
