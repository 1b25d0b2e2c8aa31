"""Batches, a backbone and a loss become a trained model."""

from pslrec.training._catalog_objective import CatalogObjective
from pslrec.training._checkpoint import Checkpoint, Progress
from pslrec.training._estimate import described_memory, memory_estimate
from pslrec.training._events import (
    BatchFinished,
    CheckpointSaved,
    EpochFinished,
    EstimateMade,
    Event,
    Listener,
    SettingsChosen,
    SettingsTried,
    TrainingStarted,
    TryAdvanced,
    TryStarted,
    WalksChosen,
    WalksTried,
)
from pslrec.training._keeping import Store
from pslrec.training._layout import Layout, tensors_from_first
from pslrec.training._objective import SampledObjective
from pslrec.training._operations import Kernels, Operation, operation_for
from pslrec.training._options import TrainingOptions
from pslrec.training._scores import scored_tables
from pslrec.training._steps import build_step
from pslrec.training._stopping import TrainingInterrupted
from pslrec.training._trainer import Trainer, TrainingDivergedError

__all__ = [
    "BatchFinished",
    "CatalogObjective",
    "Checkpoint",
    "CheckpointSaved",
    "EpochFinished",
    "EstimateMade",
    "Event",
    "Kernels",
    "Layout",
    "Listener",
    "Operation",
    "Progress",
    "SampledObjective",
    "SettingsChosen",
    "SettingsTried",
    "Store",
    "Trainer",
    "TrainingDivergedError",
    "TrainingInterrupted",
    "TrainingOptions",
    "TrainingStarted",
    "TryAdvanced",
    "TryStarted",
    "WalksChosen",
    "WalksTried",
    "build_step",
    "described_memory",
    "memory_estimate",
    "operation_for",
    "scored_tables",
    "tensors_from_first",
]
