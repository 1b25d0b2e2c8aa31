"""The exact loss on divided items, item parts side by side in one process, against the compiled pass."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from pslrec.distributed import Group, Partition, Pending
from pslrec.forms import FusedForm
from pslrec.kernels import (
    IS_COMPILED,
    CatalogLists,
    TorchPass,
    divided_catalog_value,
    row_gradients,
    rows_of_candidates,
    torch_row_values,
)
from pslrec.kernels._native import native
from pslrec.rows import Rows

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="built without a compiler")

N_ITEMS = 150
# Up to more than the most nodes, and few enough to be nodes themselves.
HISTORIES = (1, 5, 8, 9, 20, 70, 100)


class Meeting:
    """Where threads that play processes put their tensors together."""

    def __init__(self, size: int) -> None:
        self._given: list[Any] = [None] * size
        self._barrier = threading.Barrier(size, timeout=20)

    def reduce(self, rank: int, tensor: Tensor, how: Callable[[list[Tensor]], Tensor]) -> None:
        self._given[rank] = tensor.clone()
        self._barrier.wait()
        found = how(self._given)
        self._barrier.wait()
        tensor.copy_(found)


class ThreadGroup(Group):
    def __init__(self, rank: int, size: int, meeting: Meeting) -> None:
        super().__init__(rank, size)
        self._meeting = meeting

    def start_sum(self, tensor: Tensor) -> Pending:
        self._count(tensor)
        self._meeting.reduce(self.rank, tensor, lambda all_of: torch.stack(all_of).sum(dim=0))
        return Pending()

    def maximum(self, tensor: Tensor) -> None:
        self._count(tensor)
        self._meeting.reduce(self.rank, tensor, lambda all_of: torch.stack(all_of).amax(dim=0))


def lists_of(*, noise: float = 0.0) -> CatalogLists:
    random = np.random.default_rng(1)
    histories = [random.choice(N_ITEMS, length, replace=False) for length in HISTORIES]
    positives = Rows.from_lists(histories)
    owners = np.arange(len(HISTORIES))
    if not noise:
        return CatalogLists(owners, positives, positives, N_ITEMS)
    others = [np.setdiff1d(np.arange(N_ITEMS), own)[:3] for own in histories]
    false_negatives = Rows.from_lists(others)
    taken = positives.merged(false_negatives)
    return CatalogLists(owners, positives, taken, N_ITEMS, false_negatives, noise)


def in_threads(size: int, work: Callable[[Group], Any]) -> list[Any]:
    """What a function returns on each rank."""
    meeting = Meeting(size)
    found: list[Any] = [None] * size

    def run(rank: int) -> None:
        found[rank] = work(ThreadGroup(rank, size, meeting))

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def divided(
    scores: Tensor,
    lists: CatalogLists,
    form: FusedForm,
    items: Partition,
    how: TorchPass = TorchPass(),  # noqa: B008
) -> tuple[list[Tensor], Tensor, Group]:
    """Values on each rank, the gradient in the scores, and the group of one rank.

    Users are the rows of the scores, and items the unit vectors, so that their products are the
    scores, and the gradient in a user is the one in its scores.
    """
    axes = torch.eye(N_ITEMS)

    def work(group: Group) -> tuple[Tensor, Tensor, Tensor, Group]:
        own = items.of(group.rank)
        columns = axes[own.start : own.stop]
        across = {"columns": own, "across": group, "how": how}
        found = divided_catalog_value(scores, columns, lists, form, scale=1.0, **across)
        return *found, group

    found = in_threads(len(items.cuts) - 1, work)
    slopes = torch.stack([each[1] for each in found]).sum(dim=0)
    by_item = torch.cat([each[2] for each in found])
    assert torch.allclose(by_item, slopes.T @ scores, rtol=1e-4, atol=1e-4)
    return [each[0] for each in found], slopes, found[0][3]


def assert_as_compiled(
    values: list[Tensor], slopes: Tensor, scores: Tensor, lists: CatalogLists, form: FusedForm
) -> None:
    expected_slopes = scores.clone()
    expected = row_gradients(expected_slopes, lists, form).sum()
    for value in values:
        assert float(value) == pytest.approx(float(expected), rel=1e-5, abs=1e-5)
    scale = float(expected_slopes.abs().max())
    assert torch.allclose(slopes / scale, expected_slopes / scale, atol=1e-5)


def half_cosines() -> Tensor:
    return torch.rand((len(HISTORIES), N_ITEMS), generator=torch.Generator().manual_seed(0)) - 0.5


FORMS = [
    FusedForm("log-sum", "exp", 10.0),
    FusedForm("log-sum", "relu", 7.0),
    FusedForm("log-sum", "relu", 200.0),
    FusedForm("log-sum", "relu", 7.5),
    FusedForm("log-sum", "tanh", 10.0),
    FusedForm("log-sum", "tanh", 200.0),
    FusedForm("log-sum", "atan", 40.0),
    FusedForm("log-sum", "softplus", 4.0),
    FusedForm("inside", "tanh", 4.0),
    FusedForm("inside", "relu", 1.0),
    FusedForm("inside", "softplus", 4.0),
    FusedForm("mean", "softplus"),
]


def scores_for(form: FusedForm) -> Tensor:
    # BPR is for inner products, which are not bounded.
    if form.kind == "mean":
        return 6.0 * half_cosines()
    return half_cosines()


both = pytest.mark.parametrize("compiled", [False, True], ids=["torch", "compiled"])


@both
@pytest.mark.parametrize("noise", [0.0, 0.2])
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_divided_items_give_what_the_compiled_pass_gives(
    form: FusedForm, noise: float, compiled: bool
) -> None:
    lists = lists_of(noise=noise)
    scores = scores_for(form)
    how = TorchPass(compiled=compiled)
    for size in (1, 3):
        values, slopes, _ = divided(scores, lists, form, Partition.even(N_ITEMS, size), how)
        assert_as_compiled(values, slopes, scores, lists, form)


@pytest.fixture
def portable_rows() -> Iterator[None]:
    native.use_instructions("portable")
    yield
    native.use_instructions("avx512")


@pytest.mark.usefixtures("portable_rows")
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_the_portable_loops_give_the_same(form: FusedForm) -> None:
    lists = lists_of(noise=0.2)
    scores = scores_for(form)
    items = Partition.even(N_ITEMS, 2)
    values, slopes, _ = divided(scores, lists, form, items, TorchPass(compiled=True))
    assert_as_compiled(values, slopes, scores, lists, form)


@both
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_process_may_have_no_items_and_all_cut_alike(form: FusedForm, compiled: bool) -> None:
    lists = lists_of()
    scores = scores_for(form)
    parts = Partition((0, 3, 3, N_ITEMS))
    # A user or two at a time, by the mean number of items and not by that of each process.
    how = TorchPass(budget=100 * N_ITEMS, compiled=compiled)
    values, slopes, _ = divided(scores, lists, form, parts, how)
    assert_as_compiled(values, slopes, scores, lists, form)


def test_nothing_of_the_size_of_the_scores_is_sent() -> None:
    _, _, group = divided(half_cosines(), lists_of(), FORMS[1], Partition.even(N_ITEMS, 3))
    n_pairs = sum(HISTORIES)
    n_users = len(HISTORIES)
    # The scores of the positives and the highest ones in single, k moments in double precision.
    assert group.n_bytes == 4 * n_pairs + 4 * n_users + 8 * n_users * 7
    assert group.n_collectives == 3


def test_the_positives_may_all_have_one_score() -> None:
    lists = lists_of()
    scores = half_cosines()
    scores[lists.positives.positions(lists.owners)] = 0.25
    form = FusedForm("log-sum", "tanh", 10.0)
    values, slopes, _ = divided(scores, lists, form, Partition.even(N_ITEMS, 2))
    assert_as_compiled(values, slopes, scores, lists, form)


@both
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_sampled_negatives_may_be_in_any_process(form: FusedForm, compiled: bool) -> None:
    n_rows = 6
    n_negatives = 20
    random = torch.Generator().manual_seed(3)
    scores = scores_for(form)[:n_rows, : n_negatives + 1]
    place = torch.randint(3, scores.shape, generator=random)
    # One row has nothing but its positive in the second process.
    place[0] = 0
    place[0, 0] = 1

    def work(group: Group) -> tuple[Tensor, Tensor]:
        is_here = place == group.rank
        rows = rows_of_candidates(scores.clone(), is_here, n_negatives, group, is_compiled=compiled)
        values = torch_row_values(rows, form, 1e-7)
        return values, rows.scores * (place == group.rank)

    found = in_threads(3, work)
    slopes = torch.stack([each[1] for each in found]).sum(dim=0)
    first = Rows.from_lists([[0]] * n_rows)
    lists = CatalogLists(np.arange(n_rows), first, first, n_negatives + 1)
    assert_as_compiled([each[0].sum() for each in found], slopes, scores, lists, form)
