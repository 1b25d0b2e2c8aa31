"""`environment.json`: the versions and the machine that a run was made with."""

import os
import platform
from importlib.metadata import version

import torch

from pslrec import __version__
from pslrec.kernels import instruction_set

# Those whose versions may change numbers or files.
PACKAGES = ("torch", "numpy", "scipy", "polars", "safetensors")


def describe_environment() -> dict[str, str | int]:
    """Versions, processor and threads; nothing that names a machine or a person."""
    environment: dict[str, str | int] = {"pslrec": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        environment[name] = version(name)
    environment["system"] = f"{platform.system()} {platform.machine()}"
    environment["processor"] = _processor()
    # The system may not tell the number.
    environment["cores"] = os.cpu_count() or 0
    # Sums over another number of threads are added in another order and differ in the last digits.
    environment["threads"] = torch.get_num_threads()
    environment["kernels"] = instruction_set()
    return environment


def _processor() -> str:
    # On Linux, `platform.processor` gives the architecture at best.
    try:
        with open("/proc/cpuinfo") as file:  # noqa: PTH123 - not a path of ours
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor()
