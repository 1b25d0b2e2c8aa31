"""What a run leaves behind: one directory, every file in it whole, all of it readable without executing anything."""

import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from torch import Tensor

from pslrec.artifacts._environment import describe_environment
from pslrec.artifacts._records import FORMAT, ArtifactError, check_version, read_log
from pslrec.backbones import Backbone, check_tables
from pslrec.data import Dataset, read_ids, write_ids
from pslrec.files import (
    append_line,
    exclusive,
    make_directory,
    read_json,
    read_tensors,
    read_text,
    write_tensors,
    write_text,
)
from pslrec.training import Checkpoint, EpochFinished, Event, Progress, TrainingStarted


class DirectoryInUseError(ArtifactError):
    """Another process is working in a run directory."""


class RunStage:
    """What one training leaves in the directory of a run: checkpoint, log, and the best model.

    Args:
        path: the directory.
        prefix: of the names of its checkpoint and log.
        model: name of the file for the best model.
    """

    def __init__(self, path: Path, *, prefix: str = "", model: str = "model") -> None:
        self.path, self._prefix, self._model = path, prefix, model

    def _file(self, name: str) -> Path:
        return self.path / f"{self._prefix}{name}"

    def load_checkpoint(self) -> Checkpoint | None:
        """The state of the run so far, if it was ever saved."""
        path = self._file("checkpoint.safetensors")
        if not path.exists():
            return None
        tensors, metadata = read_tensors(path, error=ArtifactError)
        try:
            return Checkpoint(tensors, Progress.from_json(metadata["progress"]))
        except (KeyError, TypeError, ValueError) as error:
            raise ArtifactError(
                f"{path} is no checkpoint of this version of pslrec: {error}"
            ) from error

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Take the place of the last checkpoint."""
        progress = {"progress": checkpoint.progress.to_json()}
        write_tensors(
            self._file("checkpoint.safetensors"), checkpoint.tensors, progress, error=ArtifactError
        )

    def save_best(self, backbone: Backbone, epoch: int) -> None:
        """Write the model: representations of all users and items, and the tables behind them where these differ."""
        self.write_model(model_tensors(backbone), epoch)

    def write_model(self, tensors: Mapping[str, Tensor], epoch: int) -> None:
        """Write a model given as `model_tensors` makes it."""
        path = self.path / f"{self._model}.safetensors"
        write_tensors(path, tensors, {"epoch": str(epoch)}, error=ArtifactError)

    def read_model(self) -> dict[str, Tensor]:
        """The best model so far."""
        path = self.path / f"{self._model}.safetensors"
        tables, _ = read_tensors(path, error=ArtifactError)
        check_tables(tables, path, error=ArtifactError)
        return tables

    def listen(self, event: Event) -> None:
        """Keep `log.jsonl`: a line per epoch; a resumed run drops the lines that it is going to write again."""
        path = self._file("log.jsonl")
        if isinstance(event, TrainingStarted):
            lines = read_log(path)
            kept = [line for line in lines if _epoch_of(line) <= event.epoch]
            write_text(path, "".join(f"{line}\n" for line in kept), error=ArtifactError)
        elif isinstance(event, EpochFinished):
            append_line(path, json.dumps(asdict(event)), error=ArtifactError)


class RunDirectory(RunStage):
    """The directory of a run, locked while it is used as a context.

    Args:
        path: is made if it is not there.
        resume: go on with the run that is in it; otherwise it must hold none.
    """

    def __init__(self, path: Path, *, resume: bool = False) -> None:
        super().__init__(path)
        self.resume = resume
        self._held = ExitStack()

    def __enter__(self) -> "RunDirectory":
        make_directory(self.path, error=ArtifactError)
        with ExitStack() as held:
            lock = exclusive(self.path / "lock", wait=False, error=ArtifactError)
            if not held.enter_context(lock):
                raise DirectoryInUseError(
                    f"another run is working in {self.path}; wait for it, or choose another directory"
                )
            self._check_unused()
            # All is well, so the lock is kept beyond this block.
            self._held = held.pop_all()
        return self

    def _check_unused(self) -> None:
        if not self.is_started:
            return
        if not self.resume:
            raise ArtifactError(
                f"{self.path} holds a run already; go on with it with --resume, or choose another directory"
            )
        check_version(self.path)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._held.close()

    @property
    def is_started(self) -> bool:
        """Whether a run was begun here."""
        return (self.path / "format").exists()

    def stages(self) -> tuple[RunStage, RunStage]:
        """The two trainings of a run that is trained again once its epoch is chosen; the second makes the model of the run."""
        return RunStage(self.path, model="selected"), RunStage(self.path, prefix="refit-")

    def read_config(self) -> str:
        """The configuration of the run, as TOML."""
        return read_text(self.path / "config.toml", error=ArtifactError)

    def begin(self, config_toml: str, dataset: Dataset, similarity: str) -> None:
        """Write what is known before training: configuration, environment, ids, and what every user has seen."""
        environment = json.dumps(describe_environment(), indent=2)
        write_text(self.path / "config.toml", config_toml, error=ArtifactError)
        write_text(self.path / "environment.json", f"{environment}\n", error=ArtifactError)
        for vocabulary in (dataset.user_vocabulary, dataset.item_vocabulary):
            write_ids(vocabulary, self.path, error=ArtifactError)
        seen = self.path / "seen.safetensors"
        write_tensors(seen, _seen(dataset), {"similarity": similarity}, error=ArtifactError)
        # Last, so that a directory without it is one in which nothing was begun.
        write_text(self.path / "format", f"{FORMAT}\n", error=ArtifactError)

    def read_environment(self) -> dict[str, Any]:
        """What the run was begun with, see `describe_environment`."""
        return read_json(self.path / "environment.json", error=ArtifactError)

    def check_data(self, dataset: Dataset) -> None:
        """Raise unless these are the data that the run was begun with: row numbers mean nothing beside others."""
        vocabularies = (dataset.user_vocabulary, dataset.item_vocabulary)
        ids = [
            read_ids(self.path, vocabulary.kind, error=ArtifactError) for vocabulary in vocabularies
        ]
        is_same = all(
            own.series.equals(given.series) for own, given in zip(ids, vocabularies, strict=True)
        )
        # Runs from before validation pairs were kept have none.
        found = _seen(replace(dataset, validation=None))
        seen, _ = read_tensors(self.path / "seen.safetensors", error=ArtifactError)
        for name, rows in found.items():
            is_same = is_same and name in seen and _are_equal(seen[name], rows)
        if not is_same:
            raise ArtifactError(
                f"the run in {self.path} was begun with other training data than `data.source` gives now; put the data back, "
                "or start a new run in another directory"
            )

    def write_metrics(self, metrics: Mapping[str, Any], name: str = "metrics.json") -> None:
        """Write `metrics.json`, the end of a run, or what is known before that under another name."""
        write_text(self.path / name, json.dumps(metrics, indent=2) + "\n", error=ArtifactError)


def _seen(dataset: Dataset) -> dict[str, Tensor]:
    parts = {"": dataset.train} | (
        {} if dataset.validation is None else {"validation_": dataset.validation}
    )
    return {
        f"{prefix}{name}": torch.from_numpy(getattr(part, name).copy())
        for prefix, part in parts.items()
        for name in ("users", "items")
    }


def model_tensors(backbone: Backbone) -> dict[str, Tensor]:
    """What is worth keeping of a trained backbone."""
    was_training = backbone.training
    backbone.eval()
    with torch.no_grad():
        representations = backbone()
        tensors = {"users": representations.users.detach(), "items": representations.items.detach()}
        if not backbone.is_lookup:
            tensors |= {
                "user_table": backbone.user_table.detach(),
                "item_table": backbone.item_table.detach(),
            }
    backbone.train(was_training)
    return {name: tensor.contiguous() for name, tensor in tensors.items()}


def _are_equal(one: Tensor, other: Tensor) -> bool:
    return one.dtype == other.dtype and torch.equal(one, other)


def _epoch_of(line: str) -> int:
    try:
        return int(json.loads(line)["epoch"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        # A line cut short by a sudden end; its epoch is trained again.
        return 2**62
