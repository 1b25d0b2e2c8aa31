"""Which rank is to blame when a collective fails: every rank leaves a note before it goes."""

import time
from typing import Any

from pslrec.errors import PslrecError

# A rank that was waiting writes this; any other text is the message of the rank that failed.
WAITING = "waiting"
# Ranks notice a failure one after the other; this long they wait for each other's notes.
GRACE_SECONDS = 3.0
# Set where starting again would not help: a wrong setting stays wrong.
HOPELESS = "pslrec/hopeless"


class PeerError(PslrecError):
    """Another process of the group stopped or does not answer."""


class Notes:
    """What each rank wrote down when it stopped, in the store of the process group.

    Args:
        store: that the group met at; it outlives a single worker.
        rank: of this process.
        size: number of processes.
    """

    def __init__(self, store: Any, rank: int, size: int) -> None:
        self._store = store
        self._rank = rank
        self._size = size

    def write(self, text: str) -> None:
        """Leave a note for the others; a rank that failed itself says why.

        Args:
            text: its message, or `WAITING`.
        """
        try:
            self._store.set(_key(self._rank), text)
        except RuntimeError:
            # The store went away with the process that held it; nobody can be told any more.
            return

    def give_up(self) -> None:
        """Tell those that are started in our place that it would end the same way."""
        try:
            self._of_all_attempts().set(HOPELESS, "yes")
        except RuntimeError:
            return

    @property
    def is_hopeless(self) -> bool:
        """Whether an earlier attempt gave up."""
        return bool(self._of_all_attempts().check([HOPELESS]))

    def _of_all_attempts(self) -> Any:
        # torchrun puts the number of the attempt before every name.
        return getattr(self._store, "underlying_store", self._store)

    def explanation(self, failure: Exception, timeout: float) -> str:
        """One sentence about what stopped this rank, naming the rank to blame.

        Args:
            failure: what the collective raised.
            timeout: seconds that a rank waits for the others.
        """
        self.write(WAITING)
        others = [rank for rank in range(self._size) if rank != self._rank]
        until = time.monotonic() + GRACE_SECONDS
        while True:
            notes = self._read(others)
            is_complete = len(notes) == len(others)
            is_known = any(text != WAITING for text in notes.values())
            if is_complete or is_known or time.monotonic() > until:
                break
            time.sleep(0.05)
        for rank, text in notes.items():
            if text != WAITING:
                return f"rank {rank} stopped: {text}"
        silent = [rank for rank in others if rank not in notes]
        if not silent:
            return f"the processes lost each other: {failure}"
        named = _named(silent)
        if "timed out" in str(failure).lower():
            return (
                f"{named} did not answer within {timeout:g} s and is taken to hang; "
                "resume from the last checkpoint, or give more time with --timeout"
            )
        return f"{named} ended without a message, as a process does that is killed"

    def _read(self, ranks: list[int]) -> dict[int, str]:
        found: dict[int, str] = {}
        for rank in ranks:
            try:
                if self._store.check([_key(rank)]):
                    found[rank] = self._store.get(_key(rank)).decode()
            except RuntimeError:
                return found
        return found


def _key(rank: int) -> str:
    return f"pslrec/stopped/{rank}"


def _named(ranks: list[int]) -> str:
    listed = ", ".join(str(rank) for rank in ranks)
    if len(ranks) == 1:
        return f"rank {listed}"
    return f"one of the ranks {listed}"
