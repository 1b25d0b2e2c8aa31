"""Work in a process of its own: memory that one contestant leaves behind is not there for the next."""

import json
import os
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable
from typing import Any

from benchmarks._data import REPOSITORY

# Of what a process that failed had to say.
KEPT_LINES = 200


def in_child(module: str, *arguments: object, report: Callable[[str], None] | None = None) -> Any:
    """What `python -m benchmarks.MODULE ARGUMENTS` prints, read as JSON.

    Args:
        module: its name within this package.
        arguments: of the command.
        report: is told every line that the process writes to standard error, while it works.
    """
    command = [sys.executable, "-m", f"benchmarks.{module}", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    said: deque[str] = deque(maxlen=KEPT_LINES)
    # Into a file, as nobody reads a pipe while the other one is read.
    with tempfile.TemporaryFile("w+") as printed:
        process = subprocess.Popen(
            command,
            env=environment,
            cwd=REPOSITORY,
            stdout=printed,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        # Closed when the process ends, and ended with us if we are interrupted.
        with process:
            assert process.stderr is not None
            for line in process.stderr:
                said.append(line)
                if report is not None and line.strip():
                    report(line.strip())
        if process.returncode:
            raise RuntimeError(f"`{' '.join(command[2:])}` failed:\n{''.join(said)}")
        printed.seek(0)
        return json.load(printed)
