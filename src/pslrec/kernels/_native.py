"""Whether the compiled module is there, decided once; every caller reads it from here."""

from typing import Any

# torch first: its OpenMP runtime and the compiled module's have the same name, and the first one loaded serves both.
import torch

native: Any
try:
    import pslrec._native

    native = pslrec._native
    WHY_NOT_COMPILED = ""
except ImportError as error:  # installed without a compiler
    native = None
    WHY_NOT_COMPILED = str(error)

IS_COMPILED: bool = native is not None


def openmp_threads() -> int:
    """Threads of a parallel loop: those of the compiled module, or torch's where there is none.

    >>> openmp_threads() >= 1
    True
    """
    return int(native.openmp_threads()) if IS_COMPILED else torch.get_num_threads()


def instruction_set() -> str:
    """Which variant of the compiled kernels this processor runs: `avx2`, `portable`, or `none` where they are not built."""
    if not IS_COMPILED:
        return "none"
    return "avx2" if native.cpu_has_avx2() else "portable"
