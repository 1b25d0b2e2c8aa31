"""Dividing interactions into training, validation and test parts.

There is one file per rule, and each rule is a pure function of data and seed.
"""

from pslrec.data.splits._base import (
    SPLITS,
    Split,
    check_fraction,
    check_parts,
    divide,
    each_pair_once,
    slices_of,
)
from pslrec.data.splits._by_name import split_by_name
from pslrec.data.splits._validation import (
    FRACTION,
    KEEPING_ITEMS,
    N_KEPT,
    ValidationRule,
    carve_validation,
    check_sizes,
    drawn_for_validation,
    fraction_validation,
    paper_validation,
)
from pslrec.data.splits.iid import TRAIN_FRACTION, drawn_for_test, iid_split
from pslrec.data.splits.leave_one_out import leave_one_out_split
from pslrec.data.splits.none import no_split
from pslrec.data.splits.popularity import popularity_split
from pslrec.data.splits.temporal import temporal_split, temporal_split_per_user

__all__ = [
    "FRACTION",
    "KEEPING_ITEMS",
    "N_KEPT",
    "SPLITS",
    "TRAIN_FRACTION",
    "Split",
    "ValidationRule",
    "carve_validation",
    "check_fraction",
    "check_parts",
    "check_sizes",
    "divide",
    "drawn_for_test",
    "drawn_for_validation",
    "each_pair_once",
    "fraction_validation",
    "iid_split",
    "leave_one_out_split",
    "no_split",
    "paper_validation",
    "popularity_split",
    "slices_of",
    "split_by_name",
    "temporal_split",
    "temporal_split_per_user",
]
