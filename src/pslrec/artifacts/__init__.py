"""Run directories: the one reader and writer of everything that a run leaves behind."""

from pslrec.artifacts._format import FORMAT, ArtifactError, DirectoryInUseError, check_finished
from pslrec.artifacts._item_table import ITEM_TABLE_FILE, read_item_table, write_item_table
from pslrec.artifacts._log import Epoch, read_epochs
from pslrec.artifacts._metrics import check_format, read_metrics
from pslrec.artifacts._model import Model, trained_tables
from pslrec.artifacts._origins import check_parts, read_origins, write_origins
from pslrec.artifacts._reading import (
    MODEL_FILES,
    FinishedRun,
    RunRecord,
    flat_settings,
    read_record,
    read_run,
)
from pslrec.artifacts._run_directory import RunDirectory, RunStage
from pslrec.artifacts._walks import LARGEST_WEIGHT, WalkingScorer, Walks
from pslrec.files import read_tensors

__all__ = [
    "FORMAT",
    "ITEM_TABLE_FILE",
    "LARGEST_WEIGHT",
    "MODEL_FILES",
    "ArtifactError",
    "DirectoryInUseError",
    "Epoch",
    "FinishedRun",
    "Model",
    "RunDirectory",
    "RunRecord",
    "RunStage",
    "WalkingScorer",
    "Walks",
    "check_finished",
    "check_format",
    "check_parts",
    "flat_settings",
    "read_epochs",
    "read_item_table",
    "read_metrics",
    "read_origins",
    "read_record",
    "read_run",
    "read_tensors",
    "trained_tables",
    "write_item_table",
    "write_origins",
]
