"""What a run was made with."""

import os
import platform
from importlib.metadata import version

import torch

from pslrec import __version__
from pslrec.kernels import instruction_set

PACKAGES = ("torch", "numpy", "scipy", "polars", "safetensors")


def describe_environment() -> dict[str, str | int]:
    """Versions, processor and threads; nothing that names a machine or a person."""
    return {
        "pslrec": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count() or 0,
        "threads": torch.get_num_threads(),
        "kernels": instruction_set(),
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as file:  # noqa: PTH123 - not a path of ours
            names = [
                line.split(":", 1)[1].strip() for line in file if line.startswith("model name")
            ]
    except OSError:
        names = []
    return names[0] if names else platform.processor()
