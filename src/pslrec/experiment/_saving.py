"""A run that was kept in memory becomes a run directory, and a run directory is copied."""

import shutil
import tomllib
from collections.abc import Sequence
from pathlib import Path

import torch

from pslrec.artifacts import (
    ITEM_TABLE_FILE,
    ArtifactError,
    FinishedRun,
    RunDirectory,
    write_item_table,
)
from pslrec.data import Interactions
from pslrec.data.items import ItemTable
from pslrec.experiment._running import RunResult
from pslrec.files import explained, is_temporary, whole_directory, whole_file
from pslrec.training import EpochFinished


def save_run(
    result: RunResult,
    path: Path,
    *,
    epochs: Sequence[EpochFinished] = (),
    item_table: ItemTable | None = None,
) -> None:
    """Write a finished run as `run(..., out=path)` does, without its checkpoint.

    Args:
        result: what `run` returned.
        path: directory to make; must not hold a run.
        epochs: of the training, for the log; without them there is no log.
        item_table: titles and categories of the items.
    """
    if (path / "format").exists():
        raise ArtifactError(f"{path} already holds a run; choose another directory")
    # It appears under its name when it is complete, as if it had always been a directory.
    with whole_directory(path, error=ArtifactError) as place, RunDirectory(place) as directory:
        directory.begin(
            result.config.to_toml(),
            result.dataset,
            result.model.similarity,
            parts=result.config.part_names(),
        )
        directory.write_tables(result.model.tables, result.metrics["best_epoch"])
        if result.model.walks is not None:
            directory.write_walks(result.model.walks)
        if epochs:
            directory.write_log(epochs)
        write_item_table(place, item_table)
        directory.write_metrics(result.metrics)


def copy_run(origin: Path, path: Path, *, item_table: ItemTable | None = None) -> None:
    """Copy a finished run, without the files that only training needs.

    Args:
        origin: the run directory to copy.
        path: the directory to make.
        item_table: takes the place of the one that the run has.
    """
    with (
        whole_directory(path, error=ArtifactError) as place,
        explained(origin, "read", error=ArtifactError),
    ):
        for file in sorted(origin.iterdir()):
            # Checkpoints are most of a run's size, and a finished run has no use for them.
            is_for_training = file.name == "lock" or "checkpoint" in file.name
            is_left_out = is_for_training or file.name == ITEM_TABLE_FILE
            if not file.is_file() or is_left_out or is_temporary(file.name):
                continue
            with (
                file.open("rb") as source,
                whole_file(place / file.name, error=ArtifactError) as target,
            ):
                shutil.copyfileobj(source, target)
        write_item_table(place, item_table)


def finished_run(result: RunResult) -> FinishedRun:
    """A run in memory as reading its directory would give it.

    Args:
        result: what `run` returned.
    """
    dataset = result.dataset
    return FinishedRun(
        # The same types as TOML has, whatever the settings were given as.
        config=tomllib.loads(result.config.to_toml()),
        metrics=result.metrics,
        users=dataset.user_vocabulary,
        items=dataset.item_vocabulary,
        tables=result.model.tables,
        train=_pairs(dataset.train),
        validation=_pairs(dataset.validation),
        disliked=_pairs(dataset.disliked),
        epoch=result.metrics["best_epoch"],
        walks=result.model.walks,
    )


def _pairs(part: Interactions | None) -> tuple[torch.Tensor, torch.Tensor]:
    if part is None:
        nothing = torch.empty(0, dtype=torch.int32)
        return nothing, nothing
    # Copied, as the columns of interactions are read-only and tensors cannot be.
    return torch.from_numpy(part.users.copy()), torch.from_numpy(part.items.copy())
