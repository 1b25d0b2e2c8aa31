"""Run directories: what a run leaves behind, and how it is read again."""

from pslrec.artifacts._origins import check_parts, origins_of, read_origins, write_origins
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
    "check_parts",
    "model_tensors",
    "origins_of",
    "read_log",
    "read_metrics",
    "read_origins",
    "read_tensors",
    "write_origins",
]
