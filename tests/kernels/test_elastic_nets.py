import numpy as np
import pytest
from scipy.sparse import csr_matrix

from pslrec.kernels import _elastic_nets as module
from pslrec.kernels import elastic_nets
from pslrec.kernels._native import native

L1, L2 = 0.7, 2.0


@pytest.fixture(params=["compiled", "plain", "plain, an item at a time"])
def implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    # What the loop below is compared with has converged.
    monkeypatch.setattr(module, "_TOLERANCE", 1e-7)
    if request.param == "compiled":
        if module._compiled is None:
            pytest.skip("pslrec was built without the compiled module")
        return
    monkeypatch.setattr(module, "_compiled", None)
    if request.param != "plain":
        monkeypatch.setattr(module, "_BATCH_BYTES", 1)


def counts_of(n_users: int, n_items: int, *, density: float = 0.6) -> np.ndarray:
    chances = np.linspace(0.02, density, n_items)
    has = np.random.default_rng(0).random((n_users, n_items)) < chances
    # An item that nobody has.
    has[:, 3] = False
    pairs = has.astype(np.float32)
    return pairs.T @ pairs


def some_candidates(n_items: int, share: float) -> np.ndarray:
    is_candidate = np.random.default_rng(1).random((n_items, n_items)) < share
    np.fill_diagonal(is_candidate, False)
    # An item that nothing may explain.
    is_candidate[5] = False
    return is_candidate


def weights_by_loops(
    counts: np.ndarray, is_candidate: np.ndarray, *, non_negative: bool
) -> np.ndarray:
    """Coordinate descent, one weight after the other, from the definition of the minimum."""
    weights = np.zeros(counts.shape)
    for item, others in enumerate(is_candidate):
        row = weights[item]
        for _ in range(500):
            for other in np.flatnonzero(others):
                pull = counts[other, item] - counts[other] @ row + counts[other, other] * row[other]
                shrunk = np.sign(pull) * max(abs(pull) - L1, 0.0)
                if non_negative:
                    shrunk = max(shrunk, 0.0)
                row[other] = shrunk / (counts[other, other] + L2)
    return weights


@pytest.mark.usefixtures("implementation")
@pytest.mark.parametrize("non_negative", [True, False])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_weights_equal_loops(share: float, *, non_negative: bool) -> None:
    counts = counts_of(50, 14)
    is_candidate = some_candidates(14, share)
    candidates = csr_matrix(is_candidate.astype(np.float32))
    found = elastic_nets(csr_matrix(counts), candidates, l1=L1, l2=L2, non_negative=non_negative)
    expected = weights_by_loops(counts.astype(np.float64), is_candidate, non_negative=non_negative)
    dense = csr_matrix((found, candidates.indices, candidates.indptr), shape=(14, 14)).toarray()
    np.testing.assert_allclose(dense, expected, atol=1e-5)
    # There are negative weights to be ruled out.
    if share > 0:
        assert (expected < 0).any() != non_negative


@pytest.mark.usefixtures("implementation")
def test_without_items_there_are_no_weights() -> None:
    nothing = csr_matrix((0, 0), dtype=np.float32)
    assert len(elastic_nets(nothing, nothing, l1=L1, l2=L2, non_negative=True)) == 0


@pytest.mark.skipif(module._compiled is None, reason="pslrec was built without the module")
@pytest.mark.parametrize("density", [0.02, 0.3])
def test_both_agree_on_full_and_on_sparse_rows(density: float) -> None:
    """Rows that are nearly full are read from a table, others entry by entry."""
    counts = csr_matrix(counts_of(200, 300, density=density))
    lengths = np.diff(counts.indptr)
    is_full = lengths * 32 > 300
    assert is_full.any()
    assert not is_full.all()
    candidates = csr_matrix(some_candidates(300, 0.1).astype(np.float32))
    options = {"l1": 1.0, "l2": 5.0, "non_negative": True}
    compiled = elastic_nets(counts, candidates, **options)
    plain = module.elastic_nets_plainly(counts, candidates, **options)
    np.testing.assert_allclose(compiled, plain, atol=2e-4)
    assert (compiled > 0).any()


@pytest.mark.skipif(module._compiled is None, reason="pslrec was built without the module")
def test_where_everybody_has_much_in_common_the_descent_goes_on_to_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With 200 sweeps, which is plenty for sparse data, weights were off by half of the largest."""
    chances = np.linspace(0.5, 0.95, 40)
    pairs = (np.random.default_rng(2).random((200, 40)) < chances).astype(np.float32)
    counts = csr_matrix(pairs.T @ pairs)
    candidates = csr_matrix(1.0 - np.eye(40, dtype=np.float32))
    options = {"l1": 1.0, "l2": 5.0, "non_negative": True}
    found = elastic_nets(counts, candidates, **options)
    monkeypatch.setattr(module, "_TOLERANCE", 1e-6)
    expected = module.elastic_nets_plainly(counts, candidates, **options)
    np.testing.assert_allclose(found, expected, atol=1e-2)
    monkeypatch.setattr(module, "_MOST_SWEEPS", 200)
    stopped = elastic_nets(counts, candidates, **options)
    assert np.abs(stopped - expected).max() > 0.05


@pytest.mark.skipif(module._compiled is None, reason="pslrec was built without the module")
def test_what_an_item_gets_does_not_depend_on_the_others() -> None:
    counts = csr_matrix(counts_of(200, 60))
    is_candidate = some_candidates(60, 0.5)
    together = csr_matrix(is_candidate.astype(np.float32))
    weights = elastic_nets(counts, together, l1=1.0, l2=5.0, non_negative=True)
    is_alone = np.zeros_like(is_candidate)
    is_alone[40] = is_candidate[40]
    alone = csr_matrix(is_alone.astype(np.float32))
    found = elastic_nets(counts, alone, l1=1.0, l2=5.0, non_negative=True)
    np.testing.assert_array_equal(found, weights[together.indptr[40] : together.indptr[41]])


def test_matrices_of_other_shapes_raise() -> None:
    counts = csr_matrix(counts_of(50, 14))
    with pytest.raises(
        ValueError, match=r"`candidates` must be .* of shape \(14, 14\), got csr of"
    ):
        elastic_nets(counts, csr_matrix((14, 13)), l1=L1, l2=L2, non_negative=True)
    with pytest.raises(ValueError, match="`counts` must be in compressed rows"):
        elastic_nets(counts.tocsc(), counts, l1=L1, l2=L2, non_negative=True)


@pytest.mark.skipif(module._compiled is None, reason="pslrec was built without the module")
def test_the_compiled_kernel_refuses_arrays_that_do_not_fit() -> None:
    longs = np.zeros(3, dtype=np.int64)
    none = np.zeros(0, dtype=np.int32)
    floats = np.zeros(0, dtype=np.float32)
    sizes = np.zeros(1, dtype=np.float32)
    options = (1.0, 1.0, True, 1e-4, 10)
    with pytest.raises(ValueError, match="do not fit together"):
        native.elastic_nets(longs, none, floats, sizes, longs, none, *options, floats)
