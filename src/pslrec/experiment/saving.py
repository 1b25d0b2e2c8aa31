"""A run that was kept in memory becomes a run directory."""

import tomllib
from pathlib import Path

import torch

from pslrec.artifacts import RunDirectory
from pslrec.experiment.running import RunResult
from pslrec.inference import RunFiles
from pslrec.losses import LOSSES


def save_run(result: RunResult, path: Path) -> None:
    """Write a finished run as `run(..., out=path)` would have, without its log and checkpoint.

    Args:
        result: what `run` returned.
        path: directory to make; must not hold a run.
    """
    with RunDirectory(path) as directory:
        directory.begin(result.config.to_toml(), result.dataset, LOSSES[result.config.loss.name].similarity)
        directory.write_model(result.model, result.metrics["best_epoch"])
        directory.write_metrics(result.metrics)


def files_of(result: RunResult) -> RunFiles:
    """What the directory of the run would hold."""
    dataset = result.dataset
    empty = torch.empty(0, dtype=torch.int32)
    train, validation = (
        (empty, empty) if part is None else (torch.from_numpy(part.users.copy()), torch.from_numpy(part.items.copy()))
        for part in (dataset.train, dataset.validation)
    )
    return RunFiles(
        config=tomllib.loads(result.config.to_toml()),
        metrics=result.metrics,
        users=dataset.user_vocabulary,
        items=dataset.item_vocabulary,
        tables=result.model,
        train=train,
        validation=validation,
        epoch=result.metrics["best_epoch"],
    )
