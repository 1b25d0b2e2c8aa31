"""Workers for tests of several processes: forked from a process that has all imports behind it."""

import multiprocessing
import os
import socket
import sys
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import torch

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["pslrec.cli._main", "pslrec.experiment", "torch._dynamo"])

Work = Callable[..., Any]


def free_port() -> int:
    """A port of this machine that nobody listens at."""
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])


def _worker(
    work: Work, rank: int, size: int, port: int, out: str, arguments: tuple, timeout: float
) -> None:
    """What a worker does: join the group, work, and leave its result in a file."""
    os.environ |= {
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        # Processes that read one log keep what they prepare of it.
        "PSLREC_CACHE_DIR": f"{out}.cache",
    }
    errors = os.open(f"{out}.{rank}.err", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(errors, 2)
    torch.set_num_threads(1)
    from pslrec.distributed import process_group
    from pslrec.errors import PslrecError

    try:
        with process_group(timeout=timeout) as group:
            result = work(group, *arguments)
    except PslrecError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)
    torch.save(result, f"{out}.{rank}")


def start_together(
    work: Work, size: int, out: Path, *arguments: object, timeout: float = 60.0
) -> list[ForkServerProcess]:
    """Start a function of this repository in several processes at once."""
    port = free_port()
    workers = []
    for rank in range(size):
        given = (work, rank, size, port, str(out), arguments, timeout)
        worker = PROCESSES.Process(target=_worker, args=given)
        worker.start()
        workers.append(worker)
    return workers


def run_together(work: Work, size: int, out: Path, *arguments: object) -> list[Any]:
    """What the function returns on each rank; fails the test if a worker fails."""
    results = []
    for rank, worker in enumerate(start_together(work, size, out, *arguments)):
        worker.join(300)
        message = Path(f"{out}.{rank}.err").read_text()
        assert worker.exitcode == 0, f"rank {rank}: {message}"
    for rank in range(size):
        results.append(torch.load(f"{out}.{rank}", weights_only=False))
    return results
