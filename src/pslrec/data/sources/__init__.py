"""Published data sets, one file each. A file put here registers its source; nothing else has to name it."""

from importlib import import_module
from pkgutil import iter_modules

from pslrec.data.sources._locate import fetch, find, find_raw, find_split, read_source
from pslrec.data.sources.base import SOURCES, Source, Statistics

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["SOURCES", "Source", "Statistics", "fetch", "find", "find_raw", "find_split", "read_source"]
