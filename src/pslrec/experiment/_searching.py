"""Runs of a search: compared on validation data, and only the chosen one sees the test part."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pslrec.artifacts import ArtifactError, Model, RunDirectory, read_metrics
from pslrec.config import RunConfig
from pslrec.data import Dataset
from pslrec.errors import ConfigError
from pslrec.experiment._evaluating import evaluate_model, evaluate_on_validation
from pslrec.experiment._inputs import TrainingData, stored_config
from pslrec.experiment._memory import enough_memory
from pslrec.experiment._running import build_trainer, load_run_data
from pslrec.experiment._walking import with_walks
from pslrec.losses import LOSSES
from pslrec.training import Listener, Progress, TrainingDivergedError

VALIDATION_FILE = "validation.json"


def train_on_validation(
    config: RunConfig,
    *,
    out: Path,
    pause: Callable[[int], bool] | None = None,
    listeners: Sequence[Listener] = (),
) -> dict[str, Any]:
    """Start or resume the run in `out` and evaluate its best epoch so far on validation data.

    The test part stays sealed. A finished run is not trained again.

    Args:
        config: what to run; must have a validation part.
        out: run directory.
        pause: is called after each epoch with the number of epochs so far; if it returns true, the
            run is left to be resumed later.
        listeners: are called with every event of training.

    Returns:
        The content of `out/validation.json`: that of `metrics.json` without `test`, with
        `is_finished`, and with `failed` where training diverged.
    """
    config = config.resolved()
    for name in config.walks.open_weights:
        raise ConfigError(
            f"`{name}` must be a number here, as many runs are compared and each would choose its "
            "own; 0 leaves it out, or search it as any other setting"
        )
    with enough_memory(), RunDirectory(out, resume=True) as directory:
        # Another process of the same search may have finished it meanwhile.
        known = _read_validation(out)
        if known.get("is_finished"):
            return known
        data = load_run_data(config, directory)
        _check_validation(data.dataset)
        trainer = build_trainer(config, data, directory, listeners)
        try:
            progress = trainer.fit(pause=pause)
        except TrainingDivergedError as error:
            # The search goes on: settings that diverge are a result, too.
            found: dict[str, Any] = {"validation": {}, "failed": str(error), "is_finished": True}
        else:
            found = _evaluated(config, data, directory, progress)
        directory.write_metrics(found, VALIDATION_FILE)
        if found["is_finished"]:
            # Moments are most of a run's size, and a finished run does not need them.
            (out / "checkpoint.safetensors").unlink(missing_ok=True)
        return found


def _evaluated(
    config: RunConfig, data: TrainingData, directory: RunDirectory, progress: Progress
) -> dict[str, Any]:
    if not progress.best_epoch:
        # It was paused before the first validation, so there is no model yet.
        return {"validation": {}, "trained_epochs": progress.epoch, "is_finished": False}
    model = _model(config, data, directory)
    if progress.is_finished:
        model = with_walks(config, data, model, directory=directory).model
    found = evaluate_on_validation(config, data.dataset, model.scorer(), progress)
    # NaN compares as neither better nor worse, so such a run must not take part in the choice.
    if any(math.isnan(value) for value in found["validation"].values()):
        return {"validation": {}, "failed": "a metric is not a number", "is_finished": True}
    found["is_finished"] = progress.is_finished
    return found


def evaluate_chosen(path: Path) -> dict[str, Any]:
    """Evaluate the chosen run of a search on the test part, and write its `metrics.json`.

    Args:
        path: run directory of `train_on_validation`.

    Returns:
        The content of `metrics.json`.
    """
    with RunDirectory(path, resume=True) as directory:
        known = _read_validation(path)
        if not known.get("is_finished") or known.get("failed"):
            raise ConfigError(f"the run in {path} is not finished, so it cannot be chosen")
        config = stored_config(directory).resolved()
        data = load_run_data(config, directory)
        for name in ("trained_epochs", "best_epoch", "seconds_per_epoch"):
            if name not in known:
                raise ArtifactError(
                    f"{path / VALIDATION_FILE} must hold `{name}`; remove it and run the search "
                    "again"
                )
        n_epochs = known["trained_epochs"]
        progress = Progress(
            epoch=n_epochs,
            best_epoch=known["best_epoch"],
            total_seconds=known["seconds_per_epoch"] * n_epochs,
        )
        # Only now that the choice is made is the test part unsealed.
        model = _model(config, data, directory)
        metrics, _ = evaluate_model(config, data.dataset, model.scorer(), progress)
        directory.write_metrics(metrics)
        return metrics


def _read_validation(path: Path) -> dict[str, Any]:
    if not (path / VALIDATION_FILE).exists():
        return {}
    return read_metrics(path, VALIDATION_FILE)


def _model(config: RunConfig, data: TrainingData, directory: RunDirectory) -> Model:
    similarity = LOSSES[config.loss.name].similarity
    return directory.read_model(similarity, data.train.rows)


def _check_validation(dataset: Dataset) -> None:
    if dataset.validation is None or not len(dataset.validation):
        raise ConfigError(
            f"{dataset.name} has no validation part to choose on, and a search never chooses on "
            "the test part; set `data.validation` to fraction"
        )
