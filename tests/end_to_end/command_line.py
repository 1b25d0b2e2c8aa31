"""The program as a person starts it, for tests: in this process, or in one of its own."""

import io
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple


class Outcome(NamedTuple):
    """What a command left: exit code, standard output and standard error."""

    code: int
    out: str
    err: str


Command = Callable[..., Outcome]


class Terminal(io.StringIO):
    """Text that is written to it as to a terminal."""

    def isatty(self) -> bool:
        return True


def start(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    """Start the program in a process of its own, with one thread, both streams piped unless told otherwise."""
    command = [sys.executable, "-c", "from pslrec.cli import main; main()", *map(str, arguments)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **options.pop("env", {})}
    return subprocess.Popen(command, text=True, env=environment, **{**streams, **options})
