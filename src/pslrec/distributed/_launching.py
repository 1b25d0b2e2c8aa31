"""Starting workers on this machine, by torchrun's own agent."""

import os
import sys
import uuid
from collections.abc import Sequence

# How often the group is started again from its last checkpoint.
DEFAULT_RESTARTS = 3
# Seconds between two looks at the workers.
MONITOR_SECONDS = 0.1


def launch(
    arguments: Sequence[str],
    *,
    processes: int,
    threads: int | None = None,
    restarts: int = DEFAULT_RESTARTS,
) -> int:
    """Run `python -m pslrec` with these arguments in several processes, and wait for them.

    The same as `torchrun --standalone --nproc-per-node N --max-restarts R -m pslrec ...`.

    Args:
        arguments: of the program.
        processes: how many.
        threads: of each process; by default they share the processor.
        restarts: how often all of them are started again after one has failed.

    Returns:
        0, or the exit code of the process that failed first.
    """
    # Imported here, as no process that only trains needs them.
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    if threads is None:
        threads = max((os.cpu_count() or 1) // processes, 1)
    # Workers inherit it; without it torchrun takes one thread each, and says so.
    os.environ["OMP_NUM_THREADS"] = str(threads)
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=processes,
        run_id=str(uuid.uuid4()),
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=restarts,
        monitor_interval=MONITOR_SECONDS,
        start_method="spawn",
    )
    try:
        elastic_launch(config, sys.executable)("-m", "pslrec", *arguments)
    except SignalException as stop:
        # The workers were asked to stop as well, and have saved what they had.
        return 128 + int(stop.sigval)
    except ChildFailedError as error:
        _, failure = error.get_first_failure()
        # A signal has a negative code, which no shell knows.
        return abs(int(failure.exitcode)) or 1
    return 0
