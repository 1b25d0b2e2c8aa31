from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch.optim import Adam

from pslrec.kernels._adam import AdamRule, AdamTable
from pslrec.kernels._native import IS_COMPILED, native

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="built without a compiler")


@pytest.fixture(params=["avx512", "avx2", "portable"], autouse=True)
def _variant(request: pytest.FixtureRequest) -> Iterator[None]:
    native.use_instructions(request.param)
    yield
    native.use_instructions("avx512")


def dense_step(
    table: Tensor, optimizer: Adam, rows: Tensor, targets: Tensor, *, is_normalized: bool
) -> None:
    optimizer.zero_grad()
    vectors = functional.embedding(rows, table)
    vectors = functional.normalize(vectors, dim=1) if is_normalized else vectors
    ((vectors - targets.to(vectors.dtype)) ** 2).sum().backward()
    optimizer.step()


def lazy_step(table: AdamTable, rule: AdamRule, step: int, rows: Tensor, targets: Tensor) -> None:
    vectors = table.fetch(rows, rule, step).requires_grad_()
    ((vectors - targets) ** 2).sum().backward()
    assert vectors.grad is not None
    table.update(rows, vectors.grad, rule, step + 1)


@pytest.mark.parametrize("is_normalized", [False, True])
@pytest.mark.parametrize("weight_decay", [0.0, 1e-3])
@pytest.mark.parametrize("columns", [3, 20, 64])
def test_late_rows_equal_dense_adam_in_double_precision(
    is_normalized: bool, weight_decay: float, columns: int
) -> None:
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(120, columns, generator=generator) + 0.5
    exact = start.double().requires_grad_()
    optimizer = Adam([exact], lr=0.01, weight_decay=weight_decay)
    table, rule = (
        AdamTable(start.clone(), is_normalized=is_normalized),
        AdamRule(0.01, weight_decay),
    )
    for step in range(500):
        # Some rows are touched often, some after hundreds of steps, some never; some steps touch none.
        rows = torch.randperm(110, generator=generator)[: step % 3].sort().values
        targets = torch.randn(len(rows), columns, generator=generator)
        dense_step(exact, optimizer, rows, targets, is_normalized=is_normalized)
        lazy_step(table, rule, step, rows, targets)
    table.catch_up(rule, 500)
    assert (table.last_steps == 500).all()
    assert (exact.detach() - start).abs().mean() > 0.05
    torch.testing.assert_close(table.table.double(), exact.detach(), atol=5e-5, rtol=0)


def test_rows_caught_up_in_pieces_are_those_caught_up_at_once() -> None:
    start, rule, rows = (
        torch.randn(3, 40, generator=torch.Generator().manual_seed(1)),
        AdamRule(0.1),
        torch.arange(3),
    )
    once, pieces = (AdamTable(start.clone(), is_normalized=False) for _ in range(2))
    for table in (once, pieces):
        table.update(rows, torch.ones(3, 40), rule, 1)
    once.catch_up(rule, 400)
    for step in (2, 3, 30, 200, 400):
        pieces.catch_up(rule, step)
    torch.testing.assert_close(pieces.table, once.table, atol=1e-6, rtol=1e-6)


def test_all_rows_are_updated_and_their_directions_written() -> None:
    start = torch.randn(9, 7, generator=torch.Generator().manual_seed(2))
    table, out = AdamTable(start.clone(), is_normalized=True), torch.empty(9, 7)
    table.update_all(torch.ones(9, 7), AdamRule(0.1), 1, out=out)
    assert not torch.equal(table.table, start)
    torch.testing.assert_close(out, functional.normalize(table.table, dim=1))


LENGTHS = (1e-15, 1e-10, 1e-6, 1e-3, 0.1, 0.5, 0.999, 1.0, 3.0, 1e3, 1e10)


def rows_of_lengths(columns: int) -> Tensor:
    directions = functional.normalize(
        torch.randn(len(LENGTHS), columns, generator=torch.Generator().manual_seed(4)), dim=1
    )
    return directions * torch.tensor(LENGTHS).unsqueeze(1)


@pytest.mark.parametrize("columns", [1, 3, 8, 33, 64])
def test_rows_of_any_length_are_divided_by_it(columns: int) -> None:
    """Rows are shorter than 1 where training begins; only one of hardly any length is left short."""
    start = rows_of_lengths(columns)
    table, rule = AdamTable(start.clone(), is_normalized=True), AdamRule(0.1)
    found = table.fetch(torch.arange(len(start)), rule, 0)
    torch.testing.assert_close(found, functional.normalize(start, dim=1), rtol=1e-5, atol=1e-7)
    lengths = found.norm(dim=1)
    torch.testing.assert_close(lengths[1:], torch.ones(len(LENGTHS) - 1), rtol=1e-5, atol=0)


@pytest.mark.parametrize("columns", [3, 8, 33])
def test_a_gradient_reaches_rows_of_any_length_as_through_torch(columns: int) -> None:
    # Rows of nearly no length have gradients beyond any bound; Adam shows their signs, which are compared below.
    start = rows_of_lengths(columns)[3:-1]
    weights = torch.randn(start.shape, generator=torch.Generator().manual_seed(5))
    exact = start.double().requires_grad_()
    optimizer = Adam([exact], lr=1e-4)
    (functional.normalize(exact, dim=1) * weights).sum().backward()
    optimizer.step()
    table = AdamTable(start.clone(), is_normalized=True)
    table.fetch(torch.arange(len(start)), AdamRule(1e-4), 0)
    table.update(torch.arange(len(start)), weights.clone(), AdamRule(1e-4), 1)
    torch.testing.assert_close(table.table.double(), exact.detach(), rtol=1e-5, atol=1e-6)
    # The first mean is a tenth of the gradient, so it tells the scale that a first step hides.
    state = optimizer.state[exact]
    torch.testing.assert_close(table.first_moments.double(), state["exp_avg"], rtol=1e-3, atol=1e-6)


def test_a_gradient_reaches_a_row_of_zeros_as_through_torch() -> None:
    gradient = torch.tensor([[1.0, -2.0, 0.5]])
    exact = torch.zeros(1, 3, dtype=torch.float64, requires_grad=True)
    (functional.normalize(exact, dim=1) * gradient).sum().backward()
    assert exact.grad is not None
    table = AdamTable(torch.zeros(1, 3), is_normalized=True)
    table.update(torch.tensor([0]), gradient.clone(), AdamRule(1e-4), 1)
    torch.testing.assert_close(table.first_moments.double(), 0.1 * exact.grad, rtol=1e-5, atol=0)


def test_row_of_zeros_stays_finite() -> None:
    table, rule, rows = (
        AdamTable(torch.zeros(1, 5), is_normalized=True),
        AdamRule(0.1),
        torch.tensor([0]),
    )
    assert torch.equal(table.fetch(rows, rule, 0), torch.zeros(1, 5))
    table.update(rows, torch.zeros(1, 5), rule, 1)
    assert torch.isfinite(table.table).all()


def test_rows_outside_the_table_are_refused() -> None:
    table = AdamTable(torch.zeros(2, 3), is_normalized=False)
    with pytest.raises(IndexError, match="outside"):
        table.fetch(torch.tensor([2]), AdamRule(0.1), 0)
