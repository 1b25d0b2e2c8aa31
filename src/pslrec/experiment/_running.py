"""A run from its beginning to its end."""

import logging
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from pslrec.artifacts import RunDirectory, RunStage, model_tensors, origins_of, write_origins
from pslrec.backbones import Backbone
from pslrec.config import RunConfig
from pslrec.data import Dataset, Interactions
from pslrec.errors import ConfigError
from pslrec.evaluation import EmbeddingScorer, EvaluationResult
from pslrec.experiment._assembly import build_batches, build_model, scored_vectors
from pslrec.experiment._inputs import TrainingData, load_training_data, with_validation
from pslrec.experiment._judging import judge, judge_refit, validation_of
from pslrec.experiment._memory import enough_memory
from pslrec.training import Checkpoint, Listener, Progress, Trainer

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunResult:
    """A finished run.

    Args:
        config: complete, every default written out.
        metrics: what `metrics.json` holds.
        scorer: scores items by the chosen epoch's model.
        dataset: what it was trained and judged on.
        test: the judgement, with the values of single users.
        model: representations and tables, as in the run directory.
    """

    config: RunConfig
    metrics: dict[str, Any]
    scorer: EmbeddingScorer
    dataset: Dataset
    test: EvaluationResult
    model: dict[str, torch.Tensor]


def run(
    config: RunConfig,
    *,
    data: Interactions | Dataset | None = None,
    out: Path | None = None,
    resume: bool = False,
    listeners: Sequence[Listener] = (),
) -> RunResult:
    """Train, choose the epoch, judge on the test part; with `training.refit`, train on validation data too before judging.

    Args:
        config: what to run.
        data: taken instead of what `data.source` names; a validation part is carved out if there is none, and of interactions
            nothing is kept back for a test part.
        out: directory for everything the run leaves behind; without it nothing is written.
        resume: go on with the run in `out`, or begin it if there is none; its configuration must be the same.
        listeners: are told what happens.

    >>> settings = {"data.source": "synthetic", "training.epochs": 1, "sampling.negatives": 10}
    >>> sorted(run(RunConfig.from_settings(settings)).metrics)[:3]
    ['best_epoch', 'evaluated', 'protocol']
    """
    config = config.resolved()
    with enough_memory(), ExitStack() as stack:
        directory = None if out is None else stack.enter_context(RunDirectory(out, resume=resume))
        found = begun_data(config, directory, data)
        if config.training.refit:
            whole = with_validation(found)
        first, second = (MemoryStore(), MemoryStore()) if directory is None else directory.stages()
        store = first if config.training.refit else directory or first
        trainer = build_trainer(config, found, store, listeners, directory=directory)
        progress = trainer.fit()
        scorer = EmbeddingScorer(*scored_vectors(store.read_model(), trainer.loss.similarity))
        metrics, test = judge(config, found.dataset, scorer, progress)
        if config.training.refit:
            store = second
            # Of the first training as it was asked for: patience may have ended it earlier, and
            # `auto` would count more steps now that there are more pairs.
            horizon = trainer.options.epochs
            scorer = refit(config, whole, store, progress, listeners, horizon=horizon)
            metrics, test = judge_refit(config, whole.dataset, scorer, metrics)
            metrics["refit"]["horizon"] = horizon
        if directory is not None:
            directory.write_metrics(metrics)
        return RunResult(config, metrics, scorer, found.dataset, test, store.read_model())


def refit(
    config: RunConfig,
    whole: TrainingData,
    store: "AnyStore",
    chosen: Progress,
    listeners: Sequence[Listener] = (),
    *,
    horizon: int,
) -> EmbeddingScorer:
    """Train anew on training and validation data, for as many epochs as were chosen; gives the scorer of the last one.

    Validation chose an epoch together with the learning rates that led to it, so these stay as
    they were.

    Args:
        config: of the run.
        whole: both parts as one.
        store: keeps checkpoints and the model.
        chosen: how the first training ended.
        listeners: are told what happens.
        horizon: epochs over which the schedule of the first training fell.
    """
    logger.info(
        "training again on training and validation data, the first %d of %d epochs",
        chosen.best_epoch,
        horizon,
    )
    config = RunConfig.from_settings(
        {"training.epochs": chosen.best_epoch, "training.patience": 0}, base=config
    )
    backbone, loss = build_model(config, whole.train)
    batches = build_batches(config, whole)
    options = config.training.trainer_options(len(batches))
    Trainer(
        backbone,
        loss,
        batches,
        options=replace(options, horizon=horizon),
        store=store,
        listeners=(*([store.listen] if isinstance(store, RunStage) else []), *listeners),
    ).fit()
    return EmbeddingScorer(*scored_vectors(store.read_model(), loss.similarity))


def begun_data(
    config: RunConfig, directory: RunDirectory | None, given: Interactions | Dataset | None = None
) -> TrainingData:
    """The data of a run, after checking that a run begun in the directory before is the same one on the same data.

    Args:
        config: of the run.
        directory: of the run, if it has one.
        given: as in `run`.
    """
    is_begun = directory is not None and directory.is_started
    if directory is not None and is_begun:
        _check_same(directory, config)
    data = load_training_data(config, given)
    if directory is not None and is_begun:
        directory.check_data(data.dataset)
    return data


def build_trainer(
    config: RunConfig,
    data: TrainingData,
    store: "AnyStore",
    listeners: Sequence[Listener] = (),
    *,
    directory: RunDirectory | None = None,
) -> Trainer:
    """The trainer of a run; begins the run in the directory, if it is given one in which nothing was begun.

    Args:
        config: of the run.
        data: to train on.
        store: keeps checkpoints and the best model.
        listeners: are told what happens.
        directory: of the run, where `store` is not that.
    """
    backbone, loss = build_model(config, data.train)
    batches = build_batches(config, data)
    directory = store if isinstance(store, RunDirectory) else directory
    if directory is not None and not directory.is_started:
        write_origins(directory.path, origins_of(config.part_names()))
        directory.begin(config.to_toml(), data.dataset, loss.similarity)
    return Trainer(
        backbone,
        loss,
        batches,
        options=config.training.trainer_options(len(batches)),
        store=store,
        validate=validation_of(config, data.dataset, backbone, loss),
        listeners=(*([store.listen] if isinstance(store, RunStage) else []), *listeners),
    )


class MemoryStore:
    """Keeps the best model of a run that leaves nothing behind."""

    def __init__(self) -> None:
        self._model: dict[str, torch.Tensor] = {}

    def load_checkpoint(self) -> Checkpoint | None:
        """Nothing to go on from."""
        return None

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Nothing to keep."""

    def save_best(self, backbone: Backbone, epoch: int) -> None:  # noqa: ARG002
        """Copy the model."""
        self._model = {name: tensor.clone() for name, tensor in model_tensors(backbone).items()}

    def read_model(self) -> dict[str, torch.Tensor]:
        """The best one so far."""
        return self._model


AnyStore = RunStage | MemoryStore


def _check_same(directory: RunDirectory, config: RunConfig) -> None:
    # Settings that the version which began the run did not have count with their defaults.
    begun = RunConfig.from_toml(directory.path / "config.toml").resolved()
    before, now = (_flat(tomllib.loads(each.to_toml())) for each in (begun, config))
    # Names first: another loss has other options, but that is not the point.
    for name in sorted({**before, **now}, key=lambda name: (not name.endswith(".name"), name)):
        if before.get(name) != now.get(name):
            raise ConfigError(
                f"the run in {directory.path} has `{name}` = {before.get(name)!r}, now it is {now.get(name)!r}; "
                "resume with the same settings, or start a new run in another directory"
            )
    environment = directory.read_environment()
    if environment.get("threads") != torch.get_num_threads():
        logger.warning(
            "the run was begun with %s threads and goes on with %d; its last digits may differ from those of a run "
            "that was never stopped",
            environment.get("threads"),
            torch.get_num_threads(),
        )


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        flat |= (
            _flat(value, f"{prefix}{name}.")
            if isinstance(value, Mapping)
            else {prefix + name: value}
        )
    return flat
