"""The command line: one file per command, each a thin caller of the library.

Only this package prints.
"""

from pslrec.cli._main import main

__all__ = ["main"]
