"""The first stage: a file becomes `Interactions`, and a split turns these into a `Dataset`."""

from pslrec.data._columns import Columns, role_of
from pslrec.data._dataset import Dataset
from pslrec.data._description import Description, describe
from pslrec.data._download import cache_directory
from pslrec.data._exchangeability import (
    Measure,
    PartCheck,
    check_exchangeability,
    exchangeability_record,
)
from pslrec.data._given_ids import FoundRows, find_rows
from pslrec.data._id_files import read_ids, write_ids
from pslrec.data._interactions import Interactions, concatenate
from pslrec.data._leaks import in_both, merge_repetitions
from pslrec.data._loading import is_name, load, load_interactions
from pslrec.data._preparation import (
    Preparation,
    disliked_pairs,
    prepare,
    warn_of_low_ratings,
)
from pslrec.data._published import read_published
from pslrec.data._reading import read_interactions
from pslrec.data._sealing import SealedInteractions
from pslrec.data._synthetic import planted_tastes
from pslrec.data._vocabulary import Vocabulary, cast_ids
from pslrec.data._writing import (
    check_new_directory,
    check_new_file,
    write_dataset,
    write_interactions,
)

__all__ = [
    "Columns",
    "Dataset",
    "Description",
    "FoundRows",
    "Interactions",
    "Measure",
    "PartCheck",
    "Preparation",
    "SealedInteractions",
    "Vocabulary",
    "cache_directory",
    "cast_ids",
    "check_exchangeability",
    "check_new_directory",
    "check_new_file",
    "concatenate",
    "describe",
    "disliked_pairs",
    "exchangeability_record",
    "find_rows",
    "in_both",
    "is_name",
    "load",
    "load_interactions",
    "merge_repetitions",
    "planted_tastes",
    "prepare",
    "read_ids",
    "read_interactions",
    "read_published",
    "role_of",
    "warn_of_low_ratings",
    "write_dataset",
    "write_ids",
    "write_interactions",
]
