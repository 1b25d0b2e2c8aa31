"""A model cannot be read in a process that was forked from one that has worked with a model.

Reading needs the threads of polars. A fork copies their locks and not the threads, so the new
process would wait for ever.
"""

import os

from pslrec.errors import PslrecError

# The process that was the first to work with a model; a forked one inherits it.
_first_process: int | None = None


def note_work() -> None:
    """Remember that this process has threads from now on."""
    global _first_process  # noqa: PLW0603 - a fact about the process
    if _first_process is None:
        _first_process = os.getpid()


def check_not_forked() -> None:
    """Raise where reading a model would never end."""
    if _first_process not in (None, os.getpid()):
        raise PslrecError(
            "a model cannot be read in a process that was forked from one that has fitted or "
            "loaded a model: start processes with "
            '`multiprocessing.get_context("spawn")`, for example '
            "`ProcessPoolExecutor(mp_context=...)`, or use joblib"
        )
