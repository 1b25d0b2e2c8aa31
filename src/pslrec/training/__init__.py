"""Batches, a backbone and a loss become a trained model."""

from pslrec.training.checkpoint import Checkpoint, Progress
from pslrec.training.keeping import Store
from pslrec.training.objective import SampledObjective, scored_tables
from pslrec.training.options import TrainingOptions
from pslrec.training.stopping import TrainingInterrupted
from pslrec.training.trainer import Trainer, TrainingDivergedError

__all__ = [
    "Checkpoint",
    "Progress",
    "SampledObjective",
    "Store",
    "Trainer",
    "TrainingDivergedError",
    "TrainingInterrupted",
    "TrainingOptions",
    "scored_tables",
]
