"""The one place where a run is put together: configuration in, trained and judged model out."""

from pslrec.experiment.assembly import build_batches, build_model, scored_vectors
from pslrec.experiment.inputs import TrainingData, load_dataset, load_training_data
from pslrec.experiment.judging import evaluate_run, is_selected_on_test
from pslrec.experiment.running import MemoryStore, RunResult, run
from pslrec.experiment.saving import copy_run, files_of, save_run
from pslrec.experiment.searching import judge_chosen, train_on_validation

__all__ = [
    "MemoryStore",
    "RunResult",
    "TrainingData",
    "build_batches",
    "build_model",
    "copy_run",
    "evaluate_run",
    "files_of",
    "is_selected_on_test",
    "judge_chosen",
    "load_dataset",
    "load_training_data",
    "run",
    "save_run",
    "scored_vectors",
    "train_on_validation",
]
