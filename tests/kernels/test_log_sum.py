"""The fused log-sum, compiled both ways, against its twin in double precision."""

from collections.abc import Iterator

import pytest
import torch

from pslrec.forms import FusedForm
from pslrec.kernels._log_sum import SURROGATES, log_sum_plainly, sampled_log_sum, takes_sampled
from pslrec.kernels._native import IS_COMPILED, native
from pslrec.losses import SURROGATES as LOSS_SURROGATES

TEMPERATURES = (0.005, 0.025, 0.05, 0.1, 0.25, 1.0)
DIMENSIONS = (1, 3, 32, 63, 64, 65, 128, 200, 256)
pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="the kernels are not compiled here")


@pytest.fixture(params=["avx512", "avx2", "portable"])
def variant(request: pytest.FixtureRequest) -> Iterator[str]:
    native.use_instructions(request.param)
    yield request.param
    native.use_instructions("avx512")


def unit_rows(n_rows: int, dimension: int, seed: int) -> torch.Tensor:
    table = torch.randn(n_rows, dimension, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.normalize(table, dim=1)


def row_of_scores(scores: list[float]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Vectors of one dimension whose products with the user's are exactly these scores."""
    candidates = torch.arange(len(scores), dtype=torch.int32).unsqueeze(0)
    return torch.ones(1, 1), torch.tensor(scores).unsqueeze(1), candidates


def fused_and_plain(
    users: torch.Tensor,
    items: torch.Tensor,
    candidates: torch.Tensor,
    *,
    surrogate: str,
    temperature: float,
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Value and both gradients of each, for row weights that are all different."""
    results = []
    for dtype in (torch.float32, torch.float64):
        leaves = users.to(dtype).requires_grad_(), items.to(dtype).requires_grad_()
        values = sampled_log_sum(
            *leaves, candidates, surrogate=surrogate, exponent=1 / temperature, scale=0.5
        )
        weights = torch.linspace(0.5, 1.5, len(values), dtype=dtype)
        gradients = torch.autograd.grad((weights * values).sum(), leaves)
        results.append([values.detach(), *gradients])
    return results[0], results[1]


def assert_close(
    fused: list[torch.Tensor], plain: list[torch.Tensor], *, temperature: float
) -> None:
    # A score in single precision is off by about 1e-7, which the exponent 1 / temperature multiplies.
    tolerance = 2e-6 + 3e-7 / temperature
    for ours, truth in zip(fused, plain, strict=True):
        torch.testing.assert_close(
            ours.double(), truth, rtol=tolerance, atol=tolerance * float(truth.abs().max())
        )


def test_the_surrogates_are_those_of_the_losses() -> None:
    assert set(SURROGATES) < set(LOSS_SURROGATES)
    differences = torch.linspace(-1, 1, 41, dtype=torch.float64)
    for name in SURROGATES:
        expected = torch.logsumexp(LOSS_SURROGATES[name]().log_value(differences) / 0.1, dim=0)
        scores = torch.cat([torch.zeros(1, dtype=torch.float64), differences]).unsqueeze(0)
        torch.testing.assert_close(
            log_sum_plainly(scores, surrogate=name, exponent=10.0)[0], expected
        )


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("surrogate", SURROGATES)
def test_every_dimension_equals_the_plain_twin(
    variant: str, surrogate: str, dimension: int
) -> None:
    users, items = unit_rows(5, dimension, seed=0), unit_rows(40, dimension, seed=1)
    candidates = torch.randint(40, (5, 30), generator=torch.Generator().manual_seed(2)).int()
    fused, plain = fused_and_plain(users, items, candidates, surrogate=surrogate, temperature=0.1)
    assert_close(fused, plain, temperature=0.1)


@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize("surrogate", SURROGATES)
def test_every_temperature_equals_the_plain_twin(
    variant: str, surrogate: str, temperature: float
) -> None:
    users, items = unit_rows(8, 16, seed=3), unit_rows(100, 16, seed=4)
    candidates = torch.randint(100, (8, 65), generator=torch.Generator().manual_seed(5)).int()
    fused, plain = fused_and_plain(
        users, items, candidates, surrogate=surrogate, temperature=temperature
    )
    assert_close(fused, plain, temperature=temperature)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("negatives", [1, 2, 7, 8, 9])
@pytest.mark.parametrize("surrogate", SURROGATES)
def test_small_batches_equal_the_plain_twin(
    variant: str, surrogate: str, negatives: int, batch: int
) -> None:
    users, items = (
        unit_rows(batch, 5, seed=6),
        unit_rows(3, 5, seed=7),
    )  # three items: candidates repeat
    candidates = torch.randint(
        3, (batch, 1 + negatives), generator=torch.Generator().manual_seed(8)
    ).int()
    fused, plain = fused_and_plain(users, items, candidates, surrogate=surrogate, temperature=0.05)
    assert_close(fused, plain, temperature=0.05)


CORNERS = (
    [0.5, -0.5],
    [-0.5, 0.5],
    [0.5, 0.5],
    [0.5, -0.5, -0.5, -0.5],
    [-0.5, 0.5, -0.5, 0.0],
    [0.5, -0.5, 0.5],
    [0.0, -0.5, 0.5],
)


@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize("surrogate", SURROGATES)
def test_corners_of_the_domain_are_finite_and_right(
    variant: str, surrogate: str, temperature: float
) -> None:
    for scores in CORNERS:
        results = []
        for dtype in (torch.float32, torch.float64):
            user, items, candidates = row_of_scores(scores)
            items = items.to(dtype).requires_grad_()
            value = sampled_log_sum(
                user.to(dtype),
                items,
                candidates,
                surrogate=surrogate,
                exponent=1 / temperature,
                scale=1.0,
            )
            results.append((value.detach(), torch.autograd.grad(value.sum(), items)[0]))
        (value, gradient), (true_value, true_gradient) = results
        assert torch.isfinite(value).all()
        assert torch.isfinite(gradient).all()
        torch.testing.assert_close(value.double(), true_value, rtol=1e-6, atol=1e-6 / temperature)
        # At a difference of -1 the ReLU is at its floor: both say that the gradient there is 0.
        scale = max(1.0, float(true_gradient.abs().max()))
        torch.testing.assert_close(gradient.double(), true_gradient, rtol=1e-3, atol=1e-4 * scale)


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_a_score_that_is_no_number_is_never_hidden(variant: str, surrogate: str) -> None:
    for bad in (float("nan"), float("inf"), -float("inf")):
        for column in (0, 1, 19):
            scores = torch.linspace(-0.5, 0.5, 20).tolist()
            scores[column] = bad
            users, items, candidates = row_of_scores(scores)
            value = sampled_log_sum(
                users, items, candidates, surrogate=surrogate, exponent=10.0, scale=1.0
            )
            assert torch.isnan(value).all()


def test_values_and_gradients_do_not_depend_on_threads(variant: str) -> None:
    users, items = unit_rows(37, 64, seed=9), unit_rows(50, 64, seed=10)
    candidates = torch.randint(50, (37, 101), generator=torch.Generator().manual_seed(11)).int()
    found = []
    before = torch.get_num_threads()
    for threads in (1, 2, 3, 5):
        torch.set_num_threads(threads)
        leaves = users.clone().requires_grad_(), items.clone().requires_grad_()
        values = sampled_log_sum(*leaves, candidates, surrogate="atan", exponent=20.0, scale=0.5)
        found.append((values.detach(), *torch.autograd.grad(values.sum(), leaves)))
    torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(one, two) for one, two in zip(found[0], other, strict=True))


def test_the_graph_can_be_walked_through_only_once() -> None:
    users = unit_rows(2, 4, seed=0).requires_grad_()
    candidates = torch.tensor([[0, 1], [1, 2]], dtype=torch.int32)
    value = sampled_log_sum(
        users, unit_rows(3, 4, seed=1), candidates, surrogate="exp", exponent=1.0, scale=0.5
    ).sum()
    value.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        value.backward()


def test_double_precision_and_unknown_surrogates_are_left_to_the_twin() -> None:
    assert takes_sampled(torch.zeros(1, 1), FusedForm("log-sum", "relu"))
    assert not takes_sampled(torch.zeros(1, 1, dtype=torch.float64), FusedForm("log-sum", "relu"))
    assert not takes_sampled(torch.zeros(1, 1), FusedForm("log-sum", "exp-exp"))
    assert not takes_sampled(torch.zeros(1, 1), FusedForm("inside", "relu"))


def test_it_works_whatever_the_default_dtype_is() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        users, items, candidates = row_of_scores([0.0, 0.0])
        values = sampled_log_sum(
            users.float(), items.float(), candidates, surrogate="relu", exponent=2.0, scale=1.0
        )
    finally:
        torch.set_default_dtype(torch.float32)
    assert values.dtype == torch.float32
    assert values.item() == 0.0
