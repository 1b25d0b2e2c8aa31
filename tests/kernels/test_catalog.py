"""The exact row operation against every pair of a positive and a negative, in double precision."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from pslrec.kernels.catalog import RowOperation, catalog_row_values, row_gradients
from pslrec.kernels.catalog_block import CatalogBlock
from pslrec.kernels.log_sum import SURROGATES
from pslrec.kernels.native import IS_COMPILED, native
from pslrec.kernels.negatives import NegativePool, Rows
from pslrec.losses import SURROGATES as LOSS_SURROGATES

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="the compiled module is not built; the twin is all there is")

TEMPERATURES = (0.005, 0.025, 0.05, 0.1, 1 / 7, 0.15, 0.25)
N_ITEMS = 700
LOSS_TOLERANCE, GRADIENT_TOLERANCE = 1e-6, 1e-4


def lists(*rows):
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    items = np.concatenate([np.sort(row) for row in rows]) if rows else np.zeros(0)
    return Rows(torch.from_numpy(offsets.astype(np.int64)), torch.from_numpy(items.astype(np.int32)))


def block_of(positives, n_items, false_negatives=None, noise=0.0):
    taken = positives
    if false_negatives is not None:
        taken = [np.union1d(own, false) for own, false in zip(positives, false_negatives, strict=True)]
    extras = None if false_negatives is None else lists(*false_negatives)
    pool = NegativePool(lists(*taken), n_items, extras, noise)
    return CatalogBlock(torch.arange(len(positives)), lists(*positives), pool)


def exponent_of(temperature):
    nearest = round(1 / temperature)
    return float(nearest) if math.isclose(nearest, 1 / temperature, rel_tol=1e-12) else 1 / temperature


def exact(scores, block, operation):
    slopes = torch.tensor(scores, dtype=torch.float32)
    values = row_gradients(slopes, block, operation)
    return values, slopes.double()


def all_pairs(scores, block, operation):
    """The loss of every positive, by every pair of a positive and a negative."""
    owners, items = block.pairs()
    differences = scores[owners] - scores[owners, items].unsqueeze(1)
    weights, sigma = block.weights(scores.dtype)[owners], LOSS_SURROGATES[operation.surrogate]()
    if operation.kind == "mean":
        return (weights * sigma.log_value(differences)).sum(1) / weights.sum(1)
    if operation.kind == "inside":
        return sigma.log_sum(operation.exponent * differences, weights)
    return torch.logsumexp(operation.exponent * sigma.log_value(differences) + weights.log(), dim=1)


def errors(scores, block, operation):
    """Largest error of a row's loss per positive, and of its gradient, in the units of the tolerances."""
    values, slopes = exact(scores, block, operation)
    inputs = torch.tensor(scores, dtype=torch.float32).double().requires_grad_()
    each = all_pairs(inputs, block, operation)
    each.sum().backward()
    owners, _ = block.pairs()
    per_user = torch.zeros(len(values), dtype=torch.float64)
    wanted = per_user.index_add(0, owners, each.detach())
    sizes = per_user.index_add(0, owners, each.detach().abs().clamp_min(1.0))
    assert torch.isfinite(slopes).all()
    loss_error = ((values - wanted).abs() / sizes).max()
    gradient_error = ((slopes - inputs.grad).abs().amax(1) / inputs.grad.abs().amax(1).clamp_min(1e-30)).max()
    return float(loss_error), float(gradient_error)


def gaussian(generator, rows, spread=0.12):
    return generator.normal(0, spread, (rows, N_ITEMS)).clip(-0.5, 0.5)


def choose(generator, *counts):
    return [generator.choice(N_ITEMS, count, replace=False) for count in counts]


def one_positive(generator):
    return gaussian(generator, 1), choose(generator, 1)


def around_the_first_nodes(generator):
    return gaussian(generator, 5), choose(generator, 7, 8, 9, 16, 17)


def long_history_far_apart(generator):
    scores, positives = gaussian(generator, 2), choose(generator, 300, 500)
    for row, own in enumerate(positives):
        scores[row, own] = generator.uniform(-0.4, 0.45, len(own))
    return scores, positives


def nearly_the_whole_catalogue(generator):
    return gaussian(generator, 2, 0.2), choose(generator, N_ITEMS - 1, N_ITEMS - 3)


def two_items(generator):
    return np.array([[0.3, -0.2], [-0.5, 0.5]]), [np.array([0]), np.array([1])]


def repeated_scores(generator):
    return gaussian(generator, 2, 0.2).round(1), choose(generator, 30, 100)


def all_positives_at_one_score(generator):
    scores = gaussian(generator, 2)
    scores[:, :40] = 0.1234
    return scores, [np.arange(40), np.arange(2)]


def negatives_at_the_lower_end(generator):
    scores = np.full((2, N_ITEMS), -0.5)
    scores[0, :3], scores[1, :50] = 0.5, np.linspace(0.2, 0.5, 50)
    return scores, [np.arange(3), np.arange(50)]


def negatives_at_the_upper_end(generator):
    scores = np.full((2, N_ITEMS), 0.5)
    scores[0, :3], scores[1, :50] = -0.5, np.linspace(-0.5, 0.5, 50)
    return scores, [np.arange(3), np.arange(50)]


def two_clusters(generator):
    scores = np.where(generator.random((3, N_ITEMS)) < 0.5, -0.4, 0.35) + generator.normal(0, 0.01, (3, N_ITEMS))
    return scores.clip(-0.5, 0.5), choose(generator, 3, 60, 400)


def negatives_near_the_lower_end(generator):
    scores, positives = -0.5 + generator.random((2, N_ITEMS)) * 1e-3, choose(generator, 2, 80)
    for row, own in enumerate(positives):
        scores[row, own] = generator.uniform(-0.2, 0.5, len(own))
    return scores, positives


SHAPES = (
    one_positive,
    around_the_first_nodes,
    long_history_far_apart,
    nearly_the_whole_catalogue,
    two_items,
    repeated_scores,
    all_positives_at_one_score,
    negatives_at_the_lower_end,
    negatives_at_the_upper_end,
    two_clusters,
    negatives_near_the_lower_end,
)


@pytest.fixture(params=[False, True], ids=["best", "portable"])
def variant(request):
    native.use_portable_rows(request.param)
    yield request.param
    native.use_portable_rows(False)


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_row_operation_equals_all_pairs(shape, surrogate, variant):
    scores, positives = shape(np.random.default_rng(0))
    block = block_of(positives, scores.shape[1])
    for temperature in TEMPERATURES:
        operation = RowOperation("log-sum", surrogate, exponent_of(temperature))
        loss_error, gradient_error = errors(scores, block, operation)
        assert loss_error <= LOSS_TOLERANCE, f"loss at temperature {temperature}"
        assert gradient_error <= GRADIENT_TOLERANCE, f"gradient at temperature {temperature}"


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_false_negatives_weigh_as_the_noise_says(surrogate, variant):
    generator = np.random.default_rng(1)
    positives = choose(generator, 10, 80, 5)
    false = [np.setdiff1d(generator.choice(N_ITEMS, 3), own) for own in positives[:2]] + [np.zeros(0, dtype=int)]
    block = block_of(positives, N_ITEMS, false, noise=0.3)
    weights = block.weights(torch.float64)
    for row in range(2):
        share = weights[row, false[row]].sum() / weights[row].sum()
        assert math.isclose(share, 0.3, rel_tol=1e-6)
    for temperature in TEMPERATURES:
        operation = RowOperation("log-sum", surrogate, exponent_of(temperature))
        loss_error, gradient_error = errors(gaussian(generator, 3), block, operation)
        assert loss_error <= LOSS_TOLERANCE
        assert gradient_error <= GRADIENT_TOLERANCE


@pytest.mark.parametrize("surrogate", ["tanh", "atan", "softplus"])
def test_error_falls_geometrically_with_nodes(surrogate):
    scores, positives = long_history_far_apart(np.random.default_rng(0))
    block = block_of(positives, N_ITEMS)
    operations = [RowOperation("log-sum", surrogate, 10.0, tolerance=0.0, first_nodes=nodes) for nodes in (2, 4, 6, 8)]
    found = [errors(scores, block, operation)[0] for operation in operations]
    assert all(later < earlier / 4 for earlier, later in pairwise(found) if earlier > 1e-6)
    assert found[-1] < 1e-6 < found[0]


def test_values_do_not_depend_on_the_block():
    generator = np.random.default_rng(2)
    users = torch.nn.functional.normalize(torch.randn(6, 16, generator=torch.Generator().manual_seed(0)), dim=1)
    items = torch.nn.functional.normalize(torch.randn(N_ITEMS, 16, generator=torch.Generator().manual_seed(1)), dim=1)
    block = block_of(choose(generator, 1, 4, 20, 60, 9, 8), N_ITEMS)
    operation = RowOperation("log-sum", "tanh", 10.0)
    whole = catalog_row_values(users, items, block, operation, scale=0.5)
    for part in (slice(0, 2), slice(2, 6)):
        piece = CatalogBlock(block.users[part], block.positives, block.pool)
        values = catalog_row_values(users[part], items, piece, operation, scale=0.5)
        torch.testing.assert_close(values, whole[part], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_gradient_reaches_users_and_items(surrogate):
    generator = np.random.default_rng(3)
    block = block_of(choose(generator, 3, 30), N_ITEMS)
    start = [
        torch.nn.functional.normalize(torch.randn(n, 8, generator=torch.Generator().manual_seed(n)), dim=1)
        for n in (2, N_ITEMS)
    ]
    fused = [table.clone().requires_grad_() for table in start]
    plain = [table.double().requires_grad_() for table in start]
    factors = torch.tensor([0.3, 0.7], dtype=torch.float64)
    operation = RowOperation("log-sum", surrogate, 10.0)
    values = catalog_row_values(*fused, block, operation, scale=0.5)
    (values * factors).sum().backward()
    each = all_pairs(plain[0] @ plain[1].T * 0.5, block, operation)
    (each * factors[block.pairs()[0]]).sum().backward()
    for ours, truth in zip(fused, plain, strict=True):
        torch.testing.assert_close(ours.grad.double(), truth.grad, rtol=1e-4, atol=1e-5)
