import pytest
import torch
from scipy.sparse import random_array

from pslrec.kernels import _sparse_product as module
from pslrec.kernels._native import IS_COMPILED
from pslrec.kernels._sparse_product import CompressedRows, sparse_product, torch_product

compiled_only = pytest.mark.skipif(not IS_COMPILED, reason="the compiled kernels are not built")
IMPLEMENTATIONS = [
    pytest.param("compiled", marks=compiled_only),
    pytest.param("portable", marks=compiled_only),
    "torch",
    "auto",
]
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}


def random_matrix(
    rows: int, columns: int, density: float = 0.2, dtype: torch.dtype = torch.float32
) -> CompressedRows:
    numpy_type = str(dtype).removeprefix("torch.")
    entries = random_array(
        (rows, columns), density=density, rng=rows + columns, format="csr", dtype=numpy_type
    )
    return CompressedRows.from_scipy(entries)


def dense_of(matrix: CompressedRows) -> torch.Tensor:
    dense = torch.zeros(matrix.n_rows, matrix.n_columns, dtype=matrix.values.dtype)
    for row in range(matrix.n_rows):
        for entry in range(int(matrix.offsets[row]), int(matrix.offsets[row + 1])):
            dense[row, matrix.columns[entry]] += matrix.values[entry]
    return dense


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [1, 7, 8, 16, 31, 64, 65, 127, 200])
def test_product_equals_dense_arithmetic(
    implementation: str, dtype: torch.dtype, width: int
) -> None:
    matrix = random_matrix(37, 23, dtype=dtype)
    dense = torch.randn(23, width, dtype=dtype)
    addend = torch.randn(37, width, dtype=dtype)
    for plus in (None, addend):
        expected = dense_of(matrix) @ dense + (0 if plus is None else plus)
        product = sparse_product(
            matrix, matrix.transposed(), dense, addend=plus, implementation=implementation
        )
        torch.testing.assert_close(product, expected, rtol=0, atol=TOLERANCE[dtype] * 10)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (1, 1), (3, 400), (400, 3)])
def test_ragged_and_empty_matrices_are_multiplied(
    implementation: str, shape: tuple[int, int]
) -> None:
    matrix = random_matrix(*shape, density=0.5)
    dense = torch.randn(shape[1], 12)
    product = sparse_product(matrix, matrix.transposed(), dense, implementation=implementation)
    torch.testing.assert_close(product, dense_of(matrix) @ dense, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_gradients_pass_the_numerical_check_twice(implementation: str) -> None:
    matrix = random_matrix(6, 5, density=0.5, dtype=torch.float64)
    transposed = matrix.transposed()
    dense = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    addend = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)

    def product(dense: torch.Tensor, addend: torch.Tensor) -> torch.Tensor:
        return sparse_product(
            matrix, transposed, dense, addend=addend, implementation=implementation
        )

    assert torch.autograd.gradcheck(product, (dense, addend))
    assert torch.autograd.gradgradcheck(product, (dense, addend))


@compiled_only
def test_gradient_of_the_kernel_equals_that_of_the_twin_in_single_precision() -> None:
    matrix = random_matrix(50, 40)
    transposed = matrix.transposed()
    weights = torch.randn(50, 64)
    gradients = []
    for implementation in ("compiled", "portable", "torch"):
        dense = torch.linspace(-1, 1, 40 * 64).reshape(40, 64).requires_grad_()
        (
            sparse_product(matrix, transposed, dense, implementation=implementation) * weights
        ).sum().backward()
        gradients.append(dense.grad)
    torch.testing.assert_close(gradients[0], gradients[2], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(gradients[1], gradients[2], rtol=1e-5, atol=1e-5)


@compiled_only
@pytest.mark.parametrize("implementation", ["compiled", "portable"])
def test_result_is_the_same_for_any_number_of_threads(implementation: str) -> None:
    matrix = random_matrix(700, 300)
    transposed = matrix.transposed()
    dense = torch.randn(300, 64)
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append(sparse_product(matrix, transposed, dense, implementation=implementation))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])


def test_dense_need_not_be_contiguous() -> None:
    matrix = random_matrix(9, 8)
    dense = torch.randn(10, 8).T
    torch.testing.assert_close(
        sparse_product(matrix, matrix.transposed(), dense), dense_of(matrix) @ dense
    )


def test_gradient_of_an_expanded_result_is_accepted() -> None:
    matrix = random_matrix(9, 8)
    dense = torch.randn(8, 4, requires_grad=True)
    sparse_product(matrix, matrix.transposed(), dense).sum().backward()
    torch.testing.assert_close(dense.grad, dense_of(matrix).T @ torch.ones(9, 4))


def test_transposed_of_transposed_is_the_matrix() -> None:
    matrix = random_matrix(9, 8)
    torch.testing.assert_close(dense_of(matrix.transposed()), dense_of(matrix).T)
    again = matrix.transposed().transposed()
    assert all(
        torch.equal(first, second) for first, second in zip(matrix[:3], again[:3], strict=True)
    )


def test_twin_serves_where_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "IS_COMPILED", False)
    matrix = random_matrix(9, 8)
    dense = torch.randn(8, 4)
    assert torch.equal(
        sparse_product(matrix, matrix.transposed(), dense), torch_product(matrix, dense)
    )
    with pytest.raises(RuntimeError, match="not built"):
        sparse_product(matrix, matrix.transposed(), dense, implementation="compiled")


def test_arguments_that_do_not_fit_are_named() -> None:
    matrix = random_matrix(9, 8)
    transposed = matrix.transposed()
    with pytest.raises(ValueError, match=r"`dense` must have shape \(8, width\), got \(9, 4\)"):
        sparse_product(matrix, transposed, torch.randn(9, 4))
    with pytest.raises(TypeError, match="`dense` must have the matrix's dtype"):
        sparse_product(matrix, transposed, torch.randn(8, 4, dtype=torch.float64))
    with pytest.raises(
        ValueError, match=r"`addend` must have the product's shape \(9, 4\), got \(8, 4\)"
    ):
        sparse_product(matrix, transposed, torch.randn(8, 4), addend=torch.randn(8, 4))
