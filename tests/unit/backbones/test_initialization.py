import math

import numpy as np
import pytest
import torch

from matrices import interactions_of
from pslrec.backbones import LightGCN, MatrixFactorization, XSimGCL, initial_tables
from pslrec.backbones._graph import normalized_matrix
from pslrec.backbones._initialization import spectral_tables, truncated_svd
from pslrec.data import Interactions
from pslrec.errors import ConfigError
from pslrec.kernels._sparse_product import CompressedRows
from pslrec.seeding import derive_seed


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def dense_of(matrix: CompressedRows) -> torch.Tensor:
    dense = torch.zeros(matrix.n_rows, matrix.n_columns)
    rows = torch.repeat_interleave(torch.arange(matrix.n_rows), matrix.offsets.diff())
    dense[rows, matrix.columns] = matrix.values
    return dense


@pytest.fixture(scope="module")
def large() -> Interactions:
    return interactions_of(np.eye(2000, 500, dtype=bool))


@pytest.fixture(scope="module")
def clusters() -> Interactions:
    """Three groups of users who choose among three groups of items, and hardly anything else."""
    rng = np.random.default_rng(0)
    same = (np.arange(90) % 3)[:, None] == (np.arange(60) % 3)[None, :]
    return interactions_of(rng.random((90, 60)) < np.where(same, 0.5, 0.02))


@pytest.mark.parametrize(
    ("method", "user_deviation", "item_deviation"),
    [
        ("normal", 1.0, 1.0),
        ("normal:0.01", 0.01, 0.01),
        ("xavier-normal", math.sqrt(2 / 2064), math.sqrt(2 / 564)),
        ("xavier-uniform", math.sqrt(2 / 2064), math.sqrt(2 / 564)),
    ],
)
def test_random_tables_have_the_standard_deviation_they_should(
    large, method, user_deviation, item_deviation
):
    users, items = initial_tables(method, large, dimension=64, generator=generator())
    for table, deviation in ((users, user_deviation), (items, item_deviation)):
        n_entries = table.numel()
        assert table.dtype == torch.float32
        # Both within five standard errors; for the deviation 1/sqrt(2n) holds for the Gaussian, less for the uniform.
        assert table.std().item() == pytest.approx(deviation, rel=5 / math.sqrt(2 * n_entries))
        assert abs(table.mean().item()) < 5 * deviation / math.sqrt(n_entries)


def test_xavier_uniform_fills_its_bounds_and_keeps_them(large):
    users, items = initial_tables("xavier-uniform", large, dimension=64, generator=generator())
    for table, rows in ((users, 2000), (items, 500)):
        bound = math.sqrt(6 / (rows + 64))
        assert 0.999 * bound < table.abs().max() <= bound


def test_normal_tables_have_gaussian_tails(large):
    users, _ = initial_tables("normal", large, dimension=64, generator=generator())
    assert (users.abs() > 2).float().mean().item() == pytest.approx(0.0455, abs=0.003)


def test_xavier_agrees_with_torch_on_spread():
    train = interactions_of(np.ones((300, 200), dtype=bool))
    reference = torch.empty(300, 64)
    torch.nn.init.xavier_uniform_(reference, generator=generator())
    users, _ = initial_tables("xavier-uniform", train, dimension=64, generator=generator())
    assert users.abs().max().item() == pytest.approx(reference.abs().max().item(), rel=1e-3)


def test_each_backbone_takes_its_own_default_unless_told(clusters):
    seed = derive_seed(5, "initialization")
    expected = {MatrixFactorization: "normal", LightGCN: "normal", XSimGCL: "xavier-uniform"}
    for backbone, method in expected.items():
        users, items = initial_tables(method, clusters, dimension=16, generator=generator(seed))
        made = backbone(clusters, dimension=16, seed=5)
        assert torch.equal(made.user_table, users)
        assert torch.equal(made.item_table, items)
        told = backbone(clusters, dimension=16, seed=5, initialization="normal:0.01")
        assert told.item_table.abs().max() < 0.1


@pytest.mark.parametrize("number", ["", "0", "-1", "wide", "inf", "nan"])
@pytest.mark.parametrize("method", ["normal", "spectral"])
def test_number_that_is_none_is_refused(clusters, method, number):
    method = f"{method}:{number}"
    with pytest.raises(ConfigError, match="`initialization` must give a positive number"):
        initial_tables(method, clusters, dimension=4, generator=generator())


def test_truncated_svd_agrees_with_the_dense_one(clusters):
    matrix = normalized_matrix(clusters)
    left, values, right = truncated_svd(matrix, rank=10, generator=generator())
    exact_left, exact_values, exact_right = torch.linalg.svd(dense_of(matrix))
    torch.testing.assert_close(values, exact_values[:10], rtol=5e-3, atol=0)
    # The leading vectors stand apart from the rest of the spectrum, so they are determined up to their sign.
    torch.testing.assert_close(
        (left[:, :3] * exact_left[:, :3]).sum(0).abs(), torch.ones(3), rtol=0, atol=1e-4
    )
    torch.testing.assert_close(
        (right[:, :3] * exact_right[:3].T).sum(0).abs(), torch.ones(3), rtol=0, atol=1e-4
    )


def test_singular_vectors_are_orthonormal(clusters):
    left, values, right = truncated_svd(normalized_matrix(clusters), rank=20, generator=generator())
    torch.testing.assert_close(left.T @ left, torch.eye(20), rtol=0, atol=1e-5)
    torch.testing.assert_close(right.T @ right, torch.eye(20), rtol=0, atol=1e-5)
    assert (values.diff() <= 0).all()


def test_truncated_svd_rebuilds_a_matrix_of_low_rank():
    train = interactions_of(np.kron(np.eye(3), np.ones((4, 5))).astype(bool))
    matrix = normalized_matrix(train)
    left, values, right = truncated_svd(matrix, rank=8, generator=generator())
    torch.testing.assert_close(
        values, torch.ones(3)
    )  # three blocks, so the rank is 3 and no more come back
    torch.testing.assert_close(left * values @ right.T, dense_of(matrix), rtol=0, atol=1e-5)


def test_spectral_tables_separate_planted_clusters(clusters):
    users, items = spectral_tables(clusters, dimension=4, generator=generator())
    cosines = users @ items.T
    same = (torch.arange(90) % 3)[:, None] == (torch.arange(60) % 3)[None, :]
    assert cosines[same].min() > cosines[~same].max()


def test_cosines_of_spectral_tables_rank_as_inner_products_do(clusters):
    users, items = initial_tables("spectral:2", clusters, dimension=9, generator=generator())
    left, values, right = truncated_svd(normalized_matrix(clusters), rank=8, generator=generator())
    scores = left * values**4 @ right.T
    # The longest items are cut.
    is_whole = (right * values**2).norm(dim=1) < torch.quantile(
        (right * values**2).norm(dim=1), 0.98
    )
    assert 40 < is_whole.sum() < 60
    assert torch.equal(
        (users @ items.T)[:, is_whole].argsort(dim=1), scores[:, is_whole].argsort(dim=1)
    )


def test_a_higher_power_keeps_what_many_share(clusters):
    # Of a higher power the first direction, which is near to popularity, is the largest part.
    shares = []
    for power in (1, 2, 4):
        users, _ = initial_tables(
            f"spectral:{power}", clusters, dimension=16, generator=generator()
        )
        shares.append(users[:, 0].square().mean())
    assert shares[0] < shares[1] < shares[2]


def test_one_dimension_has_no_room_for_lengths(clusters):
    for table in spectral_tables(clusters, dimension=1, generator=generator()):
        torch.testing.assert_close(table.abs(), torch.ones(len(table), 1))


def test_spectral_rows_have_norm_one(clusters):
    for table in spectral_tables(clusters, dimension=16, generator=generator()):
        assert table.dtype == torch.float32
        torch.testing.assert_close(table.norm(dim=1), torch.ones(len(table)))


def test_spectral_tables_are_the_same_for_the_same_seed(clusters):
    first, second = (
        spectral_tables(clusters, dimension=16, generator=generator(3)) for _ in range(2)
    )
    assert torch.equal(first[0], second[0])
    assert torch.equal(first[1], second[1])


def test_users_and_items_without_pairs_get_small_noise():
    pairs = np.random.default_rng(0).random((30, 20)) < 0.3
    pairs[4] = False
    pairs[:, 6] = False
    users, items = spectral_tables(interactions_of(pairs), dimension=8, generator=generator())
    for table, has_pairs in ((users, pairs.any(axis=1)), (items, pairs.any(axis=0))):
        norms = table.norm(dim=1).numpy()
        assert norms[has_pairs] == pytest.approx(1.0)
        assert (norms[~has_pairs] > 0).all()
        assert (norms[~has_pairs] < 0.1).all()


def test_columns_beyond_the_rank_are_small_but_not_zero():
    pairs = np.ones((6, 5), dtype=bool)
    users, items = spectral_tables(interactions_of(pairs), dimension=64, generator=generator())
    assert users.shape == (6, 64)
    assert items.shape == (5, 64)
    for table in (users, items):
        assert table.isfinite().all()
        assert (table[:, 1:-1].abs().sum(0) > 0).all()
        assert table[:, 1:-1].abs().max() < 0.1
        torch.testing.assert_close(table[:, 0].abs(), torch.ones(len(table)))


def test_spectral_tables_of_no_data_are_noise():
    users, items = spectral_tables(
        interactions_of(np.zeros((4, 3), dtype=bool)), dimension=8, generator=generator()
    )
    assert users.isfinite().all()
    assert items.isfinite().all()
    assert users.abs().max() < 0.1
