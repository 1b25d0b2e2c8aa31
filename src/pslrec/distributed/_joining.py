"""Joining the group that torchrun started this process in."""

import os
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed
from torch.distributed.rendezvous import rendezvous

from pslrec.distributed._failures import GRACE_SECONDS, Notes, PeerError
from pslrec.distributed._group import Group
from pslrec.errors import ConfigError, PslrecError

# Seconds. The slowest thing that others wait for is the writing of a checkpoint.
DEFAULT_TIMEOUT = 600.0
# Seconds that connecting may take once all processes have met, and how often they meet again.
CONNECTION_SECONDS = 10.0
CONNECTION_ATTEMPTS = 5
# Seconds between two looks for a process that has not come yet.
MEETING_SECONDS = 0.02
# Of a worker that was started again although that could not help; the first attempt had it, too.
HOPELESS_CODE = 2
# What torchrun puts into the environment of its workers, and what others may put there by hand.
VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def is_worker() -> bool:
    """Whether torchrun, or something that acts like it, has started this process as one of several.

    >>> is_worker()
    False
    """
    has_all = all(name in os.environ for name in VARIABLES)
    return has_all and os.environ["WORLD_SIZE"] != "1"


def was_restarted() -> bool:
    """Whether the workers were started again after one of them had failed."""
    return is_worker() and os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0"


@contextmanager
def process_group(*, timeout: float = DEFAULT_TIMEOUT) -> Iterator[Group]:
    """The group of this process while it is entered; one of a single process outside of torchrun.

    Args:
        timeout: seconds after which a process that does not answer is given up.
    """
    if not 0 < timeout < float("inf"):
        raise ConfigError(f"`timeout` must be a number of seconds above 0, got {timeout}")
    if not is_worker():
        yield Group()
        return
    backend = backend_for(has_cards=torch.cuda.is_available())
    limit = timedelta(seconds=timeout)
    store, rank, size = next(rendezvous("env://", timeout=limit))
    if was_restarted() and Notes(store, rank, size).is_hopeless:
        # What was wrong has been said.
        sys.exit(HOPELESS_CODE)
    notes = Notes(_connected(backend, store, rank, size, limit), rank, size)
    try:
        yield Group(
            rank,
            size,
            notes=notes,
            timeout=timeout,
            local_rank=int(os.environ.get("LOCAL_RANK", rank)),
            local_size=int(os.environ.get("LOCAL_WORLD_SIZE", size)),
        )
    except PeerError:
        # The rank to blame has left a note of its own, or cannot.
        _let_others_read(rank)
        raise
    except BaseException as error:
        notes.write(str(error) or type(error).__name__)
        if isinstance(error, PslrecError):
            notes.give_up()
        _let_others_read(rank)
        raise
    else:
        # No process leaves while another still reads from it.
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()


def backend_for(*, has_cards: bool) -> str:
    """What moves tensors between processes, by the device that they are on.

    nccl moves those on graphics cards alone, and some are on the processor in any case: settings,
    metrics, what is agreed on in a step.

    >>> backend_for(has_cards=False)
    'gloo'
    """
    if has_cards:
        return "cpu:gloo,cuda:nccl"
    return "gloo"


def _connected(backend: str, store: Any, rank: int, size: int, limit: timedelta) -> Any:
    """Connect the processes.

    Returns:
        A part of the store that only this group writes to and reads from.
    """
    for attempt in range(CONNECTION_ATTEMPTS):
        session = _session(store, rank, size, limit)
        own_store = torch.distributed.PrefixStore(session, store)  # type: ignore[attr-defined]
        try:
            torch.distributed.init_process_group(
                backend,
                store=own_store,
                rank=rank,
                world_size=size,
                timeout=min(limit, timedelta(seconds=CONNECTION_SECONDS)),
            )
        except RuntimeError:
            # One of those that were greeted has gone meanwhile.
            if attempt == CONNECTION_ATTEMPTS - 1:
                raise
        else:
            break
    # What is long enough for connecting would be short for the steps of a training.
    torch.distributed.distributed_c10d._set_pg_timeout(limit)
    return own_store


def _session(store: Any, rank: int, size: int, limit: timedelta) -> str:
    """A name that the processes of this group agree on, and none that was here before.

    torchrun's store remembers what workers wrote that have been killed since. A process that came
    first would read the addresses of the dead there, and wait for them. So every process shows a
    number that nobody had before, and the first one answers those that it has not answered yet.
    """
    if rank > 0:
        number = uuid.uuid4().hex
        store.set(f"pslrec/hello/{rank}", number)
        store.wait([f"pslrec/welcome/{number}"], limit)
        return str(store.get(f"pslrec/welcome/{number}").decode())
    session = uuid.uuid4().hex
    until = time.monotonic() + limit.total_seconds()
    for other in range(1, size):
        number = store.get(f"pslrec/hello/{other}").decode()
        while store.check([f"pslrec/welcome/{number}"]):
            if time.monotonic() > until:
                raise PeerError(
                    f"rank {other} did not come within {limit.total_seconds():g} s; "
                    "start all processes, or give more time with --timeout"
                )
            time.sleep(MEETING_SECONDS)
            number = store.get(f"pslrec/hello/{other}").decode()
        store.set(f"pslrec/welcome/{number}", session)
    return session


def _let_others_read(rank: int) -> None:
    # torchrun keeps the notes in a process of its own; without it they go with the first rank.
    is_kept_elsewhere = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    if rank == 0 and not is_kept_elsewhere:
        time.sleep(GRACE_SECONDS)
