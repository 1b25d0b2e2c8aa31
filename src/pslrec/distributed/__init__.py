"""Several processes as one: their group, who holds which rows, and how they are started.

Everything is neutral where there is one process: it has rank 0 of 1, sums are what they were, and
nothing of `torch.distributed` is touched.
"""

from pslrec.distributed._failures import PeerError
from pslrec.distributed._group import Group, Pending
from pslrec.distributed._joining import (
    DEFAULT_TIMEOUT,
    is_worker,
    process_group,
    was_restarted,
)
from pslrec.distributed._launching import DEFAULT_RESTARTS, launch
from pslrec.distributed._partition import Partition

__all__ = [
    "DEFAULT_RESTARTS",
    "DEFAULT_TIMEOUT",
    "Group",
    "Partition",
    "PeerError",
    "Pending",
    "is_worker",
    "launch",
    "process_group",
    "was_restarted",
]
