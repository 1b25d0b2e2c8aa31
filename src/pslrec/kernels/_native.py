"""Whether the compiled module is there, decided once; every caller reads it from here."""

import os
from typing import Any

# torch first: its OpenMP runtime and the compiled module's have the same name, and the first one
# loaded serves both.
import torch

from pslrec.errors import ConfigError

VARIABLE = "PSLREC_KERNELS"


def _wants_plain() -> bool:
    """Whether the environment asks for the plain twins everywhere."""
    wanted = os.environ.get(VARIABLE) or "auto"
    if wanted not in ("auto", "plain"):
        raise ConfigError(
            f"the environment variable `{VARIABLE}` must be auto or plain, got {wanted!r}"
        )
    return wanted == "plain"


native: Any = None
WHY_NOT_COMPILED = ""
if _wants_plain():
    WHY_NOT_COMPILED = f"the environment variable {VARIABLE} is plain"
else:
    try:
        import pslrec._native

        native = pslrec._native
    except ImportError as error:  # installed without a compiler
        WHY_NOT_COMPILED = str(error)

IS_COMPILED: bool = native is not None


def openmp_threads() -> int:
    """Threads of a parallel loop: those of the compiled module, or torch's where there is none.

    >>> openmp_threads() >= 1
    True
    """
    if IS_COMPILED:
        return int(native.openmp_threads())
    return torch.get_num_threads()


def instruction_set() -> str:
    """Which variant of the compiled kernels this processor runs: `avx512`, `avx2` or `portable`.

    `none` where the compiled module is not there, or not wanted.
    """
    if not IS_COMPILED:
        return "none"
    return str(native.instruction_set())
