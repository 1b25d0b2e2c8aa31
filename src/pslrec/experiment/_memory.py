"""One message for every way in which a run can run out of memory."""

from collections.abc import Iterator
from contextlib import contextmanager

from pslrec.errors import PslrecError


class OutOfMemoryError(PslrecError, MemoryError):
    """A run needs more memory than there is."""


@contextmanager
def enough_memory() -> Iterator[None]:
    """Turn what libraries raise when memory is exhausted into one sentence."""
    try:
        yield
    except (MemoryError, RuntimeError) as failure:
        # Torch has no exception of its own for main memory.
        is_about_memory = isinstance(failure, MemoryError) or "allocate memory" in str(failure)
        # Our own errors already say what to do.
        if isinstance(failure, PslrecError) or not is_about_memory:
            raise
        raise OutOfMemoryError(
            "there is not enough memory for this run; choose a smaller `backbone.dimension`, "
            "fewer `sampling.negatives` or a smaller `sampling.batch_pairs`"
        ) from failure
