"""`pslrec doctor`: what this installation has, and what it does without."""

import os
import platform

from rich.console import Console
from rich.table import Table

# Each extra with a module that only it installs.
EXTRAS = {"serve": "starlette", "ann": "faiss", "onnx": "onnx", "plots": "vl_convert"}


def doctor_command() -> None:
    """Show versions, devices, compiled kernels, threads, optional extras and where data is looked for."""
    import numpy
    import polars
    import scipy
    import torch

    from pslrec import __version__
    from pslrec.data import cache_directory
    from pslrec.kernels import (
        HAS_FASTER_PRODUCTS,
        IS_COMPILED,
        WHY_NOT_COMPILED,
        devices_here,
        instruction_set,
        openmp_threads,
    )

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    if IS_COMPILED:
        kernels = f"compiled, {instruction_set()} variant, {openmp_threads()} threads"
        exact_training = (
            "compiled row operations, and compiled Adam for MF; on a GPU the same algorithm in "
            "torch, in blocks of bounded memory"
        )
    else:
        kernels = (
            f"not compiled, the plain torch versions run instead (slower): {WHY_NOT_COMPILED}; "
            "install a C++ compiler and reinstall pslrec to get them"
        )
        exact_training = "the same algorithm in torch, in blocks of bounded memory"
    products = "torch's"
    if HAS_FASTER_PRODUCTS:
        products = "compiled, as torch's are slower on this processor"
    extras = []
    for extra, module in EXTRAS.items():
        extras.append(f"{extra}: {_is_installed(module)}")
    rows = {
        "pslrec": __version__,
        "python": platform.python_version(),
        "torch": f"{torch.__version__}, {torch.get_num_threads()} threads",
        "devices": _devices(devices_here()),
        "numpy, scipy, polars": f"{numpy.__version__}, {scipy.__version__}, {polars.__version__}",
        "kernels": kernels,
        "matrix products": products,
        "exact training": exact_training,
        "data sets": os.environ.get("PSLREC_DATA_DIR", "PSLREC_DATA_DIR is not set"),
        "cache": str(cache_directory()),
        "extras": ", ".join(extras),
    }
    for name, value in rows.items():
        table.add_row(name, value)
    Console().print(table)


def _devices(names: list[str]) -> str:
    import torch

    described = []
    for name in names:
        model = ""
        if name.startswith("cuda"):
            model = f" ({torch.cuda.get_device_name(name)})"
        described.append(name + model)
    return f"{', '.join(described)}; `--device auto` takes {names[0]}"


def _is_installed(module: str) -> str:
    from importlib.util import find_spec

    # Found without importing: a broken extra must not stop the doctor.
    return "yes" if find_spec(module) else "no"
