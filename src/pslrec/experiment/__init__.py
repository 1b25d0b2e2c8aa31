"""The one place where a run is put together: configuration in, trained and evaluated model out."""

from pslrec.experiment._assembly import build_batches, build_model
from pslrec.experiment._auto import Choice
from pslrec.experiment._auto_rules import ruled_settings
from pslrec.experiment._evaluating import evaluate_run, is_selected_on_test
from pslrec.experiment._inputs import (
    TrainingData,
    load_dataset,
    load_training_data,
    with_validation,
)
from pslrec.experiment._running import (
    MemoryStore,
    RunResult,
    inherited_item_table,
    prepare_run,
    run,
)
from pslrec.experiment._saving import copy_run, finished_run, save_run
from pslrec.experiment._searching import VALIDATION_FILE, evaluate_chosen, train_on_validation
from pslrec.experiment._tuned_baseline import Try, TunedBaseline, tuned_baseline
from pslrec.experiment._walking import with_walks

__all__ = [
    "VALIDATION_FILE",
    "Choice",
    "MemoryStore",
    "RunResult",
    "TrainingData",
    "Try",
    "TunedBaseline",
    "build_batches",
    "build_model",
    "copy_run",
    "evaluate_chosen",
    "evaluate_run",
    "finished_run",
    "inherited_item_table",
    "is_selected_on_test",
    "load_dataset",
    "load_training_data",
    "prepare_run",
    "ruled_settings",
    "run",
    "save_run",
    "train_on_validation",
    "tuned_baseline",
    "with_validation",
    "with_walks",
]
