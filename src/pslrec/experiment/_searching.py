"""Runs of a search: judged on validation alone, the test part opened for the one that was chosen."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pslrec.artifacts import ArtifactError, RunDirectory, read_metrics
from pslrec.config import RunConfig
from pslrec.data import Dataset
from pslrec.errors import ConfigError
from pslrec.evaluation import EmbeddingScorer
from pslrec.experiment._assembly import scored_vectors
from pslrec.experiment._judging import judge, judge_on_validation
from pslrec.experiment._memory import enough_memory
from pslrec.experiment._running import begun_data, build_trainer
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
    """Begin or go on with the run in `out`, and judge its best epoch so far on validation; the test part stays sealed.

    What is returned is in `out/validation.json`, too: as `metrics.json` without `test`, with `is_finished`, and with `failed`
    where training diverged. A finished run is not trained again.

    Args:
        config: what to run; must have a validation part.
        out: directory of the run.
        pause: told after each epoch how many there were; if true, the run is left for now, to be gone on with.
        listeners: are told what happens.
    """
    config = config.resolved()
    with enough_memory(), RunDirectory(out, resume=True) as directory:
        known = _known(out)
        if known.get("is_finished"):
            return known
        data = begun_data(config, directory)
        _check_validation(data.dataset)
        trainer = build_trainer(config, data, directory, listeners)
        try:
            progress = trainer.fit(pause=pause)
        except TrainingDivergedError as error:
            found: dict[str, Any] = {"validation": {}, "failed": str(error), "is_finished": True}
        else:
            found = _judged(config, data.dataset, directory, progress)
        directory.write_metrics(found, VALIDATION_FILE)
        if found["is_finished"]:
            # Moments are most of a run's size, and of use to none that is over.
            (out / "checkpoint.safetensors").unlink(missing_ok=True)
        return found


def _judged(
    config: RunConfig, dataset: Dataset, directory: RunDirectory, progress: Progress
) -> dict[str, Any]:
    if not progress.best_epoch:
        return {"validation": {}, "trained_epochs": progress.epoch, "is_finished": False}
    found = judge_on_validation(config, dataset, _scorer(config, directory), progress)
    if any(math.isnan(value) for value in found["validation"].values()):
        return {"validation": {}, "failed": "a metric is not a number", "is_finished": True}
    return {**found, "is_finished": progress.is_finished}


def judge_chosen(path: Path) -> dict[str, Any]:
    """Judge a run of `train_on_validation` on the test part, now that it is chosen; gives and writes `metrics.json`.

    Args:
        path: its directory.
    """
    with RunDirectory(path, resume=True) as directory:
        known = _known(path)
        if not known.get("is_finished") or known.get("failed"):
            raise ConfigError(f"the run in {path} is not finished, so it can not be chosen")
        config = RunConfig.from_toml(path / "config.toml")
        dataset = begun_data(config.resolved(), directory).dataset
        missing = [
            name
            for name in ("trained_epochs", "best_epoch", "seconds_per_epoch")
            if name not in known
        ]
        if missing:
            raise ArtifactError(
                f"{path / VALIDATION_FILE} must hold `{missing[0]}`; remove it and run the search again"
            )
        epochs = known["trained_epochs"]
        progress = Progress(
            epoch=epochs,
            best_epoch=known["best_epoch"],
            total_seconds=known["seconds_per_epoch"] * epochs,
        )
        metrics, _ = judge(config, dataset, _scorer(config, directory), progress)
        directory.write_metrics(metrics)
        return metrics


def _known(path: Path) -> dict[str, Any]:
    if not (path / VALIDATION_FILE).exists():
        return {}
    return read_metrics(path, VALIDATION_FILE)


def _scorer(config: RunConfig, directory: RunDirectory) -> EmbeddingScorer:
    return EmbeddingScorer(
        *scored_vectors(directory.read_model(), LOSSES[config.loss.name].similarity)
    )


def _check_validation(dataset: Dataset) -> None:
    if dataset.validation is None or not len(dataset.validation):
        raise ConfigError(
            f"{dataset.name} has no validation part to choose on, and a search never chooses on the test part; "
            "set `data.validation` to fraction"
        )
