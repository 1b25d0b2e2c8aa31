"""Starting a command in several processes, and joining them."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from pslrec.distributed import Group


def is_one_of_several() -> bool:
    """Whether torchrun has started this process as one of several.

    Without torch, which help pages do not wait for; `distributed.is_worker` says the same.
    """
    return "RANK" in os.environ and os.environ.get("WORLD_SIZE", "1") != "1"


def is_told_here() -> bool:
    """Whether this process says what all of them would say: the first one does."""
    return not is_one_of_several() or os.environ["RANK"] == "0"


def refuse_processes(processes: int | None, command: str) -> None:
    """Raise if a command of many runs was started in several processes.

    Args:
        processes: what was given as `--processes`.
        command: its name.
    """
    from pslrec.errors import ConfigError

    if processes is not None or is_one_of_several():
        raise ConfigError(
            f"`{command}` shares its runs among processes by `--workers N`, each run in one process; "
            "leave `--processes` and torchrun out"
        )


def is_restarted() -> bool:
    """Whether all processes were started again after one of them had failed."""
    if not is_one_of_several():
        return False
    from pslrec.distributed import was_restarted

    return was_restarted()


def start_workers(processes: int | None, *, threads: int | None, restarts: int = 0) -> None:
    """Run the command that was typed in several processes, and end as they end.

    Does nothing in a worker, and where one process is enough.

    Args:
        processes: how many were asked for.
        threads: of each process; `None` shares the processor among them.
        restarts: how often they start again after a failure; 0 where no checkpoint is written.
    """
    if processes is None or processes == 1 or is_one_of_several():
        return
    from pslrec.distributed import launch

    code = launch(sys.argv[1:], processes=processes, threads=threads, restarts=restarts)
    raise typer.Exit(code)


@contextmanager
def joined(timeout: float) -> Iterator["Group"]:
    """The group of this process.

    Args:
        timeout: seconds after which a process that does not answer is given up.
    """
    from pslrec.distributed import process_group

    with process_group(timeout=timeout) as group:
        yield group
