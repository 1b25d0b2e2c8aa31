"""From a `Dataset` to batches: which positives, and where their negatives come from."""

from pslrec.sampling._blocks import UserBlocks
from pslrec.sampling._catalog_block import CatalogBlock, ReducedBlock
from pslrec.sampling._hiding import DividedHistories, Hiding
from pslrec.sampling._noise import FalseNegatives, plant_false_negatives
from pslrec.sampling._pairs import PairBatch, PairBatches
from pslrec.sampling._pool import NegativePool

__all__ = [
    "CatalogBlock",
    "DividedHistories",
    "FalseNegatives",
    "Hiding",
    "NegativePool",
    "PairBatch",
    "PairBatches",
    "ReducedBlock",
    "UserBlocks",
    "plant_false_negatives",
]
