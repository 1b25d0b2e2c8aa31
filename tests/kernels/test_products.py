"""Compiled products of dense matrices against torch's, and what they promise beside the numbers."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from pslrec.kernels import _products as products
from pslrec.kernels._native import IS_COMPILED, native

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="the kernels are not compiled here")

# Whole tiles, rests of rows and of items, more items than are laid out at once, more users than are
# gathered at once.
SHAPES = [(1, 1), (5, 63), (6, 64), (7, 65), (13, 129), (64, 1_201), (300, 97), (3, 9_001)]
DIMENSIONS = (16, 48, 64, 80, 256)
each_shape = pytest.mark.parametrize(("n_users", "n_items"), SHAPES)
each_dimension = pytest.mark.parametrize("dimension", DIMENSIONS)


@pytest.fixture(params=["avx512", "avx2", "portable"], autouse=True)
def _variant(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    native.use_instructions(request.param)
    monkeypatch.setattr(products, "HAS_FASTER_PRODUCTS", True)
    yield
    native.use_instructions("avx512")


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def assert_close(found: Tensor, expected: Tensor) -> None:
    # Sums of this many numbers, rounded in another order.
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-4)


@each_dimension
@each_shape
def test_scores_equal_torch(n_users: int, n_items: int, dimension: int) -> None:
    users = random(n_users, dimension)
    items = random(n_items, dimension, seed=1)
    expected = 0.5 * (users.double() @ items.double().T)
    out = torch.full((n_users, n_items), float("nan"))
    assert products.times_transposed(users, items, out=out, scale=0.5) is out
    assert_close(out, expected)
    products.times_transposed(users, items, out=out, scale=0.5, adds=True)
    assert_close(out, 2 * expected)


@each_dimension
@each_shape
def test_gradients_of_users_equal_torch(n_users: int, n_items: int, dimension: int) -> None:
    slopes = random(n_users, n_items)
    items = random(n_items, dimension, seed=1)
    out = torch.full((n_users, dimension), float("nan"))
    products.times(slopes, items, out=out, scale=0.1)
    assert_close(out, 0.1 * (slopes.double() @ items.double()))


@each_dimension
@each_shape
def test_gradients_of_items_equal_torch(n_users: int, n_items: int, dimension: int) -> None:
    slopes = random(n_users, n_items)
    users = random(n_users, dimension, seed=1)
    out = torch.full((n_items, dimension), float("nan"))
    products.transposed_times(slopes, users, out=out, scale=0.1)
    assert_close(out, 0.1 * (slopes.double().T @ users.double()))


@pytest.mark.parametrize("adds", [False, True])
def test_a_row_of_scores_is_the_same_alone_and_among_others(adds: bool) -> None:
    users = random(50, 64)
    items = random(1_501, 64, seed=1)
    start = random(50, 1_501, seed=2)
    options = {"scale": 0.3, "adds": adds}
    together = products.times_transposed(users, items, out=start.clone(), **options)
    for row in (0, 5, 6, 48, 49):
        one = slice(row, row + 1)
        alone = products.times_transposed(users[one], items, out=start[one].clone(), **options)
        assert torch.equal(alone[0], together[row])


def test_a_row_of_gradients_is_the_same_alone_and_among_others() -> None:
    # Sums over more items than are visited at once: later parts are added to earlier ones.
    slopes = random(13, 1_501)
    items = random(1_501, 64, seed=1)
    together = products.times(slopes, items, out=torch.empty(13, 64), scale=0.3)
    for row in (0, 6, 12):
        one = slice(row, row + 1)
        alone = products.times(slopes[one], items, out=torch.empty(1, 64), scale=0.3)
        assert torch.equal(alone[0], together[row])


def test_gradients_of_items_are_added_to_what_is_there() -> None:
    slopes = random(300, 97)
    users = random(300, 64, seed=1)
    start = random(97, 64, seed=2)
    found = products.transposed_times(slopes, users, out=start.clone(), scale=0.1, adds=True)
    assert_close(found, start.double() + 0.1 * (slopes.double().T @ users.double()))


@pytest.fixture
def _threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("_threads")
def test_the_number_of_threads_changes_no_bit() -> None:
    slopes = random(301, 1_501)
    users = random(301, 64, seed=1)
    items = random(1_501, 64, seed=2)
    start = random(301, 1_501, seed=3)
    found = []
    for threads in (1, 2, 3, 5):
        torch.set_num_threads(threads)
        found.append(
            (
                products.times_transposed(users, items, out=start.clone(), scale=0.3, adds=True),
                products.times(slopes, items, out=torch.empty(301, 64), scale=0.3),
                products.transposed_times(slopes, users, out=torch.empty(1_501, 64), scale=0.3),
            )
        )
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            assert torch.equal(one, other)


def test_not_a_number_spreads_no_further_than_its_row() -> None:
    users = random(8, 16)
    users[3, 5] = float("nan")
    scores = products.times_transposed(users, random(70, 16, seed=1), out=torch.empty(8, 70))
    is_lost = scores.isnan().any(1)
    assert is_lost.tolist() == [row == 3 for row in range(8)]
    assert scores[3].isnan().all()


@pytest.mark.parametrize(
    "users",
    [
        random(4, 17),
        random(4, 16).double(),
        random(16, 4).T,
    ],
    ids=["odd dimension", "double", "not contiguous"],
)
def test_what_the_compiled_products_do_not_take_goes_to_torch(
    users: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the compiled product was called")

    lanes = native.product_lanes()
    fake = type("Native", (), {"times_transposed": refuse, "product_lanes": lambda: lanes})
    monkeypatch.setattr(products, "native", fake)
    items = random(9, users.shape[1], seed=1).to(users.dtype)
    out = torch.empty(4, 9, dtype=users.dtype)
    found = products.times_transposed(users, items, out=out)
    assert_close(found, users.double() @ items.double().T)


def test_a_product_of_nothing_goes_to_torch() -> None:
    nobody = torch.empty(0, 16)
    items = random(5, 16)
    assert products.times_transposed(nobody, items, out=torch.empty(0, 5)).shape == (0, 5)
    out = torch.full((3, 16), 7.0)
    products.times(torch.empty(3, 0), nobody, out=out)
    assert (out == 0).all()


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="shapes of a product"):
        products.times_transposed(random(4, 16), random(5, 32), out=torch.empty(4, 5))
    with pytest.raises(ValueError, match="shapes of a product"):
        products.times(random(4, 5), random(6, 16), out=torch.empty(4, 16))
    with pytest.raises(ValueError, match="shapes of a product"):
        products.transposed_times(random(4, 5), random(3, 16), out=torch.empty(5, 16))
