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
    session = _session(store, rank, size, limit)
    own_store = torch.distributed.PrefixStore(session, store)  # type: ignore[attr-defined]
    try:
        torch.distributed.init_process_group(
            backend, store=own_store, rank=rank, world_size=size, timeout=limit
        )
    except RuntimeError as error:
        raise PeerError(
            f"the processes have met but cannot connect; one of them may have ended, or the "
            f"network between them be closed: {error}"
        ) from error
    return own_store


def _session(store: Any, rank: int, size: int, limit: timedelta) -> str:
    """A name that the processes of this group agree on, and none that was here before.

    torchrun's store remembers what workers wrote that have been killed since. A process that came
    first would read the addresses of the dead there, and wait for them. So every process shows a
    number that nobody had before, the first one answers it with the name, and goes on when all have
    said that they have read the answer. Numbers of the dead are answered, too, which nobody reads.
    """
    until = time.monotonic() + limit.total_seconds()
    if rank > 0:
        return _answered(store, rank, until, limit)
    session = uuid.uuid4().hex
    missing = list(range(1, size))
    while missing:
        missing = [other for other in missing if not _is_met(store, other, session)]
        if missing and time.monotonic() > until:
            raise _absent(missing[0], limit)
        if missing:
            time.sleep(MEETING_SECONDS)
    store.set(_beginning_of(session), "yes")
    return session


def _is_met(store: Any, rank: int, session: str) -> bool:
    """Answer the process of a rank; true when it has read the answer."""
    greeting = _greeting_of(rank)
    if not store.check([greeting]):
        return False
    number = store.get(greeting).decode()
    if store.check([_reading_of(session, number)]):
        return True
    # Again and again, as a first process that is dead by now may have answered before.
    store.set(_answer_to(number), session)
    return False


def _answered(store: Any, rank: int, until: float, limit: timedelta) -> str:
    """The name that the first process gives, once it has met all others."""
    number = uuid.uuid4().hex
    store.set(_greeting_of(rank), number)
    while time.monotonic() < until:
        if store.check([_answer_to(number)]):
            session = str(store.get(_answer_to(number)).decode())
            store.set(_reading_of(session, number), "yes")
            if store.check([_beginning_of(session)]):
                return session
        time.sleep(MEETING_SECONDS)
    raise _absent(0, limit)


def _greeting_of(rank: int) -> str:
    return f"pslrec/hello/{rank}"


def _answer_to(number: str) -> str:
    return f"pslrec/welcome/{number}"


def _reading_of(session: str, number: str) -> str:
    return f"pslrec/{session}/read/{number}"


def _beginning_of(session: str) -> str:
    return f"pslrec/{session}/begins"


def _absent(rank: int, limit: timedelta) -> PeerError:
    return PeerError(
        f"rank {rank} did not come within {limit.total_seconds():g} s; "
        "start all processes, or give more time with --timeout"
    )


def _let_others_read(rank: int) -> None:
    # torchrun keeps the notes in a process of its own; without it they go with the first rank.
    is_kept_elsewhere = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    if rank == 0 and not is_kept_elsewhere:
        time.sleep(GRACE_SECONDS)
