"""The directory of a run: every file in it is complete, and none is ever executed."""

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from torch import Tensor

from pslrec.artifacts._environment import describe_environment
from pslrec.artifacts._format import (
    FORMAT,
    FORMAT_WITH_WALKS,
    ArtifactError,
    DirectoryInUseError,
    check_version,
)
from pslrec.artifacts._log import parse_epoch, read_log
from pslrec.artifacts._metrics import METRICS_FILE
from pslrec.artifacts._model import Model, trained_tables
from pslrec.artifacts._origins import write_origins
from pslrec.artifacts._seen import SEEN_FILE, seen_tensors
from pslrec.artifacts._walks import Walks
from pslrec.backbones import Backbone, check_tables
from pslrec.data import Dataset, read_ids, write_ids
from pslrec.files import (
    append_line,
    exclusive,
    make_directory,
    read_json,
    read_tensors,
    read_toml,
    write_tensors,
    write_text,
)
from pslrec.rows import Rows
from pslrec.training import Checkpoint, EpochFinished, Event, Progress, TrainingStarted

# Settings as they were given, where `auto` completes them, and what it tried and chose.
REQUEST_FILE = "request.toml"
CHOICE_FILE = "choice.json"


class RunStage:
    """What one training leaves in a run directory: checkpoint, log, and the best tables.

    Args:
        path: the directory.
        prefix: put before the names of the checkpoint and the log.
        model: name of the file with the best tables, without its ending.
    """

    def __init__(self, path: Path, *, prefix: str = "", model: str = "model") -> None:
        self.path = path
        self._prefix = prefix
        self._tables_file = path / f"{model}.safetensors"

    def _file(self, name: str) -> Path:
        return self.path / f"{self._prefix}{name}"

    def load_checkpoint(self) -> Checkpoint | None:
        """Read the last checkpoint; `None` if none was ever saved."""
        path = self._file("checkpoint.safetensors")
        if not path.exists():
            return None
        tensors, metadata = read_tensors(path, error=ArtifactError)
        try:
            progress = Progress.from_json(metadata["progress"])
        except (KeyError, TypeError, ValueError) as error:
            raise ArtifactError(
                f"{path} is not a checkpoint of this version of pslrec: {error}"
            ) from error
        return Checkpoint(tensors, progress)

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Replace the last checkpoint."""
        metadata = {"progress": checkpoint.progress.to_json()}
        path = self._file("checkpoint.safetensors")
        write_tensors(path, checkpoint.tensors, metadata, error=ArtifactError)

    def save_best(self, backbone: Backbone, epoch: int) -> None:
        """Write the tables of a backbone as the best ones so far."""
        self.write_tables(trained_tables(backbone), epoch)

    def write_tables(self, tables: Mapping[str, Tensor], epoch: int) -> None:
        """Write tables as the best ones so far.

        Args:
            tables: as `trained_tables` gives them.
            epoch: whose tables they are.
        """
        metadata = {"epoch": str(epoch)}
        write_tensors(self._tables_file, tables, metadata, error=ArtifactError)

    def read_tables(self) -> dict[str, Tensor]:
        """Read the best tables so far."""
        tables, _ = self.read_tables_and_epoch()
        return tables

    def read_tables_and_epoch(self) -> tuple[dict[str, Tensor], int]:
        """Read the best tables so far, and the epoch that they are of; 0 if it is not known."""
        tables, metadata = read_tensors(self._tables_file, error=ArtifactError)
        check_tables(tables, self._tables_file, error=ArtifactError)
        epoch = metadata.get("epoch", "")
        # The epoch is only shown, so a damaged one is no reason to refuse the tables.
        is_number = epoch.isascii() and epoch.isdigit() and len(epoch) < 20
        if not is_number:
            return tables, 0
        return tables, int(epoch)

    def listen(self, event: Event) -> None:
        """Write a line to `log.jsonl` after each epoch; for the trainer's listeners."""
        path = self._file("log.jsonl")
        if isinstance(event, TrainingStarted):
            # Epochs after the checkpoint are trained again, and logged again.
            kept = []
            for line in read_log(path):
                epoch = parse_epoch(line)
                if epoch is not None and epoch.number <= event.epoch:
                    kept.append(f"{line}\n")
            write_text(path, "".join(kept), error=ArtifactError)
        elif isinstance(event, EpochFinished):
            # Appended, not replaced: a log of many epochs would be written over and over.
            append_line(path, json.dumps(asdict(event)), error=ArtifactError)

    def write_log(self, epochs: Sequence[EpochFinished]) -> None:
        """Write the log of a training that is over.

        Args:
            epochs: in order.
        """
        lines = [f"{json.dumps(asdict(epoch))}\n" for epoch in epochs]
        write_text(self._file("log.jsonl"), "".join(lines), error=ArtifactError)


class RunDirectory(RunStage):
    """A run directory, locked against other processes while it is used as a context.

    Reading a part of a run needs no lock, as files are replaced whole:
    `RunDirectory(path).read_tables()`.

    Args:
        path: is made if it does not exist.
        resume: accept a directory that already holds a run, to resume it.
    """

    def __init__(self, path: Path, *, resume: bool = False) -> None:
        super().__init__(path)
        self.resume = resume
        self._held = ExitStack()

    def __enter__(self) -> "RunDirectory":
        make_directory(self.path, error=ArtifactError)
        with ExitStack() as held:
            # Not waiting: the other process may need hours.
            lock = exclusive(self.path / "lock", wait=False, error=ArtifactError)
            is_locked = held.enter_context(lock)
            if not is_locked:
                raise DirectoryInUseError(
                    f"another run is working in {self.path}; wait for it, "
                    "or choose another directory"
                )
            if self.is_started:
                self._check_resumable()
            # Everything is in order, so the lock outlives this block until `__exit__`.
            self._held = held.pop_all()
        return self

    def _check_resumable(self) -> None:
        if not self.resume:
            raise ArtifactError(
                f"{self.path} already holds a run; resume it with --resume, "
                "or choose another directory"
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
        """Whether the directory holds a run, finished or not."""
        return (self.path / "format").exists()

    def stages(self) -> tuple[RunStage, RunStage]:
        """The two trainings of a run with `training.refit`; the second gives the run's model."""
        # Readers look for `model.safetensors`, so only the second stage may write it.
        selection = RunStage(self.path, model="selected")
        refit = RunStage(self.path, prefix="refit-")
        return selection, refit

    def begin(
        self,
        config_toml: str,
        dataset: Dataset,
        similarity: str,
        *,
        parts: Mapping[str, str] | None = None,
    ) -> None:
        """Write what is known before training.

        Args:
            config_toml: the complete configuration.
            dataset: its ids, and what each user has in the training and validation parts.
            similarity: of the loss.
            parts: names of loss and backbone by section; of those that are not pslrec's own it is
                kept where they came from, see `write_origins`.
        """
        write_text(self.path / "config.toml", config_toml, error=ArtifactError)
        environment = json.dumps(describe_environment(), indent=2)
        write_text(self.path / "environment.json", f"{environment}\n", error=ArtifactError)
        write_origins(self.path, parts or {})
        write_ids(dataset.user_vocabulary, self.path, error=ArtifactError)
        write_ids(dataset.item_vocabulary, self.path, error=ArtifactError)
        write_tensors(
            self.path / SEEN_FILE,
            seen_tensors(dataset),
            {"similarity": similarity},
            error=ArtifactError,
        )
        # Last: a directory without this file is one in which no run was started, so a crash
        # before this line leaves nothing that has to be cleaned up.
        write_text(self.path / "format", f"{FORMAT}\n", error=ArtifactError)

    def write_request(self, config_toml: str) -> None:
        """Write the settings as they were given, before `auto` completes them.

        A run that is stopped while it chooses can then be started again from them.
        """
        write_text(self.path / REQUEST_FILE, config_toml, error=ArtifactError)

    def read_model(self, similarity: str, histories: Rows) -> Model:
        """The model of the run, with its walks if it has any.

        Args:
            similarity: of its loss.
            histories: the items of each user that it was trained on.
        """
        tables = self.read_tables()
        walks = Walks.read(self.path, n_items=len(tables["items"]))
        return Model(tables, similarity, walks, histories)

    def write_walks(self, walks: Walks) -> None:
        """Write the walks of the model, and raise the format number."""
        walks.write(self.path)
        # A version that does not know walks must not rank without them.
        write_text(self.path / "format", f"{FORMAT_WITH_WALKS}\n", error=ArtifactError)

    def rewrite_config(self, config_toml: str) -> None:
        """Write the configuration again, once the settings that training left open are chosen.

        Args:
            config_toml: the complete configuration.
        """
        write_text(self.path / "config.toml", config_toml, error=ArtifactError)

    def write_choice(self, record: Mapping[str, Any]) -> None:
        """Write what `auto` tried and chose."""
        text = json.dumps(record, indent=2)
        write_text(self.path / CHOICE_FILE, f"{text}\n", error=ArtifactError)

    def read_choice(self) -> dict[str, Any] | None:
        """Read what `auto` tried and chose; `None` for a run whose settings were all given."""
        if not (self.path / CHOICE_FILE).exists():
            return None
        return read_json(self.path / CHOICE_FILE, error=ArtifactError)

    def read_config(self) -> dict[str, Any]:
        """Read the configuration, section by section."""
        return read_toml(self.path / "config.toml", error=ArtifactError)

    def read_environment(self) -> dict[str, Any]:
        """Read what the run was started with, see `describe_environment`."""
        return read_json(self.path / "environment.json", error=ArtifactError)

    def check_data(self, dataset: Dataset) -> None:
        """Raise unless the run was started with these data: its row numbers fit no others.

        Args:
            dataset: as it was loaded now.
        """
        # The sources behind a run are not kept, so what was derived from them is compared.
        if not (self._has_same_ids(dataset) and self._has_same_pairs(dataset)):
            raise ArtifactError(
                f"the run in {self.path} was started with other training data than `data.source` "
                "gives now; restore the data, or start a new run in another directory"
            )

    def _has_same_ids(self, dataset: Dataset) -> bool:
        for given in (dataset.user_vocabulary, dataset.item_vocabulary):
            own = read_ids(self.path, given.kind, error=ArtifactError)
            if not own.series.equals(given.series):
                return False
        return True

    def _has_same_pairs(self, dataset: Dataset) -> bool:
        own, _ = read_tensors(self.path / SEEN_FILE, error=ArtifactError)
        # Early runs did not keep the others, so only training pairs are compared.
        given = seen_tensors(replace(dataset, validation=None, disliked=None))
        for name, rows in given.items():
            if name not in own or own[name].dtype != rows.dtype:
                return False
            if not torch.equal(own[name], rows):
                return False
        return True

    def write_metrics(self, metrics: Mapping[str, Any], name: str = METRICS_FILE) -> None:
        """Write how the run was evaluated; `metrics.json` marks the run as finished.

        Args:
            metrics: as `read_metrics` gives them again.
            name: another file, for what is known of a run that is not finished.
        """
        text = json.dumps(metrics, indent=2)
        write_text(self.path / name, f"{text}\n", error=ArtifactError)
