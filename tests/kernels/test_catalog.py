"""The exact row operation against every pair of a positive and a negative, in double precision."""

import math
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import torch

from pslrec.forms import FusedForm
from pslrec.kernels import _catalog
from pslrec.kernels._catalog import (
    CatalogPass,
    PositiveWeighting,
    catalog_row_values,
    row_gradients,
    weighted_row_gradients,
)
from pslrec.kernels._log_sum import SURROGATES
from pslrec.kernels._native import IS_COMPILED, native
from pslrec.losses import SURROGATES as LOSS_SURROGATES
from pslrec.rows import Rows
from pslrec.sampling import CatalogBlock, NegativePool

pytestmark = pytest.mark.skipif(
    not IS_COMPILED, reason="the compiled module is not built; the twin is all there is"
)

TEMPERATURES = (0.005, 0.025, 0.05, 0.1, 1 / 7, 0.15, 0.25)
N_ITEMS = 450
LOSS_TOLERANCE, GRADIENT_TOLERANCE = 1e-6, 1e-4
# Of one positive, which at an end of the interpolated interval may be less exact than the mean of a row.
POSITIVE_TOLERANCE = 1e-5


def lists(*rows):
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    items = np.concatenate([np.sort(row) for row in rows]) if rows else np.zeros(0)
    return Rows(offsets, items)


def block_of(positives, n_items, false_negatives=None, noise=0.0):
    taken = positives
    if false_negatives is not None:
        taken = [
            np.union1d(own, false) for own, false in zip(positives, false_negatives, strict=True)
        ]
    extras = None if false_negatives is None else lists(*false_negatives)
    pool = NegativePool(lists(*taken), n_items, extras, noise)
    return CatalogBlock(torch.arange(len(positives)), lists(*positives), pool)


def exponent_of(temperature):
    nearest = round(1 / temperature)
    return (
        float(nearest) if math.isclose(nearest, 1 / temperature, rel_tol=1e-12) else 1 / temperature
    )


def exact(scores, block, operation, **options):
    slopes = torch.tensor(scores, dtype=torch.float32)
    values = row_gradients(slopes, block.lists, operation, **options)
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


def truth(scores, block, operation):
    """Loss and gradient of each row by all pairs in double precision, and how large the losses of its positives are."""
    inputs = torch.tensor(scores, dtype=torch.float32).double().requires_grad_()
    each = all_pairs(inputs, block, operation)
    each.sum().backward()
    owners, _ = block.pairs()
    per_user = torch.zeros(len(inputs), dtype=torch.float64)
    sizes = per_user.index_add(0, owners, each.detach().abs().clamp_min(1.0))
    return per_user.index_add(0, owners, each.detach()), inputs.grad, sizes


def errors(scores, block, operation, wanted=None, **options):
    """Largest error of a row's loss per positive, and of its gradient, in the units of the tolerances."""
    values, slopes = exact(scores, block, operation, **options)
    losses, gradients, sizes = wanted or truth(scores, block, operation)
    assert torch.isfinite(slopes).all()
    loss_error = ((values - losses).abs() / sizes).max()
    gradient_error = (
        (slopes - gradients).abs().amax(1) / gradients.abs().amax(1).clamp_min(1e-30)
    ).max()
    return float(loss_error), float(gradient_error)


@cache
def example(shape, stretch=1.0):
    scores, positives = shape(np.random.default_rng(0))
    return scores * stretch, block_of(positives, scores.shape[1])


@cache
def truth_of_example(shape, operation, stretch=1.0):
    # Both variants of the kernel are held to it, and it takes longer than they do.
    return truth(*example(shape, stretch), operation)


def assert_exact(shape, operation, stretch=1.0):
    loss_error, gradient_error = errors(
        *example(shape, stretch), operation, truth_of_example(shape, operation, stretch)
    )
    assert loss_error <= LOSS_TOLERANCE, f"loss of {operation} at scores times {stretch}"
    assert gradient_error <= GRADIENT_TOLERANCE, (
        f"gradient of {operation} at scores times {stretch}"
    )


def gaussian(generator, rows, spread=0.12):
    return generator.normal(0, spread, (rows, N_ITEMS)).clip(-0.5, 0.5)


def choose(generator, *counts):
    return [generator.choice(N_ITEMS, count, replace=False) for count in counts]


def one_positive(generator):
    return gaussian(generator, 1), choose(generator, 1)


def around_the_first_nodes(generator):
    return gaussian(generator, 5), choose(generator, 7, 8, 9, 16, 17)


def around_whole_vectors(generator):
    return gaussian(generator, 6), choose(generator, 31, 32, 33, 63, 65, 129)


def long_history_far_apart(generator):
    scores, positives = gaussian(generator, 2), choose(generator, 250, 400)
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
    scores = np.where(generator.random((3, N_ITEMS)) < 0.5, -0.4, 0.35) + generator.normal(
        0, 0.01, (3, N_ITEMS)
    )
    return scores.clip(-0.5, 0.5), choose(generator, 3, 60, 400)


def negatives_near_the_lower_end(generator):
    scores, positives = -0.5 + generator.random((2, N_ITEMS)) * 1e-3, choose(generator, 2, 80)
    for row, own in enumerate(positives):
        scores[row, own] = generator.uniform(-0.2, 0.5, len(own))
    return scores, positives


SHAPES = (
    one_positive,
    around_the_first_nodes,
    around_whole_vectors,
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


@pytest.fixture(params=["avx512", "avx2", "portable"])
def variant(request):
    native.use_instructions(request.param)
    yield request.param
    native.use_instructions("avx512")


each_shape = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)


@pytest.mark.parametrize("surrogate", SURROGATES)
@each_shape
def test_log_sum_equals_all_pairs(shape, surrogate, variant):
    for temperature in TEMPERATURES:
        assert_exact(shape, FusedForm("log-sum", surrogate, exponent_of(temperature)))


@each_shape
def test_relu_near_a_straight_line_equals_all_pairs(shape, variant):
    for exponent in (0.8, 1.0, 1.05, 1.5, 2.0):
        assert_exact(shape, FusedForm("log-sum", "relu", exponent))


@pytest.mark.parametrize("surrogate", ["tanh", "relu", "softplus"])
@each_shape
def test_inside_form_equals_all_pairs(shape, surrogate, variant):
    for temperature in (0.005, 0.05, 0.15, 0.25, 1.0):
        assert_exact(shape, FusedForm("inside", surrogate, 1 / temperature))


@each_shape
def test_inside_form_of_atan_equals_all_pairs_where_it_is_positive(shape, variant):
    for temperature in (0.8, 1.0, 2.5):
        assert_exact(shape, FusedForm("inside", "atan", 1 / temperature))


@pytest.mark.parametrize("temperature", [0.005, 0.05, 0.25])
def test_inside_form_of_atan_with_negatives_far_above(temperature, variant):
    scores = np.random.default_rng(0).uniform(-0.3, 0.5, (1, N_ITEMS))
    scores[0, :3] = -0.5, -0.45, -0.4
    loss_error, gradient_error = errors(
        scores, block_of([np.arange(3)], N_ITEMS), FusedForm("inside", "atan", 1 / temperature)
    )
    assert loss_error <= LOSS_TOLERANCE
    assert gradient_error <= GRADIENT_TOLERANCE


def test_inside_form_of_atan_is_no_number_where_its_sum_has_no_logarithm(variant):
    scores = np.full((1, N_ITEMS), -0.4)
    scores[0, 0] = 0.4
    values, _ = exact(scores, block_of([[0]], N_ITEMS), FusedForm("inside", "atan", 10.0))
    assert torch.isnan(values).all()


@each_shape
def test_mean_equals_all_pairs_however_far_scores_lie_apart(shape, variant):
    for stretch in (1.0, 4.0, 20.0, 100.0, 1e4):
        assert_exact(shape, FusedForm("mean", "softplus"), stretch)


WITH_NOISE = [
    FusedForm("log-sum", surrogate, exponent_of(t))
    for surrogate in SURROGATES
    for t in TEMPERATURES
]
WITH_NOISE += [FusedForm("inside", surrogate, 10.0) for surrogate in ("tanh", "relu", "softplus")]
WITH_NOISE += [
    FusedForm("inside", "atan", 1.0),
    FusedForm("mean", "softplus"),
    FusedForm("log-sum", "relu", 1.0),
]


def test_false_negatives_weigh_as_the_noise_says(variant):
    generator = np.random.default_rng(1)
    positives = choose(generator, 10, 80, 5)
    false = [np.setdiff1d(generator.choice(N_ITEMS, 3), own) for own in positives[:2]] + [
        np.zeros(0, dtype=int)
    ]
    block = block_of(positives, N_ITEMS, false, noise=0.3)
    weights = block.weights(torch.float64)
    for row in range(2):
        share = weights[row, false[row]].sum() / weights[row].sum()
        assert math.isclose(share, 0.3, rel_tol=1e-6)
    scores = gaussian(generator, 3)
    for operation in WITH_NOISE:
        loss_error, gradient_error = errors(scores, block, operation)
        assert loss_error <= LOSS_TOLERANCE, operation
        assert gradient_error <= GRADIENT_TOLERANCE, operation


@pytest.mark.parametrize("surrogate", ["tanh", "atan", "softplus"])
def test_error_falls_geometrically_with_nodes(surrogate):
    scores, positives = long_history_far_apart(np.random.default_rng(0))
    block = block_of(positives, N_ITEMS)
    operation = FusedForm("log-sum", surrogate, 10.0)
    found = [
        errors(scores, block, operation, tolerance=0.0, first_nodes=nodes)[0]
        for nodes in (2, 4, 6, 8)
    ]
    assert all(later < earlier / 4 for earlier, later in pairwise(found) if earlier > 1e-6)
    assert found[-1] < 1e-6 < found[0]


@pytest.mark.parametrize("stretch", [10.0, 30.0])
def test_error_of_the_mean_falls_geometrically_with_nodes(stretch):
    scores, block = example(long_history_far_apart, stretch)
    operation = FusedForm("mean", "softplus")
    found = [
        errors(scores, block, operation, tolerance=0.0, first_nodes=nodes)[0]
        for nodes in (4, 8, 16, 32)
    ]
    assert all(later < earlier / 10 for earlier, later in pairwise(found) if earlier > 1e-6)
    assert found[-1] < 1e-6 < found[0]


@pytest.mark.parametrize("stretch", [0.01, 1.0, 30.0, 300.0])
@pytest.mark.parametrize("count", [7, 8, 9, 63, 64, 65, 300])
def test_mean_is_exact_where_nodes_give_way_to_positives(count, stretch):
    generator = np.random.default_rng(count)
    block = block_of(choose(generator, count), N_ITEMS)
    loss_error, gradient_error = errors(
        gaussian(generator, 1) * stretch, block, FusedForm("mean", "softplus")
    )
    assert loss_error <= LOSS_TOLERANCE
    assert gradient_error <= GRADIENT_TOLERANCE


@pytest.mark.parametrize(
    "operation",
    [
        *(FusedForm("log-sum", surrogate, 10.0) for surrogate in SURROGATES),
        FusedForm("log-sum", "relu", 40.0),
        FusedForm("mean", "softplus"),
    ],
    ids=lambda operation: f"{operation.kind}-{operation.surrogate}-{operation.exponent:g}",
)
def test_history_of_thousands_is_exact(operation):
    generator = np.random.default_rng(0)
    scores = generator.normal(0, 0.12, (1, 2600)).clip(-0.5, 0.5)
    block = block_of([generator.choice(2600, 2000, replace=False)], 2600)
    loss_error, gradient_error = errors(scores, block, operation)
    assert loss_error <= LOSS_TOLERANCE
    assert gradient_error <= GRADIENT_TOLERANCE


@pytest.mark.parametrize("strange", [math.nan, math.inf])
@pytest.mark.parametrize("count", [1, 5, 40])
@pytest.mark.parametrize(
    "operation", [FusedForm("mean", "softplus"), FusedForm("log-sum", "tanh", 10.0)]
)
def test_a_score_that_is_no_number_is_seen_in_the_loss(operation, count, strange):
    generator = np.random.default_rng(0)
    positives, scores = choose(generator, count), gaussian(generator, 1)
    scores[0, positives[0][-1]] = strange
    values, _ = exact(scores, block_of(positives, N_ITEMS), operation)
    assert not torch.isfinite(values).any()


def test_tables_that_do_not_fit_the_block_are_refused():
    block = block_of([np.array([0])], N_ITEMS)
    with pytest.raises(ValueError, match="of the catalogue's 450 items, got 1 and 449"):
        catalog_row_values(
            torch.ones(1, 4),
            torch.ones(449, 4),
            block.lists,
            FusedForm("mean", "softplus"),
            scale=1.0,
        )


def test_values_do_not_depend_on_the_block():
    generator = np.random.default_rng(2)
    users = torch.nn.functional.normalize(
        torch.randn(6, 16, generator=torch.Generator().manual_seed(0)), dim=1
    )
    items = torch.nn.functional.normalize(
        torch.randn(N_ITEMS, 16, generator=torch.Generator().manual_seed(1)), dim=1
    )
    block = block_of(choose(generator, 1, 4, 20, 60, 9, 8), N_ITEMS)
    operation = FusedForm("log-sum", "tanh", 10.0)
    whole = catalog_row_values(users, items, block.lists, operation, scale=0.5)
    for part in (slice(0, 2), slice(2, 6)):
        piece = CatalogBlock(block.users[part], block.positives, block.pool)
        values = catalog_row_values(users[part], items, piece.lists, operation, scale=0.5)
        torch.testing.assert_close(values, whole[part], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", ["log-sum", "mean", "inside"])
def test_gradient_reaches_users_and_items(kind):
    generator = np.random.default_rng(3)
    block = block_of(choose(generator, 3, 30), N_ITEMS)
    start = [
        torch.nn.functional.normalize(
            torch.randn(n, 8, generator=torch.Generator().manual_seed(n)), dim=1
        )
        for n in (2, N_ITEMS)
    ]
    fused = [table.clone().requires_grad_() for table in start]
    plain = [table.double().requires_grad_() for table in start]
    factors = torch.tensor([0.3, 0.7], dtype=torch.float64)
    operation = FusedForm(kind, "softplus", 10.0)
    values = catalog_row_values(*fused, block.lists, operation, scale=0.5)
    (values * factors).sum().backward()
    each = all_pairs(plain[0] @ plain[1].T * 0.5, block, operation)
    (each * factors[block.pairs()[0]]).sum().backward()
    for ours, truth in zip(fused, plain, strict=True):
        torch.testing.assert_close(ours.grad.double(), truth.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["log-sum", "mean", "inside"])
@pytest.mark.parametrize("asking", [0, 1])
def test_a_table_that_asks_for_no_gradient_costs_none(kind, asking, monkeypatch):
    """A request of a new user paid for a gradient of all items, which stand still."""
    generator = np.random.default_rng(3)
    block = block_of(choose(generator, 3, 30), N_ITEMS)
    start = [
        torch.randn(n, 8, generator=torch.Generator().manual_seed(n)) / 8 for n in (2, N_ITEMS)
    ]
    operation = FusedForm(kind, "softplus", 10.0)
    both = [table.clone().requires_grad_() for table in start]
    catalog_row_values(*both, block.lists, operation, scale=0.5).sum().backward()
    alone = [table.clone().requires_grad_(number == asking) for number, table in enumerate(start)]
    values = catalog_row_values(*alone, block.lists, operation, scale=0.5)
    products = []
    for name in ("times", "transposed_times"):
        multiply = getattr(_catalog, name)

        def counted(*tables, multiply=multiply, **options):
            products.append(tables)
            return multiply(*tables, **options)

        monkeypatch.setattr(_catalog, name, counted)
    values.sum().backward()
    torch.testing.assert_close(alone[asking].grad, both[asking].grad)
    assert alone[1 - asking].grad is None
    assert len(products) == 1


def test_a_pass_without_a_graph_gives_what_the_graph_gives():
    generator = np.random.default_rng(4)
    catalog_pass = CatalogPass()
    # The second block is larger and the third smaller: memory is kept, never its contents.
    for n_users in (2, 5, 1):
        block = block_of(choose(generator, *range(3, 3 + n_users)), N_ITEMS)
        users = torch.randn(n_users, 8) / 8
        items = torch.randn(N_ITEMS, 8) / 8
        form = FusedForm("log-sum", "tanh", 10.0)
        catalog_pass.scores((users, items), scale=0.5)
        values = catalog_pass.values(block.lists, form)
        found = catalog_pass.gradients(users, items, 0.3 * 0.5)
        leaves = [users.clone().requires_grad_(), items.clone().requires_grad_()]
        expected = catalog_row_values(*leaves, block.lists, form, scale=0.5)
        (0.3 * expected.sum()).backward()
        torch.testing.assert_close(values, expected.detach())
        for ours, leaf in zip(found, leaves, strict=True):
            torch.testing.assert_close(ours, leaf.grad, rtol=1e-4, atol=1e-5)


def test_graphs_that_are_alive_at_once_do_not_share_memory():
    block = block_of([np.arange(3)], N_ITEMS)
    form = FusedForm("log-sum", "relu", 10.0)
    tables = [
        torch.randn(N_ITEMS, 8, generator=torch.Generator().manual_seed(n)) / 8 for n in (0, 1)
    ]
    users = torch.ones(1, 8) / 8

    def gradients(at_once):
        leaves = [table.clone().requires_grad_() for table in tables]
        found = []
        for leaf in leaves:
            found.append(catalog_row_values(users, leaf, block.lists, form, scale=0.5).sum())
            if not at_once:
                found.pop().backward()
        for value in found:
            value.backward()
        return [leaf.grad for leaf in leaves]

    for together, alone in zip(gradients(True), gradients(False), strict=True):
        assert torch.equal(together, alone)


WEIGHTED = [
    *(FusedForm("log-sum", surrogate, 10.0) for surrogate in SURROGATES),
    *(FusedForm("log-sum", surrogate, exponent_of(0.025)) for surrogate in SURROGATES),
    FusedForm("log-sum", "relu", 1.5),
    FusedForm("log-sum", "relu", exponent_of(0.15)),
    *(FusedForm("inside", surrogate, 10.0) for surrogate in ("tanh", "relu", "softplus")),
    FusedForm("inside", "atan", 1.0),
    FusedForm("mean", "softplus"),
]


def some_weights(block):
    n_pairs = len(block.pairs()[0])
    return torch.rand(n_pairs, generator=torch.Generator().manual_seed(6))


def assert_weighted_exact(scores, block, operation):
    weights = some_weights(block)
    inputs = torch.tensor(scores, dtype=torch.float32).double().requires_grad_()
    each = all_pairs(inputs, block, operation)
    (each * weights).sum().backward()
    slopes = torch.tensor(scores, dtype=torch.float32)
    values = weighted_row_gradients(slopes, block.lists, operation, weights)
    value_errors = (values - each.detach()).abs() / each.detach().abs().clamp_min(1.0)
    assert float(value_errors.max()) <= POSITIVE_TOLERANCE, operation
    sizes = inputs.grad.abs().amax(1).clamp_min(1e-30)
    slope_errors = (slopes - inputs.grad).abs().amax(1) / sizes
    assert float(slope_errors.max()) <= GRADIENT_TOLERANCE, operation


@each_shape
def test_weighted_positives_equal_all_pairs(shape, variant):
    for operation in WEIGHTED:
        assert_weighted_exact(*example(shape), operation)


def test_weighted_mean_equals_all_pairs_however_far_scores_lie_apart(variant):
    for stretch in (20.0, 1e4):
        for shape in (around_the_first_nodes, long_history_far_apart):
            assert_weighted_exact(*example(shape, stretch), FusedForm("mean", "softplus"))


def test_weights_of_one_change_nothing():
    for operation in WEIGHTED:
        for shape in (around_the_first_nodes, long_history_far_apart):
            scores, block = example(shape)
            expected, slopes = exact(scores, block, operation)
            owners, _ = block.pairs()
            weighted_slopes = torch.tensor(scores, dtype=torch.float32)
            ones = torch.ones(len(owners))
            values = weighted_row_gradients(weighted_slopes, block.lists, operation, ones)
            sums = torch.zeros_like(expected).index_add(0, owners, values)
            torch.testing.assert_close(sums, expected, rtol=1e-6, atol=1e-6)
            size = float(slopes.abs().max())
            torch.testing.assert_close(weighted_slopes.double(), slopes, rtol=0, atol=1e-6 * size)


def test_a_weight_for_each_positive_is_asked_for():
    block = block_of([np.array([0, 3])], N_ITEMS)
    with pytest.raises(ValueError, match=r"each of the block's 2 positives, got shape \(3,\)"):
        weighted_row_gradients(
            torch.zeros(1, N_ITEMS), block.lists, FusedForm("log-sum", "exp"), torch.ones(3)
        )


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_total_weights_are_those_of_the_rows(noise):
    generator = np.random.default_rng(1)
    positives = choose(generator, 10, 80, 5)
    false = [np.setdiff1d(generator.choice(N_ITEMS, 3), own) for own in positives[:2]] + [
        np.zeros(0, dtype=int)
    ]
    block = block_of(positives, N_ITEMS, false, noise=noise)
    expected = block.weights(torch.float64).sum(dim=1)
    torch.testing.assert_close(block.lists.total_weights(), expected)


@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("is_attached", [True, False])
@pytest.mark.parametrize("kind", ["log-sum", "inside"])
@pytest.mark.parametrize("surrogate", ["relu", "softplus"])
def test_gradient_of_weights_is_in_that_of_the_tables(kind, surrogate, is_attached, noise):
    generator = np.random.default_rng(3)
    positives = choose(generator, 3, 30, 1)
    false = [np.setdiff1d(generator.choice(N_ITEMS, 3), own) for own in positives]
    block = block_of(positives, N_ITEMS, false, noise=noise)
    start = [
        torch.nn.functional.normalize(
            torch.randn(n, 8, generator=torch.Generator().manual_seed(n)), dim=1
        )
        for n in (3, N_ITEMS)
    ]
    thresholds = torch.tensor([0.1, -0.2, 0.3])

    def weigh(scores, owners):
        if not is_attached:
            scores = scores.detach()
        return torch.sigmoid((scores - thresholds[owners].to(scores.dtype)) / 0.2)

    fused = [table.clone().requires_grad_() for table in start]
    plain = [table.double().requires_grad_() for table in start]
    operation = FusedForm(kind, surrogate, 10.0)
    weighting = PositiveWeighting(weigh, draws=1000)
    values = catalog_row_values(*fused, block.lists, operation, scale=0.5, weighting=weighting)
    factors = torch.tensor([0.3, 0.7, 0.5], dtype=torch.float64)
    (values * factors).sum().backward()

    owners, items = block.pairs()
    scores = plain[0] @ plain[1].T * 0.5
    shares = 1000 / block.weights(torch.float64).sum(dim=1)
    each = all_pairs(scores, block, operation) + shares.log()[owners]
    each = weigh(scores[owners, items], owners) * each
    (each * factors[owners]).sum().backward()
    expected = torch.zeros(3, dtype=torch.float64).index_add(0, owners, each.detach())
    torch.testing.assert_close(values.detach(), expected, rtol=1e-5, atol=1e-5)
    for ours, truth in zip(fused, plain, strict=True):
        torch.testing.assert_close(ours.grad.double(), truth.grad, rtol=1e-4, atol=1e-5)
