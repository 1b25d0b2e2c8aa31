"""Work functions for cells whose task is a `RunConfig`, or a baseline."""

import json
import time
from typing import Any, NamedTuple

import numpy as np
import torch

from pslrec.artifacts import read_metrics
from pslrec.baselines import BASELINES
from pslrec.config import RunConfig
from pslrec.data import Dataset, SealedInteractions, concatenate
from pslrec.errors import ConfigError
from pslrec.evaluation import EvaluationResult, Split, evaluate
from pslrec.experiment import load_training_data, run, train_on_validation
from pslrec.files import make_directory, read_json, write_tensors, write_text
from pslrec.studies._attempt import Attempt
from pslrec.training import TrainingDivergedError

METRICS_FILE = "metrics.json"
PER_USER = "per_user.safetensors"


class BaselineTask(NamedTuple):
    """A baseline to be fitted.

    Args:
        config: says which data, and how they are divided and evaluated.
        name: of the baseline.
        options: of its constructor.
    """

    config: RunConfig
    name: str
    options: dict[str, Any]


def train_cell(attempt: Attempt) -> dict[str, Any]:
    """Train and evaluate on validation; the test part stays sealed."""
    task: RunConfig | BaselineTask = attempt.cell.task
    if isinstance(task, BaselineTask):
        return _fitted(attempt, task, on_test=False)
    found = train_on_validation(
        task, out=attempt.directory, pause=attempt.pause, listeners=[attempt.listen]
    )
    if found.get("failed"):
        raise TrainingDivergedError(found["failed"])
    return found


def run_cell(attempt: Attempt) -> dict[str, Any]:
    """Make a whole run, with the test part, and keep the values of single users beside it."""
    task: RunConfig | BaselineTask = attempt.cell.task
    if isinstance(task, BaselineTask):
        return _fitted(attempt, task, on_test=True)
    directory = attempt.directory
    if (directory / METRICS_FILE).exists() and (directory / PER_USER).exists():
        # Somebody was stopped between the last file and the books.
        return read_metrics(directory)
    result = run(
        task, out=directory, resume=True, listeners=[attempt.listen, attempt.stop_when_due]
    )
    _keep_users(attempt, result.test)
    return result.metrics


def _keep_users(attempt: Attempt, result: EvaluationResult) -> None:
    """Write `per_user.safetensors`: rows of users, and every metric of each."""
    tensors = {"users": torch.from_numpy(result.users.copy()).long()}
    for name, values in result.per_user.items():
        tensors[name] = torch.from_numpy(values).float().contiguous()
    write_tensors(attempt.directory / PER_USER, tensors, {"protocol": result.protocol})


def _fitted(attempt: Attempt, task: BaselineTask, *, on_test: bool) -> dict[str, Any]:
    path = attempt.directory / METRICS_FILE
    if path.exists():
        return read_json(path)
    config, name, options = task
    dataset = load_training_data(config.resolved()).dataset
    if dataset.validation is None:
        raise ConfigError(
            f"{dataset.name} has no validation part to choose on; set `data.validation` to fraction"
        )
    began = time.perf_counter()
    fitted = BASELINES[name](**options).fit(dataset.train)
    seconds = time.perf_counter() - began

    def evaluated(part: Split, scorer: Any, data: Dataset) -> EvaluationResult:
        section = config.evaluation
        lengths = tuple(sorted({*section.k, 20}))
        return evaluate(scorer, data, split=part, k=lengths, protocol=section.protocol)

    found: dict[str, Any] = {
        "validation": evaluated("validation", fitted, dataset).metrics,
        "protocol": config.evaluation.protocol,
        "seconds_per_epoch": seconds,
        "trained_epochs": 1,
    }
    make_directory(attempt.directory)
    if on_test:
        if config.training.refit:
            whole = concatenate([dataset.train, dataset.validation])
            dataset = Dataset(whole, dataset.test, name=dataset.name)
            fitted = BASELINES[name](**options).fit(whole)
        assert isinstance(dataset.test, SealedInteractions)
        dataset.test.unseal("all settings are chosen")
        test = evaluated("test", fitted, dataset)
        _keep_users(attempt, test)
        found["test"] = test.metrics
    # Numbers of numpy, which JSON does not know, say what they are in Python.
    write_text(path, json.dumps(found, indent=1, default=np.generic.item) + "\n")
    return found
