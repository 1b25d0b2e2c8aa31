from collections.abc import Iterator

import pytest
import torch

from pslrec.kernels import _top_k as module
from pslrec.kernels._native import native
from pslrec.kernels._top_k import HIDDEN, top_k, top_k_plainly


def by_sorting(scores: torch.Tensor, k: int) -> tuple[list[list[float]], list[list[int]]]:
    order = [
        sorted(range(len(row)), key=lambda column, row=row: (-row[column], column))[:k]
        for row in scores.tolist()
    ]
    return [
        [row[column] for column in columns]
        for row, columns in zip(scores.tolist(), order, strict=True)
    ], order


def score_tables() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(9, 333, generator=generator)
    hidden[torch.rand(9, 333, generator=generator) < 0.9] = HIDDEN
    hidden[0] = HIDDEN
    return {
        "random": torch.randn(7, 1001, generator=generator),
        "many ties": torch.randint(0, 5, (12, 700), generator=generator).float(),
        "all equal": torch.zeros(3, 65),
        "signed zeros": torch.tensor([[0.0, -0.0, 0.0, -0.0, 1.0] * 20]),
        # Groups in whole vectors, a rest of them, and a last round that reaches some alone.
        "wide": torch.randn(4, 4_321, generator=generator),
        "rising": torch.arange(2000.0).repeat(2, 1),
        "falling": -torch.arange(2000.0).repeat(2, 1),
        "mostly hidden": hidden,
        "with infinities": torch.tensor([[torch.inf, 1.0, -torch.inf, torch.inf]]),
        "narrow": torch.randn(5, 3, generator=generator),
        "no rows": torch.empty(0, 10),
    }


@pytest.fixture(params=["avx512", "avx2", "portable", "plain"])
def implementation(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    if request.param == "plain":
        monkeypatch.setattr(module, "_compiled", None)
        yield
        return
    if module._compiled is None:
        pytest.skip("pslrec was built without the compiled module")
    native.use_instructions(request.param)
    yield
    native.use_instructions("avx512")


@pytest.mark.usefixtures("implementation")
@pytest.mark.parametrize("name", list(score_tables()))
@pytest.mark.parametrize("k", [1, 2, 20, 32, 33, 100])
def test_top_k_equals_a_sort(name: str, k: int) -> None:
    scores = score_tables()[name]
    untouched = scores.clone()
    values, columns = top_k(scores, k)
    assert (values.tolist(), columns.tolist()) == by_sorting(scores, k)
    assert torch.equal(scores, untouched)


@pytest.mark.usefixtures("implementation")
@pytest.mark.parametrize("column", [0, 17, 70, 135, 4_300, 4_320])
def test_a_score_that_is_not_a_number_raises(column: int) -> None:
    scores = torch.randn(3, 4_321)
    scores[1, column] = torch.nan
    with pytest.raises(ValueError, match="not numbers"):
        top_k(scores, 5)


@pytest.mark.usefixtures("implementation")
def test_a_score_that_is_not_a_number_raises_where_others_are_equal() -> None:
    scores = torch.tensor([[torch.nan, 1.0, 0.0, 0.0, 0.0, 0.0]])
    with pytest.raises(ValueError, match="not numbers"):
        top_k(scores, 3)


@pytest.mark.usefixtures("implementation")
def test_rows_need_not_lie_side_by_side() -> None:
    scores = torch.randn(50, 8).T
    assert top_k(scores, 4)[1].tolist() == by_sorting(scores, 4)[1]


def test_other_types_take_the_plain_way() -> None:
    scores = torch.randn(4, 300, dtype=torch.float64)
    values, columns = top_k(scores, 10)
    assert values.dtype == torch.float64
    assert torch.equal(columns, top_k_plainly(scores, 10)[1])


@pytest.mark.parametrize(("scores", "k"), [(torch.ones(3), 1), (torch.ones(2, 2), 0)])
def test_wrong_arguments_raise(scores: torch.Tensor, k: int) -> None:
    with pytest.raises(ValueError, match="two dimensions"):
        top_k(scores, k)
