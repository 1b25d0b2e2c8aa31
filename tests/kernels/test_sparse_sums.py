import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array

from pslrec.kernels import _sparse_sums as module
from pslrec.kernels import add_sparse_product, dense_product, largest_of_product

N_ROWS, N_MIDDLE, N_COLUMNS = 70, 40, 90


@pytest.fixture(params=["compiled", "plain"])
def implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "plain":
        monkeypatch.setattr(module, "_compiled", None)
        monkeypatch.setattr(module, "_compiled_largest", None)
        # More than one portion.
        monkeypatch.setattr(module, "_ROWS_AT_ONCE", 32)
    elif module._compiled is None:
        pytest.skip("pslrec was built without the compiled module")


def factors(density: float) -> tuple[csr_matrix, csr_matrix]:
    generator = np.random.default_rng(3)
    options = {"density": density, "format": "csr", "rng": generator, "dtype": np.float32}
    left = csr_matrix(random_array((N_ROWS, N_MIDDLE), **options))
    right = csr_matrix(random_array((N_MIDDLE, N_COLUMNS), **options))
    return left, right


@pytest.mark.usefixtures("implementation")
@pytest.mark.parametrize("density", [0.0, 0.02, 0.3, 1.0])
def test_the_product_is_added(density: float) -> None:
    left, right = factors(density)
    before = np.random.default_rng(4).normal(size=(N_ROWS, N_COLUMNS)).astype(np.float32)
    out = before.copy()
    add_sparse_product(out, left, right)
    expected = before + left.toarray().astype(np.float64) @ right.toarray()
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("implementation")
def test_columns_get_what_they_get_among_all_and_may_be_repeated() -> None:
    left, right = factors(0.3)
    everything = dense_product(left, right)
    columns = np.array([88, 3, 3, 0])
    out = np.zeros((N_ROWS, 4), dtype=np.float32)
    add_sparse_product(out, left, right, columns=columns)
    np.testing.assert_array_equal(out, everything[:, columns])


@pytest.mark.usefixtures("implementation")
def test_no_columns_get_nothing() -> None:
    left, right = factors(0.3)
    out = np.zeros((N_ROWS, 0), dtype=np.float32)
    add_sparse_product(out, left, right, columns=np.empty(0, dtype=np.int64))
    assert out.shape == (N_ROWS, 0)


@pytest.mark.usefixtures("implementation")
def test_a_row_gets_the_same_alone_and_among_others() -> None:
    left, right = factors(0.3)
    together = dense_product(left, right)
    for row in (0, 33, N_ROWS - 1):
        np.testing.assert_array_equal(dense_product(left[row], right)[0], together[row])


@pytest.mark.usefixtures("implementation")
def test_terms_that_cancel_out_leave_nothing_behind() -> None:
    # A sum of 0 in between must not be taken for an untouched column, or it is added twice.
    left = csr_matrix(np.array([[1, 1, 1], [0, 0, 1]], dtype=np.float32))
    right = csr_matrix(np.array([[2, 0], [-2, 0], [5, 1]], dtype=np.float32))
    np.testing.assert_array_equal(dense_product(left, right), [[5, 1], [5, 1]])


@pytest.mark.usefixtures("implementation")
@pytest.mark.parametrize("shape", [(0, 4, 5), (3, 0, 5), (3, 4, 0)])
def test_empty_shapes(shape: tuple[int, int, int]) -> None:
    left = csr_matrix((shape[0], shape[1]), dtype=np.float32)
    right = csr_matrix((shape[1], shape[2]), dtype=np.float32)
    np.testing.assert_array_equal(dense_product(left, right), np.zeros((shape[0], shape[2])))


@pytest.mark.usefixtures("implementation")
def test_wide_numbers_are_taken_as_narrow_ones() -> None:
    left, right = factors(0.3)
    wide_left = left.astype(np.float64)
    wide_left.indices = wide_left.indices.astype(np.int64)
    wide_left.indptr = wide_left.indptr.astype(np.int64)
    np.testing.assert_array_equal(dense_product(wide_left, right), dense_product(left, right))


@pytest.mark.parametrize(
    ("out", "columns", "message"),
    [
        (np.zeros((N_ROWS, 3), dtype=np.float32), None, "`out` must be contiguous float32"),
        (np.zeros((N_ROWS, N_COLUMNS)), None, "got float64"),
        (np.zeros((N_COLUMNS, N_ROWS), dtype=np.float32).T, None, "must be contiguous"),
        (np.zeros((N_ROWS, 1), dtype=np.float32), np.array([N_COLUMNS]), "`columns` must be from"),
        (np.zeros((N_ROWS, 1), dtype=np.float32), np.array([-1]), "`columns` must be from"),
        (np.zeros((N_ROWS, 1), dtype=np.float32), np.array([0.0]), "`columns` must be whole"),
    ],
)
def test_what_does_not_fit_is_explained(
    out: np.ndarray, columns: np.ndarray | None, message: str
) -> None:
    left, right = factors(0.3)
    with pytest.raises(ValueError, match=message):
        add_sparse_product(out, left, right, columns=columns)


def test_factors_that_do_not_fit_together_are_explained() -> None:
    left, right = factors(0.3)
    with pytest.raises(ValueError, match="must be in compressed rows"):
        dense_product(left, right.tocsc())
    with pytest.raises(ValueError, match="`left` must have a column for each row of `right`"):
        dense_product(left, right[1:])


@pytest.mark.usefixtures("implementation")
@pytest.mark.parametrize("density", [0.0, 0.02, 0.3, 1.0])
@pytest.mark.parametrize("k", [1, 7, 500])
def test_the_largest_entries_are_those_of_a_sort(density: float, k: int) -> None:
    left, right = factors(density)
    # Whole numbers, so that there are ties, and negative ones.
    left.data = np.round(left.data * 3)
    right.data = np.round(right.data * 6) - 2
    product = left.toarray() @ right.toarray()
    expected = np.zeros_like(product)
    for row, values in enumerate(product):
        order = sorted(range(N_COLUMNS), key=lambda column: (-values[column], column))
        kept = [column for column in order if values[column] > 0 and column != row][:k]
        expected[row, kept] = values[kept]
    found = largest_of_product(left, right, k)
    assert found.has_canonical_format
    np.testing.assert_array_equal(found.toarray(), expected)


@pytest.mark.usefixtures("implementation")
@pytest.mark.parametrize("shape", [(0, 4, 5), (3, 0, 5), (3, 4, 0)])
def test_the_largest_entries_of_empty_shapes(shape: tuple[int, int, int]) -> None:
    left = csr_matrix((shape[0], shape[1]), dtype=np.float32)
    right = csr_matrix((shape[1], shape[2]), dtype=np.float32)
    found = largest_of_product(left, right, 2)
    assert found.shape == (shape[0], shape[2])
    assert found.nnz == 0


def test_both_ways_find_the_same_in_numbers_that_round() -> None:
    if module._compiled_largest is None:
        pytest.skip("pslrec was built without the compiled module")
    left, right = factors(0.3)
    compiled = largest_of_product(left, right, 5)
    plain = module.largest_of_product_plainly(left, right, 5)
    np.testing.assert_allclose(compiled.toarray(), plain.toarray(), rtol=1e-6)
