"""A group of one process changes nothing, and ranges of rows cover everything once."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pslrec.distributed import Group, Partition, is_worker, process_group
from pslrec.distributed._failures import WAITING, Notes
from pslrec.distributed._joining import backend_for
from pslrec.errors import ConfigError


@given(st.lists(st.integers(0, 50), max_size=40), st.integers(1, 6))
def test_parts_cover_every_row_once(work: list[int], n_parts: int) -> None:
    for partition in (
        Partition.balanced(np.array(work, dtype=np.int64), n_parts),
        Partition.even(len(work), n_parts),
    ):
        rows = [row for part in range(n_parts) for row in partition.of(part)]
        assert rows == list(range(len(work)))
        assert len(partition) == len(work)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=60), st.integers(1, 4))
def test_no_part_has_more_than_its_share_and_one_row(work: list[int], n_parts: int) -> None:
    partition = Partition.balanced(np.array(work), n_parts)
    for part in range(n_parts):
        own = sum(work[row] for row in partition.of(part))
        assert own <= sum(work) / n_parts + max(work)


def test_a_single_process_is_left_alone() -> None:
    group = Group()
    numbers = torch.arange(3.0)
    group.sum(numbers)
    group.maximum(numbers)
    group.start_sum(numbers).wait()
    group.tensor_from(0, numbers)
    group.check_same("numbers", 3)
    assert torch.equal(numbers, torch.arange(3.0))
    assert group.whole(numbers, Partition.even(3, 1)) is numbers
    assert group.from_first("here") == "here"
    assert (group.n_bytes, group.n_collectives) == (0, 0)
    with process_group() as joined:
        assert joined.is_single
    assert not torch.distributed.is_initialized()


def test_torchrun_with_one_process_is_a_single_process(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}
    for name, value in names.items():
        monkeypatch.setenv(name, value)
    assert not is_worker()
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert is_worker()


def test_tensors_of_cards_go_by_nccl_and_others_by_gloo() -> None:
    assert backend_for(has_cards=False) == "gloo"
    assert backend_for(has_cards=True) == "cpu:gloo,cuda:nccl"


def test_a_timeout_that_is_no_time_is_refused() -> None:
    message = "`timeout` must be a number of seconds above 0, got 0"
    with pytest.raises(ConfigError, match=message), process_group(timeout=0):
        pass


class Shelf:
    """A store as torch has it, in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    def set(self, name: str, text: str) -> None:
        self.kept[name] = text

    def get(self, name: str) -> bytes:
        return self.kept[name].encode()

    def check(self, names: list[str]) -> bool:
        return all(name in self.kept for name in names)


@pytest.mark.parametrize(
    ("notes", "failure", "expected"),
    [
        ({1: "no space left"}, "Connection closed by peer", "rank 1 stopped: no space left"),
        ({2: WAITING}, "Timed out waiting 5000ms", "rank 1 did not answer within 5 s"),
        ({}, "Connection reset", "one of the ranks 1, 2 ended without a message"),
        ({1: WAITING, 2: WAITING}, "no route", "the processes lost each other: no route"),
    ],
)
def test_the_rank_to_blame_is_named(
    notes: dict[int, str], failure: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pslrec.distributed._failures.GRACE_SECONDS", 0.0)
    shelf = Shelf()
    for rank, text in notes.items():
        Notes(shelf, rank, 3).write(text)
    assert expected in Notes(shelf, 0, 3).explanation(RuntimeError(failure), 5.0)


def test_attempts_after_one_that_gave_up_know_it() -> None:
    shelf = Shelf()
    assert not Notes(shelf, 0, 2).is_hopeless
    Notes(shelf, 1, 2).give_up()
    assert Notes(shelf, 0, 2).is_hopeless
