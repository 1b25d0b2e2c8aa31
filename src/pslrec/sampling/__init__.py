"""From a `Dataset` to batches: which positives, and where their negatives come from."""

from pslrec.sampling._blocks import UserBlocks
from pslrec.sampling._noise import FalseNegatives, plant_false_negatives
from pslrec.sampling._pairs import PairBatch, PairBatches
from pslrec.sampling._rows import item_rows

__all__ = [
    "FalseNegatives",
    "PairBatch",
    "PairBatches",
    "UserBlocks",
    "item_rows",
    "plant_false_negatives",
]
