"""Run directories: what a run leaves behind, and how it is read again."""

from pslrec.artifacts.files import ArtifactError, read_tensors
from pslrec.artifacts.run_directory import DirectoryInUseError, RunDirectory, RunStage, check_format, model_tensors

__all__ = [
    "ArtifactError",
    "DirectoryInUseError",
    "RunDirectory",
    "RunStage",
    "check_format",
    "model_tensors",
    "read_tensors",
]
