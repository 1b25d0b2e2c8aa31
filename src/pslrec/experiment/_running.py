"""One run from start to finish."""

import logging
import tomllib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pslrec.artifacts import (
    ArtifactError,
    Model,
    RunDirectory,
    RunStage,
    flat_settings,
    read_item_table,
    trained_tables,
    write_item_table,
)
from pslrec.backbones import Backbone
from pslrec.config import RETIRED, RunConfig
from pslrec.data import Dataset, Interactions, Vocabulary
from pslrec.data.items import ItemTable, TableFile
from pslrec.distributed import Group
from pslrec.errors import ConfigError
from pslrec.evaluation import EvaluationResult, Scorer
from pslrec.experiment._assembly import build_batches, build_resolved_model
from pslrec.experiment._auto import Choice, choose_settings
from pslrec.experiment._evaluating import (
    evaluate_model,
    evaluate_refit,
    popularity_on_test,
    selection_metric,
    tell_of_sample,
    values_on_validation,
)
from pslrec.experiment._inputs import TrainingData, load_training_data, with_validation
from pslrec.experiment._memory import enough_memory
from pslrec.experiment._walk_fitting import WalkFittings
from pslrec.experiment._walking import completed, with_walks
from pslrec.files import working_directory
from pslrec.losses import LOSSES
from pslrec.training import (
    BatchFinished,
    Checkpoint,
    Event,
    Listener,
    Progress,
    Trainer,
    TrainingStarted,
    TryAdvanced,
    tensors_from_first,
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunResult:
    """A finished run.

    Args:
        config: complete, every default written out.
        metrics: the content of `metrics.json`.
        dataset: what it was trained and evaluated on.
        test: the evaluation on the test part, with the values of single users.
        model: of the chosen epoch, or refitted.
    """

    config: RunConfig
    metrics: dict[str, Any]
    dataset: Dataset
    test: EvaluationResult
    model: Model

    @cached_property
    def scorer(self) -> Scorer:
        """Scores items with the model."""
        return self.model.scorer()

    def popularity(self) -> float:
        """NDCG@20 of the same list for everybody on the test part, to compare the model with."""
        dataset = self.dataset
        if "refit" in self.metrics:
            dataset = with_validation(TrainingData(dataset, dataset.train)).dataset
        return popularity_on_test(self.config, dataset)


def run(
    config: RunConfig,
    *,
    data: Interactions | Dataset | None = None,
    out: Path | None = None,
    resume: bool = False,
    listeners: Sequence[Listener] = (),
    item_table: TableFile | Path | None = None,
    group: Group | None = None,
    shard_items: bool = False,
) -> RunResult:
    """Train, choose the epoch on validation data, and evaluate on the test part.

    With `training.refit`, the model is trained again on training and validation data for the chosen
    number of epochs, and then evaluated.

    Args:
        config: what to run; it is completed and checked once, here.
        data: used instead of `data.source`; a validation part is carved out if there is none, and
            interactions are used for training as a whole, without a test part.
        out: run directory to write, or an address such as `s3://bucket/run`, to which it is copied
            at the end; without it nothing is written.
        resume: resume the run in `out` with the same configuration, or start it if there is none.
        listeners: are called with every event of training.
        item_table: a file with titles and categories of the items, to be kept in `out`.
        group: the processes that train together, each of which calls this function; the first one
            writes the directory and calls the listeners. By default there is one process.
        shard_items: divide the items among the processes, too.

    >>> settings = {"data.source": "synthetic", "training.epochs": 1, "sampling.negatives": 10}
    >>> sorted(run(RunConfig.from_settings(settings)).metrics)[:3]
    ['best_epoch', 'evaluated', 'exchangeability']
    """
    processes = Processes(group or Group(), shard_items=shard_items)
    if not processes.group.is_first:
        # One process tells and writes for all.
        listeners = ()
        out = None
    with enough_memory(), ExitStack() as stack:
        directory = None
        if out is not None:
            place = working_directory(
                out, resume=resume, mark="format", last="metrics.json", error=ArtifactError
            )
            out = stack.enter_context(place)
            # Locked until the metrics are written, against a second process that resumes.
            directory = stack.enter_context(RunDirectory(out, resume=resume))
        config, training_data, choice = prepare_run(
            config, directory, data, listeners, item_table=item_table, processes=processes
        )
        tell_of_sample(config, training_data.dataset)
        if config.training.refit:
            return _run_with_refit(config, training_data, directory, listeners, choice, processes)
        store: AnyStore = directory or MemoryStore()
        trainer = build_trainer(
            config, training_data, store, listeners, directory=directory, processes=processes
        )
        progress = trainer.fit()
        model = Model(processes.tables_of(store), trainer.loss.similarity)
        config, model, said = with_walks(
            config,
            training_data,
            model,
            directory=directory,
            listeners=listeners,
            group=processes.group,
            train=vectors_of(config, processes),
        )
        metrics, test = evaluate_model(
            config, training_data.dataset, model.scorer(), progress, group=processes.group
        )
        metrics |= _record_of(choice, directory, config, said)
        if directory is not None:
            directory.write_metrics(metrics)
        return RunResult(config, metrics, training_data.dataset, test, model)


def prepare_run(
    config: RunConfig,
    directory: RunDirectory | None = None,
    given: Interactions | Dataset | None = None,
    listeners: Sequence[Listener] = (),
    *,
    item_table: TableFile | Path | None = None,
    processes: "Processes | None" = None,
) -> tuple[RunConfig, TrainingData, Choice | None]:
    """Load the data of a run and choose what its settings leave open.

    Args:
        config: as the user gave it.
        directory: of the run, if it has one.
        given: data that are in memory already, as in `run`.
        listeners: are told what `auto` does.
        item_table: as in `run`.
        processes: that train together; by default there is one.

    Returns:
        The complete configuration, the data, and the choice if one was made now.
    """
    processes = processes or Processes(Group())
    leaves_open = _is_open(config) or bool(config.walks.open_weights)
    if leaves_open and directory is not None and directory.is_started:
        # The settings were chosen before the run was stopped.
        config = _with_chosen(config, directory)
    config = processes.group.from_first(config)
    complete = config.resolved()
    _warn_of_one_dimension(complete)
    is_shared = not processes.group.is_single
    data = load_run_data(complete, directory, given, item_table, is_shared=is_shared)
    processes.group.check_same("the number of users, items and pairs", _sizes(data))
    if not _is_open(config):
        return complete, data, None
    if directory is not None:
        directory.write_request(config.given_toml())

    # Whole trainings on the same data ask for the same walks and regressions.
    fittings = WalkFittings(processes.group)

    def try_out(trial: RunConfig, fold: TrainingData) -> np.ndarray:
        # Listeners get other events: the epochs of a try would look like those of the run.
        told = [_telling_of_try(listeners)]
        by_epoch: list[np.ndarray] = []
        store = MemoryStore()
        trainer = build_trainer(
            trial, fold, store, told, processes=processes, on_values=by_epoch.append
        )
        trainer.fit()
        # Those of a short try have neither.
        if trial.walks.weight or trial.walks.regression:
            group = processes.group
            vectors = Model(processes.tables_of(store), trainer.loss.similarity)
            fitting = fittings.to(fold, trial.walks.neighbours)
            model = with_walks(trial, fold, vectors, group=group, fitting=fitting).model
            if model.walks is not None:
                return values_on_validation(
                    trial, fold.dataset, model.scorer(), trainer.loss, group=group
                )
        return max(by_epoch, key=np.mean)

    config, choice = choose_settings(config, data, try_out, listeners=listeners)
    if directory is not None:
        directory.write_choice(choice.record())
    return config.resolved(), data, choice


def _telling_of_try(listeners: Sequence[Listener]) -> Listener:
    """A listener of a short training that tells others how far it has got."""
    n_steps = 1
    n_batches = 1

    def listen(event: Event) -> None:
        nonlocal n_steps, n_batches
        if isinstance(event, TrainingStarted):
            n_batches = event.n_batches
            n_steps = event.n_epochs * n_batches
        elif isinstance(event, BatchFinished):
            advanced = TryAdvanced((event.epoch * n_batches + event.batch) / n_steps)
            for listener in listeners:
                listener(advanced)

    return listen


def _is_open(config: RunConfig) -> bool:
    """Whether `auto` has something to choose."""
    return config.auto.mode != "off" and not config.auto.chosen


def _sizes(data: TrainingData) -> tuple[int, int, int]:
    return data.train.n_users, data.train.n_items, len(data.train)


def _with_chosen(config: RunConfig, directory: RunDirectory) -> RunConfig:
    """The settings as given, and those that were chosen when the run was started."""
    stored = directory.read_config()
    chosen = stored.get("auto", {}).get("chosen", [])
    if not set(chosen).isdisjoint(RETIRED):
        raise ConfigError(
            f"the run in {directory.path} was started by an earlier version, which chose "
            f"{', '.join(sorted(set(chosen) & set(RETIRED)))}; start a new run in another directory"
        )
    values = flat_settings(stored)
    settings = {name: values[name] for name in chosen if name in values}
    return RunConfig.from_settings({**settings, "auto.chosen": tuple(chosen)}, base=config)


def _record_of(
    choice: Choice | None, directory: RunDirectory | None, config: RunConfig, said: str
) -> dict[str, Any]:
    """What `auto` chose, for `metrics.json`.

    Args:
        choice: made before training by this process, if it was.
        directory: of the run, which knows the choice of a process that was stopped.
        config: complete, with what was chosen after training.
        said: about that, if it was chosen now.
    """
    if choice is not None:
        return {"auto": completed(choice.record(), config, said)}
    if directory is not None:
        record = directory.read_choice()
        if record is not None:
            return {"auto": record}
    return {}


def _run_with_refit(
    config: RunConfig,
    data: TrainingData,
    directory: RunDirectory | None,
    listeners: Sequence[Listener],
    choice: Choice | None,
    processes: "Processes",
) -> RunResult:
    # Before the first training, which would be wasted if there is no validation part.
    whole = with_validation(data)
    selection_store: AnyStore = MemoryStore()
    refit_store: AnyStore = MemoryStore()
    if directory is not None:
        selection_store, refit_store = directory.stages()
    trainer = build_trainer(
        config, data, selection_store, listeners, directory=directory, processes=processes
    )
    progress = trainer.fit()
    selected = Model(processes.tables_of(selection_store), trainer.loss.similarity)
    group = processes.group
    config, selected, said = with_walks(
        config,
        data,
        selected,
        directory=directory,
        listeners=listeners,
        group=group,
        train=vectors_of(config, processes),
    )
    chosen, _ = evaluate_model(config, data.dataset, selected.scorer(), progress, group=group)
    # The length that was asked for: early stopping may have ended the first training before it,
    # and `auto` would count more steps now that there are more pairs.
    horizon = trainer.options.epochs
    model = refit(
        config, whole, refit_store, progress, listeners, horizon=horizon, processes=processes
    )
    # Nothing is left to choose: the weights are those of the first training.
    model = with_walks(config, whole, model, directory=directory, group=group).model
    metrics, test = evaluate_refit(config, whole.dataset, model.scorer(), chosen, group=group)
    metrics["refit"]["horizon"] = horizon
    metrics |= _record_of(choice, directory, config, said)
    if directory is not None:
        directory.write_metrics(metrics)
    return RunResult(config, metrics, data.dataset, test, model)


def refit(
    config: RunConfig,
    whole: TrainingData,
    store: "AnyStore",
    chosen: Progress,
    listeners: Sequence[Listener] = (),
    *,
    horizon: int,
    processes: "Processes | None" = None,
) -> Model:
    """Train from the beginning on training and validation data, for the chosen number of epochs.

    Validation chose an epoch together with the learning rates that led to it, so these stay as
    they were.

    Args:
        config: complete, as `RunConfig.resolved` gives it.
        whole: training and validation data as one part.
        store: keeps checkpoints and the tables.
        chosen: how the first training ended.
        listeners: are called with every event of training.
        horizon: number of epochs over which the schedule of the first training falls.
        processes: that train together; by default there is one.
    """
    processes = processes or Processes(Group())
    logger.info(
        "training again on training and validation data, the first %d of %d epochs",
        chosen.best_epoch,
        horizon,
    )
    # Not the loss of the first training, which has learnt from that one.
    backbone, loss = build_resolved_model(config, whole.train)
    batches = build_batches(config, whole)
    options = replace(
        config.training.trainer_options(len(batches)),
        epochs=chosen.best_epoch,
        horizon=horizon,
        # Nothing is validated here, and the length is fixed.
        patience=0,
    )
    trainer = Trainer(
        backbone,
        loss,
        batches,
        options=options,
        store=store,
        listeners=_with_log(store, listeners),
        group=processes.group,
        shard_items=processes.shard_items,
    )
    trainer.fit()
    return Model(processes.tables_of(store), loss.similarity)


def load_run_data(
    config: RunConfig,
    directory: RunDirectory | None,
    given: Interactions | Dataset | None = None,
    item_table: TableFile | Path | None = None,
    *,
    is_shared: bool = False,
) -> TrainingData:
    """Load the data of a run; a run to be resumed must have had the same settings and data.

    Args:
        config: complete, as `RunConfig.resolved` gives it.
        directory: of the run, if it has one.
        given: data that are in memory already, as in `run`.
        item_table: as in `run`.
        is_shared: several processes read the same data.
    """
    if directory is None or not directory.is_started:
        data = load_training_data(config, given, is_shared=is_shared)
    else:
        # Settings first, as other settings may load other data.
        _check_same_settings(directory, config)
        _warn_of_other_threads(directory)
        data = load_training_data(config, given, is_shared=is_shared)
        directory.check_data(data.dataset)
    items = data.dataset.item_vocabulary
    if item_table is not None:
        # Before training, so that a table of other items is refused at once.
        table = ItemTable.read(item_table, items)
        if directory is not None:
            write_item_table(directory.path, table)
    elif directory is not None and not directory.is_started:
        # The model that comes after another is about the same items.
        inherited = inherited_item_table(config, items)
        if inherited is not None:
            write_item_table(directory.path, inherited)
    return data


def inherited_item_table(config: RunConfig, items: Vocabulary) -> ItemTable | None:
    """The item table of the run that a warm start begins with; `None` if there is none.

    Args:
        config: of the new run.
        items: of the new run.
    """
    earlier = config.training.warm_start
    if earlier is None:
        return None
    return read_item_table(Path(earlier), items)


def build_trainer(
    config: RunConfig,
    data: TrainingData,
    store: "AnyStore",
    listeners: Sequence[Listener] = (),
    *,
    directory: RunDirectory | None = None,
    processes: "Processes | None" = None,
    on_values: Callable[[np.ndarray], None] | None = None,
) -> Trainer:
    """Build the trainer of a run, and start the run in its directory if that was not done before.

    Args:
        config: complete, as `RunConfig.resolved` gives it.
        data: to train on.
        store: keeps checkpoints and the best tables.
        listeners: are called with every event of training.
        directory: of the run, where `store` is only a part of it.
        processes: that train together; by default there is one.
        on_values: is called with the values of all users whenever an epoch is evaluated.
    """
    processes = processes or Processes(Group())
    backbone, loss = build_resolved_model(config, data.train)
    batches = build_batches(config, data)
    if isinstance(store, RunDirectory):
        directory = store
    if directory is not None and not directory.is_started:
        # After building, which may refuse the settings: then there is no run to resume.
        directory.begin(config.to_toml(), data.dataset, loss.similarity, parts=config.part_names())
    return Trainer(
        backbone,
        loss,
        batches,
        options=config.training.trainer_options(len(batches)),
        store=store,
        validate=selection_metric(
            config, data.dataset, backbone, loss, group=processes.group, on_values=on_values
        ),
        listeners=_with_log(store, listeners),
        group=processes.group,
        shard_items=processes.shard_items,
    )


def vectors_of(config: RunConfig, processes: "Processes") -> Callable[[TrainingData], Model]:
    """Trains as a configuration says, on any data, and keeps nothing of it but the best vectors.

    Args:
        config: complete, as `RunConfig.resolved` gives it.
        processes: that train together.
    """

    def train(data: TrainingData) -> Model:
        store = MemoryStore()
        trainer = build_trainer(config, data, store, processes=processes)
        trainer.fit()
        return Model(processes.tables_of(store), trainer.loss.similarity)

    return train


def _with_log(store: "AnyStore", listeners: Sequence[Listener]) -> tuple[Listener, ...]:
    if isinstance(store, RunStage):
        # First, so that an epoch is logged even if another listener stops the run.
        return (store.listen, *listeners)
    return tuple(listeners)


@dataclass(frozen=True)
class Processes:
    """How a run is divided among processes; that changes its speed, and results by rounding only.

    Args:
        group: the processes.
        shard_items: divide the items among them, too.
    """

    group: Group
    shard_items: bool = False

    def tables_of(self, store: "AnyStore") -> dict[str, torch.Tensor]:
        """The best tables, which the first process has kept, for all of them.

        Args:
            store: of this process.
        """
        tables = None
        if self.group.is_first:
            tables = store.read_tables()
        if self.group.is_single and tables is not None:
            return tables
        return tensors_from_first(tables, self.group)


class MemoryStore:
    """Keeps the best tables of a run that writes nothing, and no checkpoints."""

    def __init__(self) -> None:
        self._tables: dict[str, torch.Tensor] = {}

    def load_checkpoint(self) -> Checkpoint | None:
        """Always `None`: there is nothing to resume."""
        return None

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Does nothing."""

    def save_best(
        self,
        backbone: Backbone,
        epoch: int,  # noqa: ARG002
    ) -> None:
        """Copy the tables, as training goes on to change them."""
        tables = trained_tables(backbone)
        self._tables = {name: table.clone() for name, table in tables.items()}

    def read_tables(self) -> dict[str, torch.Tensor]:
        """The best tables so far."""
        return self._tables


AnyStore = RunStage | MemoryStore


def _check_same_settings(directory: RunDirectory, config: RunConfig) -> None:
    stored = directory.read_config()
    given = tomllib.loads(config.to_toml())
    if stored == given:
        # The usual case, in which nothing has to be completed and checked again.
        return
    # The version that started the run may not have had all settings; those count with their
    # defaults.
    completed = RunConfig.checked(stored).resolved()
    before = flat_settings(tomllib.loads(completed.to_toml()))
    now = flat_settings(given)
    # Names of parts first: another loss has other options, but those are not the difference.
    names = sorted({**before, **now}, key=lambda name: (not name.endswith(".name"), name))
    for name in names:
        if before.get(name) != now.get(name):
            raise ConfigError(
                f"the run in {directory.path} has `{name}` = {before.get(name)!r}, now it is "
                f"{now.get(name)!r}; resume with the same settings, or start a new run in "
                "another directory"
            )


def _warn_of_one_dimension(config: RunConfig) -> None:
    is_single = config.backbone.options().get("dimension") == 1
    if is_single and LOSSES[config.loss.name].similarity != "inner-product":
        logger.warning(
            "with a `dimension` of 1 a cosine is a mere sign, which training cannot change; take 2 or more"
        )


def _warn_of_other_threads(directory: RunDirectory) -> None:
    before = directory.read_environment().get("threads")
    now = torch.get_num_threads()
    # Another number of threads adds up sums in another order.
    if before != now:
        logger.warning(
            "the run was started with %s threads and is resumed with %d; its last digits may "
            "differ from those of a run that was never stopped",
            before,
            now,
        )
