"""The row operation on divided items, item parts side by side in one process, against the compiled pass."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from pslrec.distributed import Group, Partition, Pending
from pslrec.forms import FusedForm
from pslrec.kernels import IS_COMPILED, row_gradients
from pslrec.rows import Rows
from pslrec.sampling import CatalogBlock, NegativePool
from pslrec.training._shard_rows import ShardRows

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
        self._meeting.reduce(self.rank, tensor, lambda all_of: torch.stack(all_of).amax(dim=0))


def block(*, noise: float = 0.0) -> CatalogBlock:
    random = np.random.default_rng(1)
    lists = [random.choice(N_ITEMS, length, replace=False) for length in HISTORIES]
    positives = Rows.from_lists(lists)
    false_negatives = None
    taken = positives
    if noise:
        others = [np.setdiff1d(np.arange(N_ITEMS), own)[:3] for own in lists]
        false_negatives = Rows.from_lists(others)
        taken = positives.merged(false_negatives)
    pool = NegativePool(taken, N_ITEMS, false_negatives, noise)
    return CatalogBlock(torch.arange(len(HISTORIES)), positives, pool)


def divided(
    scores: Tensor, given: CatalogBlock, form: FusedForm, size: int, *, is_bounded: bool
) -> tuple[list[Tensor], Tensor, int]:
    """Values on each rank, slopes of all items side by side, and the bytes that one rank sent."""
    items = Partition.even(N_ITEMS, size)
    meeting = Meeting(size)
    found: list[Any] = [None] * size
    groups = [ThreadGroup(rank, size, meeting) for rank in range(size)]

    def work(rank: int) -> None:
        own = items.of(rank)
        owners, columns = given.pairs()
        is_here = (columns >= own.start) & (columns < own.stop)
        rows = ShardRows(
            scores=scores[:, own.start : own.stop].clone(),
            weights=given.weights(scores.dtype, own),
            totals=given.lists.total_weights(),
            owners=owners,
            columns=columns[is_here] - own.start,
            is_here=is_here,
            n_columns=N_ITEMS,
            group=groups[rank],
        )
        found[rank] = rows.values_and_slopes(form, is_bounded=is_bounded)

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    values = [each[0] for each in found]
    slopes = torch.cat([each[1] for each in found], dim=1)
    return values, slopes, groups[0].n_bytes


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


@pytest.mark.parametrize("noise", [0.0, 0.2])
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_divided_items_give_what_the_compiled_pass_gives(form: FusedForm, noise: float) -> None:
    given = block(noise=noise)
    scores = half_cosines()
    is_bounded = form.kind != "mean"
    if not is_bounded:
        scores = 6.0 * scores
    expected_slopes = scores.clone()
    expected = row_gradients(expected_slopes, given.lists, form)
    for size in (1, 3):
        values, slopes, _ = divided(scores, given, form, size, is_bounded=is_bounded)
        for each in values:
            assert torch.allclose(each, expected, rtol=1e-5, atol=1e-5)
        scale = float(expected_slopes.abs().max())
        assert torch.allclose(slopes / scale, expected_slopes / scale, atol=1e-5)


def test_nothing_of_the_size_of_the_scores_is_sent() -> None:
    given = block()
    _, _, n_bytes = divided(half_cosines(), given, FORMS[1], 3, is_bounded=True)
    n_pairs = sum(HISTORIES)
    n_users = len(HISTORIES)
    # The scores of the positives and k + 1 moments, in double precision.
    assert n_bytes == 8 * (n_pairs + n_users * 8)


def test_the_positives_may_all_have_one_score() -> None:
    given = block()
    scores = half_cosines()
    owners, items = given.pairs()
    scores[owners, items] = 0.25
    form = FusedForm("log-sum", "tanh", 10.0)
    expected_slopes = scores.clone()
    expected = row_gradients(expected_slopes, given.lists, form)
    values, slopes, _ = divided(scores, given, form, 2, is_bounded=True)
    assert torch.allclose(values[0], expected, rtol=1e-5)
    scale = float(expected_slopes.abs().max())
    assert torch.allclose(slopes / scale, expected_slopes / scale, atol=1e-5)
