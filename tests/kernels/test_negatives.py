"""Drawing by counter: the compiled draws are the plain ones, number for number."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from pslrec.kernels._native import IS_COMPILED, native
from pslrec.kernels._negatives import draw_negatives, draw_negatives_plainly
from pslrec.rows import Rows
from pslrec.sampling import NegativePool

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="the kernels are not compiled here")
KEY = 2**63 - 12345


@pytest.fixture(params=["avx512", "avx2", "portable"], autouse=True)
def variant(request: pytest.FixtureRequest) -> Iterator[str]:
    native.use_instructions(request.param)
    yield request.param
    native.use_instructions("avx512")


def rows(lists: list[list[int]]) -> Rows:
    return Rows.from_lists(lists)


def drawn(
    pool: NegativePool, pairs: torch.Tensor, users: torch.Tensor, count: int, key: int = KEY
) -> torch.Tensor:
    candidates = torch.full((len(pairs), 1 + count), -7, dtype=torch.int32)
    draw_negatives(candidates, users, key=key, pairs=pairs, **vars(pool))
    assert bool((candidates[:, 0] == -7).all())
    return candidates[:, 1:]


def plainly_drawn(
    pool: NegativePool, pairs: torch.Tensor, users: torch.Tensor, count: int, key: int = KEY
) -> torch.Tensor:
    return draw_negatives_plainly(users, count, key=key, pairs=pairs, **vars(pool))


def lists_of_many_lengths(n_items: int) -> list[list[int]]:
    """None, one at either end, all but one, and random ones on both sides of where walking turns to searching."""
    random = np.random.default_rng(0)
    lengths = [n for n in (1, 7, 255, 256, 257, 300) if n < n_items]
    chosen = [sorted(random.choice(n_items, size=n, replace=False).tolist()) for n in lengths]
    return [[], [0], [n_items - 1], list(range(n_items - 1)), list(range(1, n_items)), *chosen]


@pytest.mark.parametrize("n_items", [2, 3, 10, 1000, 40_988])
@pytest.mark.parametrize("count", [1, 8, 101])
def test_compiled_draws_equal_plain_ones(n_items: int, count: int) -> None:
    lists = lists_of_many_lengths(n_items)
    pool = NegativePool(rows(lists), n_items)
    users = torch.arange(len(lists), dtype=torch.int32).repeat(3)
    pairs = torch.arange(len(users)) * 1_000_003
    found = drawn(pool, pairs, users, count)
    assert torch.equal(found, plainly_drawn(pool, pairs, users, count, KEY))
    for user, items in zip(users.tolist(), found.tolist(), strict=True):
        assert not set(items) & set(lists[user])
        assert all(0 <= item < n_items for item in items)


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.5, 1.0])
def test_compiled_draws_equal_plain_ones_with_noise(noise: float) -> None:
    taken, false = rows([[1, 2, 3], [0, 4], []]), rows([[2, 3], [], [9]])
    pool = NegativePool(taken, 10, false, noise)
    users, pairs = torch.tensor([0, 1, 2, 0], dtype=torch.int32), torch.arange(4)
    found = drawn(pool, pairs, users, 400)
    assert torch.equal(found, plainly_drawn(pool, pairs, users, 400, KEY))
    is_false = (found[0] == 2) | (found[0] == 3)
    # Four standard deviations of a share of 400 draws.
    assert abs(float(is_false.double().mean()) - noise) <= 4 * (noise * (1 - noise) / 400) ** 0.5
    assert not bool(((found[1] == 0) | (found[1] == 4)).any())


def test_the_only_free_item_is_always_drawn() -> None:
    pool = NegativePool(rows([[0, 1, 3, 4]]), 5)
    found = drawn(pool, torch.arange(6), torch.zeros(6, dtype=torch.int32), 20)
    assert bool((found == 2).all())


def test_a_draw_depends_on_key_and_pair_alone() -> None:
    pool = NegativePool(rows([[5], [6], [7]]), 500)
    pairs, users = torch.tensor([11, 3, 8]), torch.tensor([2, 0, 1], dtype=torch.int32)
    together = drawn(pool, pairs, users, 40)
    for place in range(3):
        alone = drawn(pool, pairs[place : place + 1], users[place : place + 1], 40)
        assert torch.equal(alone[0], together[place])
    backwards = drawn(pool, pairs.flip(0), users.flip(0), 40)
    assert torch.equal(backwards.flip(0), together)
    assert torch.equal(drawn(pool, pairs, users, 7), together[:, :7])
    assert not torch.equal(drawn(pool, pairs + 1, users, 40), together)
    assert not torch.equal(drawn(pool, pairs, users, 40, key=KEY + 1), together)


def test_draws_do_not_depend_on_threads() -> None:
    pool = NegativePool(rows(lists_of_many_lengths(1000)), 1000)
    users = torch.arange(9, dtype=torch.int32).repeat(20)
    before = torch.get_num_threads()
    found = []
    for threads in (1, 2, 5):
        torch.set_num_threads(threads)
        found.append(drawn(pool, torch.arange(len(users)), users, 33))
    torch.set_num_threads(before)
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def test_keys_and_pairs_of_every_size_are_taken() -> None:
    pool = NegativePool(rows([[]]), 10)
    users = torch.zeros(1, dtype=torch.int32)
    for key in (0, 1, 2**32, 2**63 - 1):
        for pair in (0, 2**31, 2**62):
            pairs = torch.tensor([pair])
            assert torch.equal(
                drawn(pool, pairs, users, 5, key),
                plainly_drawn(pool, pairs, users, 5, key),
            )


@pytest.mark.parametrize(
    ("n_items", "count"), [(2, 1), (10, 3), (10, 9), (10, 25), (1000, 101), (3000, 1000)]
)
def test_compiled_distinct_draws_equal_plain_ones(n_items: int, count: int) -> None:
    lists = lists_of_many_lengths(n_items)
    pool = NegativePool(rows(lists), n_items, replacement=False)
    users = torch.arange(len(lists), dtype=torch.int32).repeat(2)
    pairs = torch.arange(len(users)) * 1_000_003
    found = drawn(pool, pairs, users, count)
    assert torch.equal(found, plainly_drawn(pool, pairs, users, count, KEY))
    for user, items in zip(users.tolist(), found.tolist(), strict=True):
        n_free = n_items - len(lists[user])
        assert not set(items) & set(lists[user])
        assert len(set(items)) == min(count, n_free)
        # Every item comes once before any comes again.
        counts = np.delete(np.bincount(items, minlength=n_items), lists[user])
        assert counts.max() - counts.min() <= 1


def test_distinct_draws_are_uniform() -> None:
    taken = [1, 4, 5, 11]
    pool = NegativePool(rows([taken]), 20, replacement=False)
    n_pairs, count = 20_000, 7
    found = drawn(pool, torch.arange(n_pairs), torch.zeros(n_pairs, dtype=torch.int32), count)
    counts = np.bincount(found.flatten().numpy(), minlength=20)
    assert not counts[taken].any()
    free = np.delete(counts, taken)
    expected, share = n_pairs * count / 16, count / 16
    # A subset holds an item or not, so counts vary less than independent draws; 15 degrees of freedom, p = 0.001.
    assert (((free - expected) ** 2) / (expected * (1 - share))).sum() * 15 / 16 < 37.7
    pairs_of_items = np.zeros((20, 20))
    for first in range(count):
        for second in range(first):
            np.add.at(pairs_of_items, (found[:, first].numpy(), found[:, second].numpy()), 1)
    together = (pairs_of_items + pairs_of_items.T)[np.triu_indices(20, 1)]
    together = together[together > 0]
    assert len(together) == 16 * 15 // 2
    # Any two items come together equally often: five standard deviations of a binomial.
    probability = share * (count - 1) / 15
    assert (
        np.abs(together - n_pairs * probability).max()
        < 5 * (n_pairs * probability * (1 - probability)) ** 0.5
    )


def test_distinct_draws_depend_on_key_and_pair_alone() -> None:
    pool = NegativePool(rows(lists_of_many_lengths(1000)), 1000, replacement=False)
    users = torch.arange(9, dtype=torch.int32).repeat(20)
    pairs = torch.arange(len(users)) + 77
    before = torch.get_num_threads()
    found = []
    for threads in (1, 2, 5):
        torch.set_num_threads(threads)
        found.append(drawn(pool, pairs, users, 33))
    torch.set_num_threads(before)
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])
    assert torch.equal(drawn(pool, pairs[5:6], users[5:6], 33)[0], found[0][5])
    assert not torch.equal(drawn(pool, pairs, users, 33, key=KEY + 1), found[0])


def test_distinct_draws_mix_false_negatives_in() -> None:
    pool = NegativePool(rows([[1, 2, 3]]), 500, rows([[2, 3]]), 0.3, replacement=False)
    users, pairs = torch.zeros(3, dtype=torch.int32), torch.arange(3)
    found = drawn(pool, pairs, users, 200)
    assert torch.equal(found, plainly_drawn(pool, pairs, users, 200, KEY))
    is_false = (found == 2) | (found == 3)
    assert abs(float(is_false.double().mean()) - 0.3) <= 4 * (0.3 * 0.7 / 600) ** 0.5
    for row, false in zip(found, is_false, strict=True):
        ordinary = row[~false]
        assert len(ordinary.unique()) == len(ordinary)
