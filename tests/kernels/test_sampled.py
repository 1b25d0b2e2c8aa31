"""Scores of sampled candidates and their gradients, compiled both ways, against the plain twin."""

from collections.abc import Iterator

import pytest
import torch

from pslrec.kernels._native import IS_COMPILED, instruction_set, native, openmp_threads
from pslrec.kernels._sampled import runs_compiled, sampled_scores, sampled_scores_plainly

DIMENSIONS = (1, 3, 32, 63, 64, 65, 128, 200, 256)


@pytest.fixture(params=["avx512", "avx2", "portable"])
def variant(request: pytest.FixtureRequest) -> Iterator[str]:
    if not IS_COMPILED:
        pytest.skip("the kernels are not compiled here")
    native.use_instructions(request.param)
    yield request.param
    native.use_instructions("avx512")


def example(
    batch: int, n_items: int, width: int, dimension: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(batch * 1000 + dimension)
    return (
        torch.randn(batch, dimension, generator=random),
        torch.randn(n_items, dimension, generator=random),
        torch.randint(n_items, (batch, width), generator=random).int(),
    )


def value_and_gradients(
    users: torch.Tensor, items: torch.Tensor, candidates: torch.Tensor, scale: float
) -> list[torch.Tensor]:
    leaves = users.clone().requires_grad_(), items.clone().requires_grad_()
    scores = sampled_scores(*leaves, candidates, scale)
    weights = torch.linspace(-1, 1, scores.numel(), dtype=scores.dtype).reshape(scores.shape)
    return [scores.detach(), *torch.autograd.grad((weights * scores).sum(), leaves)]


def assert_equals_the_twin(
    users: torch.Tensor, items: torch.Tensor, candidates: torch.Tensor, scale: float
) -> None:
    assert runs_compiled(users)
    fused = value_and_gradients(users, items, candidates, scale)
    plain = value_and_gradients(users.double(), items.double(), candidates, scale)
    for ours, truth in zip(fused, plain, strict=True):
        torch.testing.assert_close(
            ours.double(), truth, rtol=1e-5, atol=1e-6 * (1 + float(truth.abs().max()))
        )


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("scale", [0.5, 1.0])
def test_every_dimension_equals_the_plain_twin(variant: str, dimension: int, scale: float) -> None:
    assert_equals_the_twin(*example(7, 30, 41, dimension), scale)


@pytest.mark.parametrize(
    ("batch", "n_items", "width"), [(1, 1, 1), (1, 5, 2), (2, 1, 9), (70, 3, 2), (3, 1000, 4)]
)
def test_ragged_shapes_equal_the_plain_twin(
    variant: str, batch: int, n_items: int, width: int
) -> None:
    assert_equals_the_twin(*example(batch, n_items, width, 6), 0.5)


@pytest.mark.parametrize("row", [-1, 30])
def test_candidates_outside_the_table_are_refused(row: int) -> None:
    users, items, candidates = example(7, 30, 41, 6)
    candidates[3, 5] = row
    with pytest.raises(IndexError, match=r"`candidates` must be rows of `items`, 0 to 29"):
        sampled_scores(users, items, candidates)


def test_items_that_are_no_candidate_have_gradient_zero(variant: str) -> None:
    users, items, _ = example(4, 10, 1, 64)
    candidates = torch.full((4, 6), 7, dtype=torch.int32)
    _, _, item_gradients = value_and_gradients(users, items, candidates, 1.0)
    assert torch.equal(item_gradients[torch.arange(10) != 7], torch.zeros(9, 64))
    assert item_gradients[7].abs().sum() > 0


@pytest.mark.parametrize("n_items", [17, 500, 3000])
def test_results_do_not_depend_on_threads(variant: str, n_items: int) -> None:
    # As many parts of the sort as threads, fewer, and one.
    arguments = example(33, n_items, 50, 64)
    before = torch.get_num_threads()
    found = []
    for threads in (1, 2, 3, 7):
        torch.set_num_threads(threads)
        assert openmp_threads() == threads
        found.append(value_and_gradients(*arguments, 0.5))
    torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(one, two) for one, two in zip(found[0], other, strict=True))


def test_tables_that_are_not_contiguous_are_understood(variant: str) -> None:
    users, items, candidates = example(5, 8, 6, 12)
    expected = sampled_scores_plainly(users[:, ::2], items[:, ::2], candidates)
    torch.testing.assert_close(sampled_scores(users[:, ::2], items[:, ::2], candidates), expected)


def test_shapes_that_do_not_fit_are_refused() -> None:
    users, items, candidates = example(5, 8, 6, 12)
    with pytest.raises(ValueError, match="do not fit each other"):
        sampled_scores(users[:4], items, candidates)
    with pytest.raises(ValueError, match="do not fit each other"):
        sampled_scores(users, items[:, :11], candidates)


def test_double_precision_runs_in_the_twin_and_passes_gradcheck() -> None:
    users, items, candidates = example(3, 5, 4, 2)
    assert not runs_compiled(users.double())
    leaves = users.double().requires_grad_(), items.double().requires_grad_()
    assert torch.autograd.gradcheck(
        lambda *tables: sampled_scores(*tables, candidates, 0.5), leaves
    )


def test_the_instruction_set_is_one_of_four() -> None:
    assert instruction_set() in {"avx512", "avx2", "portable", "none"}
    assert (instruction_set() == "none") == (not IS_COMPILED)
