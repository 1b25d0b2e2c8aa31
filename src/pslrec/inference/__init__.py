"""A finished run becomes ranked lists, similar items, and vectors of people who were not there in training."""

from pslrec.inference._fold_in import FoldIn, StepPlan
from pslrec.inference._model import TrainedModel
from pslrec.inference._ranking import DEFAULT_MEMORY_BUDGET, TopItems, top_items
from pslrec.inference._run_files import ModelError, RunFiles, read_run
from pslrec.inference._starting_rows import StartingRows

__all__ = [
    "DEFAULT_MEMORY_BUDGET",
    "FoldIn",
    "ModelError",
    "RunFiles",
    "StartingRows",
    "StepPlan",
    "TopItems",
    "TrainedModel",
    "read_run",
    "top_items",
]
