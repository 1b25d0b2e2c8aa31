"""Published data sets, one file each.

A file that is put here registers its source; nothing else has to name it.
"""

from pslrec.data.sources._base import SOURCES, Source, Statistics
from pslrec.data.sources._locate import fetch, find, find_raw, find_split, read_source
from pslrec.registry import import_parts

import_parts(__name__, __path__)

__all__ = [
    "SOURCES",
    "Source",
    "Statistics",
    "fetch",
    "find",
    "find_raw",
    "find_split",
    "read_source",
]
