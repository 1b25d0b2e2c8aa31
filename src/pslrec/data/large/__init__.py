"""Logs that are larger than the memory: prepared piece by piece, kept as files, mapped to train on.

The result is that of `load`, `prepare` and a split, to the last row. Only the order of work differs:
the log is read twice, once for the ids and once for their row numbers, and sorted a range of users
at a time.
"""

from pslrec.data.large._cache import CachedDataset, cached_datasets, clean_cache
from pslrec.data.large._plan import Plan, can_be_out_of_core, is_large
from pslrec.data.large._preparing import prepared_dataset

__all__ = [
    "CachedDataset",
    "Plan",
    "cached_datasets",
    "can_be_out_of_core",
    "clean_cache",
    "is_large",
    "prepared_dataset",
]
