"""What a run leaves behind: one directory, every file in it whole, all of it readable without executing anything."""

import io
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import polars as pl
import torch
from torch import Tensor

from pslrec.artifacts.environment import describe_environment
from pslrec.artifacts.files import (
    ArtifactError,
    append_line,
    read_tensors,
    read_text,
    write_bytes,
    write_tensors,
    write_text,
)
from pslrec.backbones import Backbone
from pslrec.data.dataset import Dataset
from pslrec.training.checkpoint import Checkpoint, Progress
from pslrec.training.events import EpochFinished, Event, TrainingStarted

FORMAT = "1"


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
        tensors, metadata = read_tensors(path)
        try:
            return Checkpoint(tensors, Progress.from_json(metadata["progress"]))
        except (KeyError, TypeError, ValueError) as error:
            raise ArtifactError(f"{path} is no checkpoint of this version of pslrec: {error}") from error

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Take the place of the last checkpoint."""
        write_tensors(
            self._file("checkpoint.safetensors"), checkpoint.tensors, {"progress": checkpoint.progress.to_json()}
        )

    def save_best(self, backbone: Backbone, epoch: int) -> None:
        """Write the model: representations of all users and items, and the tables behind them where these differ."""
        self.write_model(model_tensors(backbone), epoch)

    def write_model(self, tensors: Mapping[str, Tensor], epoch: int) -> None:
        """Write a model given as `model_tensors` makes it."""
        write_tensors(self.path / f"{self._model}.safetensors", tensors, {"epoch": str(epoch)})

    def read_model(self) -> dict[str, Tensor]:
        """The best model so far."""
        return read_tensors(self.path / f"{self._model}.safetensors")[0]

    def listen(self, event: Event) -> None:
        """Keep `log.jsonl`: a line per epoch; a resumed run drops the lines that it is going to write again."""
        path = self._file("log.jsonl")
        if isinstance(event, TrainingStarted):
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []
            kept = [line for line in lines if _epoch_of(line) <= event.epoch]
            write_text(path, "".join(f"{line}\n" for line in kept))
        elif isinstance(event, EpochFinished):
            append_line(path, json.dumps(asdict(event)))


class RunDirectory(RunStage):
    """The directory of a run, locked while it is used as a context.

    Args:
        path: is made if it is not there.
        resume: go on with the run that is in it; otherwise it must hold none.
    """

    def __init__(self, path: Path, *, resume: bool = False) -> None:
        super().__init__(path)
        self.resume = resume
        self._lock: int | None = None

    def __enter__(self) -> "RunDirectory":
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise ArtifactError(f"{self.path} can not be written to: {error.strerror}") from error
        self._take_lock()
        try:
            self._check_unused()
        except ArtifactError:
            self._release()
            raise
        return self

    def _check_unused(self) -> None:
        if not self.is_started:
            return
        if not self.resume:
            raise ArtifactError(
                f"{self.path} holds a run already; go on with it with --resume, or choose another directory"
            )
        check_format(self.path)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._release()

    def _take_lock(self) -> None:
        assert self._lock is not None
        try:
            import fcntl
        except ImportError:  # a system without it goes without the lock
            return
        try:
            # The system drops the lock with the process, however that ends.
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._release()
            raise DirectoryInUseError(
                f"another run is working in {self.path}; wait for it, or choose another directory"
            ) from error

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def is_started(self) -> bool:
        """Whether a run was begun here."""
        return (self.path / "format").exists()

    def stages(self) -> tuple[RunStage, RunStage]:
        """The two trainings of a run that is trained again once its epoch is chosen; the second makes the model of the run."""
        return RunStage(self.path, model="selected"), RunStage(self.path, prefix="refit-")

    def read_config(self) -> str:
        """The configuration of the run, as TOML."""
        return read_text(self.path / "config.toml")

    def begin(self, config_toml: str, dataset: Dataset, similarity: str) -> None:
        """Write what is known before training: configuration, environment, ids, and what every user has seen."""
        write_text(self.path / "config.toml", config_toml)
        write_text(self.path / "environment.json", json.dumps(describe_environment(), indent=2) + "\n")
        for vocabulary in (dataset.user_vocabulary, dataset.item_vocabulary):
            content = io.BytesIO()
            pl.DataFrame({"id": vocabulary.series}).write_parquet(content)
            write_bytes(self.path / f"{vocabulary.kind}s.parquet", content.getvalue())
        write_tensors(self.path / "seen.safetensors", _seen(dataset), {"similarity": similarity})
        # Last, so that a directory without it is one in which nothing was begun.
        write_text(self.path / "format", FORMAT + "\n")

    def check_data(self, dataset: Dataset) -> None:
        """Raise unless these are the data that the run was begun with: row numbers mean nothing beside others."""
        ids = {kind: pl.read_parquet(self.path / f"{kind}s.parquet")["id"] for kind in ("user", "item")}
        vocabularies = {"user": dataset.user_vocabulary.series, "item": dataset.item_vocabulary.series}
        # Runs from before validation pairs were kept have none.
        seen, found = read_tensors(self.path / "seen.safetensors")[0], _seen(replace(dataset, validation=None))
        is_same = all(ids[kind].equals(vocabularies[kind]) for kind in ids)
        if not is_same or not all(torch.equal(seen[name], found[name]) for name in found):
            raise ArtifactError(
                f"the run in {self.path} was begun with other training data than `data.source` gives now; put the data back, "
                "or start a new run in another directory"
            )

    def write_metrics(self, metrics: Mapping[str, Any], name: str = "metrics.json") -> None:
        """Write `metrics.json`, the end of a run, or what is known before that under another name."""
        write_text(self.path / name, json.dumps(metrics, indent=2) + "\n")


def _seen(dataset: Dataset) -> dict[str, Tensor]:
    parts = {"": dataset.train} | ({} if dataset.validation is None else {"validation_": dataset.validation})
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
            tensors |= {"user_table": backbone.user_table.detach(), "item_table": backbone.item_table.detach()}
    backbone.train(was_training)
    return {name: tensor.contiguous() for name, tensor in tensors.items()}


def check_format(path: Path) -> None:
    """Raise unless this version of pslrec can read the run."""
    file = path / "format"
    if not file.exists():
        raise ArtifactError(f"{path} holds no run: there is no file `format` in it")
    found = file.read_text(encoding="utf-8", errors="replace").strip()
    if found != FORMAT:
        raise ArtifactError(
            f"{path} was written in format {found[:20]!r}, this version reads format {FORMAT}; train it again"
        )


def _epoch_of(line: str) -> int:
    try:
        return int(json.loads(line)["epoch"])
    except (ValueError, KeyError, TypeError):
        # A line cut short by a sudden end; its epoch is trained again.
        return 2**62
