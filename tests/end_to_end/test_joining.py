"""Processes find each other in a store that remembers those who were killed, as torchrun's does."""

import os
import time
from collections.abc import Iterator
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest
import torch
import torch.distributed
from process_workers import PROCESSES

from pslrec.distributed import process_group
from pslrec.errors import PslrecError


def member(rank: int, size: int, port: int, place: str, stays: bool, timeout: float) -> None:
    """Join others, leave the sum of all in a file, and perhaps stay until killed."""
    os.environ |= {
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        # The store is held by somebody else, who outlives the workers.
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCHELASTIC_RESTART_COUNT": "0",
    }
    try:
        with process_group(timeout=timeout) as group:
            numbers = torch.tensor([float(rank + 1)])
            group.sum(numbers)
            Path(place).write_text(str(numbers.item()))
            if stays:
                time.sleep(600)
    except PslrecError as error:
        Path(place).write_text(str(error))


class Scene:
    """A store in this process, and members that meet in it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.store = torch.distributed.TCPStore(
            "127.0.0.1", 0, is_master=True, wait_for_workers=False
        )
        self._members: list[ForkServerProcess] = []

    def enter(
        self, rank: int, *, size: int = 2, stays: bool = False, timeout: float = 60.0
    ) -> tuple[ForkServerProcess, Path]:
        place = self._directory / f"{len(self._members)}.txt"
        given = (rank, size, self.store.port, str(place), stays, timeout)
        process = PROCESSES.Process(target=member, args=given)
        process.start()
        self._members.append(process)
        return process, place

    def kill(self, number: int) -> None:
        """End the member that entered as this one, at once, as `kill -9` does."""
        self._members[number].kill()
        self._members[number].join()

    def kill_all(self) -> None:
        for number in range(len(self._members)):
            self.kill(number)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    yield scene
    scene.kill_all()


def wait_until(condition: object) -> None:
    until = time.monotonic() + 60
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < until
        time.sleep(0.02)


def said(entered: tuple[ForkServerProcess, Path]) -> str:
    process, place = entered
    process.join(60)
    assert process.exitcode == 0
    return place.read_text()


def test_a_group_does_not_wait_for_the_one_that_was_killed_before_it(scene: Scene) -> None:
    old = [scene.enter(rank, stays=True) for rank in range(2)]
    for _, place in old:
        wait_until(place.exists)
    scene.kill_all()
    # The first process comes before the other, and finds nothing but what the dead have left.
    first = scene.enter(0)
    time.sleep(1.0)
    second = scene.enter(1)
    assert said(first) == said(second) == "3.0"


def test_a_worker_that_was_killed_before_it_was_answered_is_replaced(scene: Scene) -> None:
    scene.enter(1)
    # It has shown its number, and waits for an answer.
    wait_until(lambda: scene.store.num_keys() > 0)
    scene.kill_all()
    first = scene.enter(0)
    time.sleep(1.0)
    second = scene.enter(1)
    assert said(first) == said(second) == "3.0"


def test_a_first_process_that_was_killed_after_its_answer_is_replaced(scene: Scene) -> None:
    # Three processes are wanted, so the first one answers the second and waits for the third.
    scene.enter(0, size=3)
    second = scene.enter(1, size=3)
    # A greeting, its answer, and the word that it was read.
    wait_until(lambda: scene.store.num_keys() >= 3)
    scene.kill(0)
    first = scene.enter(0, size=3)
    third = scene.enter(2, size=3)
    assert said(first) == said(second) == said(third) == "6.0"


@pytest.mark.parametrize(("rank", "absent"), [(0, 1), (1, 0)])
def test_who_does_not_come_is_named(scene: Scene, rank: int, absent: int) -> None:
    message = said(scene.enter(rank, timeout=1.0))
    assert message.startswith(f"rank {absent} did not come within 1 s")
