"""A run that was kept in memory becomes a run directory."""

import shutil
import tomllib
from pathlib import Path

import torch

from pslrec.artifacts import ArtifactError, RunDirectory, origins_of, write_origins
from pslrec.experiment._running import RunResult
from pslrec.files import explained, is_temporary, whole_directory, whole_file
from pslrec.inference import RunFiles
from pslrec.losses import LOSSES


def save_run(result: RunResult, path: Path) -> None:
    """Write a finished run as `run(..., out=path)` would have, without its log and checkpoint.

    Args:
        result: what `run` returned.
        path: directory to make; must not hold a run.
    """
    if (path / "format").exists():
        raise ArtifactError(f"{path} holds a run already; choose another directory")
    with whole_directory(path, error=ArtifactError) as place, RunDirectory(place) as directory:
        write_origins(place, origins_of(result.config.part_names()))
        directory.begin(
            result.config.to_toml(), result.dataset, LOSSES[result.config.loss.name].similarity
        )
        directory.write_model(result.model, result.metrics["best_epoch"])
        directory.write_metrics(result.metrics)


def copy_run(origin: Path, path: Path) -> None:
    """Copy the directory of a finished run, without what only its training needs.

    Args:
        origin: the directory to copy.
        path: the directory to make.
    """
    with (
        whole_directory(path, error=ArtifactError) as place,
        explained(origin, "read", error=ArtifactError),
    ):
        for file in sorted(origin.iterdir()):
            is_needed = file.is_file() and file.name != "lock" and "checkpoint" not in file.name
            if is_needed and not is_temporary(file.name):
                with (
                    file.open("rb") as source,
                    whole_file(place / file.name, error=ArtifactError) as target,
                ):
                    shutil.copyfileobj(source, target)


def files_of(result: RunResult) -> RunFiles:
    """What the directory of the run would hold."""
    dataset = result.dataset
    empty = torch.empty(0, dtype=torch.int32)
    train, validation = (
        (empty, empty)
        if part is None
        else (torch.from_numpy(part.users.copy()), torch.from_numpy(part.items.copy()))
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
