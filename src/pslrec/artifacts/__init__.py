"""Run directories: what a run leaves behind, and how it is read again."""

from pslrec.artifacts._records import ArtifactError, check_format, read_log, read_metrics
from pslrec.artifacts._run_directory import (
    DirectoryInUseError,
    RunDirectory,
    RunStage,
    model_tensors,
)
from pslrec.files import read_tensors

__all__ = [
    "ArtifactError",
    "DirectoryInUseError",
    "RunDirectory",
    "RunStage",
    "check_format",
    "model_tensors",
    "read_log",
    "read_metrics",
    "read_tensors",
]
