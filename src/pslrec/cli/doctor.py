"""`pslrec doctor`: what this installation has, and what it does without."""

import os
import platform

from rich.console import Console
from rich.table import Table

EXTRAS = {"serve": "starlette", "ann": "faiss", "onnx": "onnx", "plots": "vl_convert"}


def doctor_command() -> None:
    """Report versions, the compiled kernels, threads, and where data is looked for."""
    import numpy
    import polars
    import scipy
    import torch

    from pslrec import __version__
    from pslrec.data import cache_directory
    from pslrec.kernels import IS_COMPILED, WHY_NOT_COMPILED, instruction_set, openmp_threads

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    kernels = f"compiled, {instruction_set()} variant, {openmp_threads()} threads"
    fallback = (
        f"not compiled, the plain torch versions run instead (slower): {WHY_NOT_COMPILED}; "
        "install a C++ compiler and reinstall pslrec to get them"
    )
    rows = {
        "pslrec": __version__,
        "python": platform.python_version(),
        "torch": f"{torch.__version__}, {torch.get_num_threads()} threads, {_devices(torch.cuda.is_available())}",
        "numpy, scipy, polars": f"{numpy.__version__}, {scipy.__version__}, {polars.__version__}",
        "kernels": kernels if IS_COMPILED else fallback,
        "exact training": _exact_training(IS_COMPILED),
        "data sets": os.environ.get("PSLREC_DATA_DIR", "PSLREC_DATA_DIR is not set"),
        "cache": str(cache_directory()),
        "extras": _extras(),
    }
    for name, value in rows.items():
        table.add_row(name, value)
    Console().print(table)


def _exact_training(is_compiled: bool) -> str:
    if is_compiled:
        return "compiled row operations; MF with compiled Adam; on a GPU the losses as they are written, in pieces"
    return "the losses as they are written, in pieces of bounded memory, as the kernels are not compiled"


def _devices(has_cuda: bool) -> str:
    return "CUDA available" if has_cuda else "CPU only"


def _extras() -> str:
    from importlib.util import find_spec

    return ", ".join(
        f"{extra}: {'yes' if find_spec(module) else 'no'}" for extra, module in EXTRAS.items()
    )
