"""Sparse times dense, with gradients: what propagation over a graph consists of.

Matrices are in compressed rows (CSR). The result does not depend on the number of threads, as each
row is summed by one.
"""

import warnings
from typing import Any, Literal, NamedTuple

import torch
from scipy.sparse import csr_matrix
from torch import Tensor

from pslrec.kernels._native import IS_COMPILED, native

Implementation = Literal["auto", "compiled", "portable", "torch"]
MOST_ENTRIES = 2**31 - 1


class CompressedRows(NamedTuple):
    """A sparse matrix in compressed rows.

    Args:
        offsets: where each row's entries begin and the last one's end, shape (rows + 1,), int32.
        columns: column of each entry, shape (entries,), int32.
        values: value of each entry, shape (entries,).
        n_columns: columns of the matrix.

    >>> matrix = CompressedRows.from_scipy(csr_matrix([[0.0, 2.0], [3.0, 4.0]]))
    >>> matrix.offsets.tolist(), matrix.columns.tolist(), matrix.values.tolist()
    ([0, 1, 3], [1, 0, 1], [2.0, 3.0, 4.0])
    """

    offsets: Tensor
    columns: Tensor
    values: Tensor
    n_columns: int

    @classmethod
    def from_scipy(cls, matrix: csr_matrix) -> "CompressedRows":
        """The same matrix, its entries ordered by column within each row; equal places add up."""
        matrix = matrix.tocsr(copy=True)
        matrix.sum_duplicates()
        if matrix.nnz > MOST_ENTRIES:
            raise ValueError(f"`matrix` must have at most {MOST_ENTRIES} entries, got {matrix.nnz}")
        # The kernel counts with 32 bits, which scipy leaves for larger matrices only.
        offsets = torch.from_numpy(matrix.indptr.astype("int32"))
        columns = torch.from_numpy(matrix.indices.astype("int32"))
        return cls(offsets, columns, torch.from_numpy(matrix.data), matrix.shape[1])

    @property
    def n_rows(self) -> int:
        """Rows of the matrix."""
        return len(self.offsets) - 1

    def transposed(self) -> "CompressedRows":
        """The transpose, again in compressed rows."""
        parts = (
            self.values.cpu().numpy(),
            self.columns.cpu().numpy(),
            self.offsets.cpu().numpy(),
        )
        matrix = csr_matrix(parts, shape=(self.n_rows, self.n_columns))
        transpose = CompressedRows.from_scipy(matrix.T.tocsr())
        device = self.values.device
        return CompressedRows(
            transpose.offsets.to(device),
            transpose.columns.to(device),
            transpose.values.to(device),
            self.n_rows,
        )


def sparse_product(
    matrix: CompressedRows,
    transposed: CompressedRows,
    dense: Tensor,
    *,
    addend: Tensor | None = None,
    implementation: Implementation = "auto",
) -> Tensor:
    """`matrix @ dense + addend`, differentiable in `dense` and `addend`.

    Args:
        matrix: the sparse factor, of shape (rows, inner).
        transposed: its transpose, which carries gradients back.
        dense: shape (inner, width), of the matrix's dtype.
        addend: added to the product in the same pass, shape (rows, width); nothing if left out.
        implementation: `auto` takes the compiled kernel where it is built and the tensors lie in
            main memory; `compiled` insists on it; `portable` is the kernel without wide
            instructions; `torch` the plain twin.

    >>> matrix = CompressedRows.from_scipy(csr_matrix([[0.0, 2.0], [3.0, 4.0]]))
    >>> sparse_product(matrix, matrix.transposed(), torch.eye(2, dtype=torch.float64))
    tensor([[0., 2.],
            [3., 4.]], dtype=torch.float64)
    """
    _check(matrix, dense, addend)
    arguments = (matrix, transposed, dense, addend, implementation)
    product: Tensor = _SparseProduct.apply(*arguments)  # type: ignore[no-untyped-call]
    return product


class _SparseProduct(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        matrix: CompressedRows,
        transposed: CompressedRows,
        dense: Tensor,
        addend: Tensor | None,
        implementation: Implementation,
    ) -> Tensor:
        ctx.arguments = (transposed, matrix, implementation)
        if implementation == "torch" or (implementation == "auto" and not _has_kernel(dense)):
            return torch_product(matrix, dense, addend)
        return _compiled_product(matrix, dense, addend, portable=implementation == "portable")

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        (gradient,) = gradients
        transposed, matrix, implementation = ctx.arguments
        of_dense = None
        of_addend = None
        if ctx.needs_input_grad[2]:
            of_dense = sparse_product(transposed, matrix, gradient, implementation=implementation)
        if ctx.needs_input_grad[3]:
            of_addend = gradient
        return None, None, of_dense, of_addend, None


def torch_product(matrix: CompressedRows, dense: Tensor, addend: Tensor | None = None) -> Tensor:
    """The plain twin: torch's own sparse product, then the addition."""
    with warnings.catch_warnings():
        # Torch calls its compressed rows a beta; this product of them is long settled.
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support", category=UserWarning)
        sparse = torch.sparse_csr_tensor(
            matrix.offsets,
            matrix.columns,
            matrix.values,
            (matrix.n_rows, matrix.n_columns),
            check_invariants=False,
        )
    product: Tensor = sparse @ dense.detach()
    if addend is not None:
        product.add_(addend.detach())
    return product


def _compiled_product(
    matrix: CompressedRows, dense: Tensor, addend: Tensor | None, *, portable: bool
) -> Tensor:
    if not IS_COMPILED:
        raise RuntimeError(
            "the compiled kernels are not built; use `implementation='torch'` "
            "or install with a C++ compiler"
        )
    if addend is not None:
        addend = addend.detach().contiguous()
    out = dense.new_empty(matrix.n_rows, dense.shape[1])
    native.sparse_product(
        matrix.offsets,
        matrix.columns,
        matrix.values,
        dense.detach().contiguous(),
        addend,
        out,
        torch.get_num_threads(),
        portable,
    )
    return out


def _has_kernel(dense: Tensor) -> bool:
    is_known_type = dense.dtype in (torch.float32, torch.float64)
    return IS_COMPILED and is_known_type and dense.device.type == "cpu"


def _check(matrix: CompressedRows, dense: Tensor, addend: Tensor | None) -> None:
    if dense.ndim != 2 or len(dense) != matrix.n_columns:
        raise ValueError(
            f"`dense` must have shape ({matrix.n_columns}, width), got {tuple(dense.shape)}"
        )
    if dense.dtype != matrix.values.dtype:
        raise TypeError(
            f"`dense` must have the matrix's dtype {matrix.values.dtype}, got {dense.dtype}"
        )
    expected = (matrix.n_rows, dense.shape[1])
    if addend is not None and tuple(addend.shape) != expected:
        raise ValueError(
            f"`addend` must have the product's shape {expected}, got {tuple(addend.shape)}"
        )
