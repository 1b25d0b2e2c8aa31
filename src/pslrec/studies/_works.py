"""Work functions for cells whose task is a `RunConfig`."""

from typing import Any

import torch

from pslrec.artifacts import read_metrics
from pslrec.config import RunConfig
from pslrec.evaluation import EvaluationResult
from pslrec.experiment import run, train_on_validation
from pslrec.files import write_tensors
from pslrec.studies._attempt import Attempt
from pslrec.training import TrainingDivergedError

PER_USER = "per_user.safetensors"


def train_cell(attempt: Attempt) -> dict[str, Any]:
    """Train and evaluate on validation; the test part stays sealed."""
    config: RunConfig = attempt.cell.task
    found = train_on_validation(
        config, out=attempt.directory, pause=attempt.pause, listeners=[attempt.listen]
    )
    if found.get("failed"):
        raise TrainingDivergedError(found["failed"])
    return found


def run_cell(attempt: Attempt) -> dict[str, Any]:
    """Make a whole run, with the test part, and keep the values of single users beside it."""
    config: RunConfig = attempt.cell.task
    directory = attempt.directory
    if (directory / "metrics.json").exists() and (directory / PER_USER).exists():
        # Somebody was stopped between the last file and the books.
        return read_metrics(directory)
    result = run(
        config, out=directory, resume=True, listeners=[attempt.listen, attempt.stop_when_due]
    )
    keep_users(attempt, result.test)
    return result.metrics


def keep_users(attempt: Attempt, result: EvaluationResult) -> None:
    """Write `per_user.safetensors`: rows of users, and every metric of each."""
    tensors = {"users": torch.from_numpy(result.users.copy()).long()}
    for name, values in result.per_user.items():
        tensors[name] = torch.from_numpy(values).float().contiguous()
    write_tensors(attempt.directory / PER_USER, tensors, {"protocol": result.protocol})
