"""What a measurement was made on: processor, memory, versions and load; nothing that names the machine or its owner."""

import os
import platform
import resource
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = (
    "pslrec",
    "torch",
    "numpy",
    "scipy",
    "polars",
    "pandas",
    "pyarrow",
    "implicit",
    "irspack",
)
BYTES_PER_GIGABYTE = 1e9


def describe_machine() -> dict[str, object]:
    """Processor, usable cores, memory, system and versions."""
    return {
        "processor": _processor(),
        "cores": usable_cores(),
        "memory_gb": round(memory_bytes() / BYTES_PER_GIGABYTE, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
    }


def usable_cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def load() -> list[float]:
    """Processes that wanted a core, on average over the last 1, 5 and 15 minutes; above the cores, timings are disturbed."""
    return [round(value, 2) for value in os.getloadavg()] if hasattr(os, "getloadavg") else []


def peak_memory() -> int:
    """The most bytes of memory that this process has held at once."""
    status = Path("/proc/self/status")
    if status.exists():
        # getrusage of a child counts what its parent held when it started the child; the kernel's high-water mark does not.
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        if "VmHWM" in lines:
            return int(lines["VmHWM"].split()[0]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def memory_bytes() -> int:
    """Memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
