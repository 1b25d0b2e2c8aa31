"""Work in a process of its own: memory that one contestant leaves behind is not there for the next."""

import json
import os
import subprocess
import sys
from typing import Any

from benchmarks._data import REPOSITORY


def in_child(module: str, *arguments: object) -> Any:
    """What `python -m benchmarks.MODULE ARGUMENTS` prints, read as JSON."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    finished = subprocess.run(
        command, env=environment, cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    if finished.returncode:
        raise RuntimeError(f"`{' '.join(command[2:])}` failed:\n{finished.stderr}")
    return json.loads(finished.stdout)
