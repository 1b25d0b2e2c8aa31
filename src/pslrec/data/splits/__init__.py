"""Dividing interactions into training, validation and test parts.

There is one file per rule, and each rule is a pure function of data and seed.
"""

from pslrec.data.splits._base import SPLITS, Split, check_fraction, divide, each_pair_once
from pslrec.data.splits._by_name import split_by_name
from pslrec.data.splits._validation import carve_validation, fraction_validation, paper_validation
from pslrec.data.splits.iid import iid_split
from pslrec.data.splits.leave_one_out import leave_one_out_split
from pslrec.data.splits.popularity import popularity_split
from pslrec.data.splits.temporal import temporal_split, temporal_split_per_user

__all__ = [
    "SPLITS",
    "Split",
    "carve_validation",
    "check_fraction",
    "divide",
    "each_pair_once",
    "fraction_validation",
    "iid_split",
    "leave_one_out_split",
    "paper_validation",
    "popularity_split",
    "split_by_name",
    "temporal_split",
    "temporal_split_per_user",
]
