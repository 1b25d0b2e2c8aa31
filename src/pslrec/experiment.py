"""The one place where a run is put together: configuration in, trained and judged model out."""

import json
import logging
import tomllib
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from pslrec.artifacts import ArtifactError, RunDirectory, check_format, model_tensors
from pslrec.backbones import BACKBONES, Backbone, Representations
from pslrec.config import RunConfig, component_options
from pslrec.data import Dataset, Interactions, Preparation, load, prepare
from pslrec.data.sealing import SealedInteractions
from pslrec.data.splits import split_by_name
from pslrec.data.splits.by_name import carve_validation
from pslrec.errors import ConfigError
from pslrec.evaluation import EmbeddingScorer, EvaluationResult, evaluate
from pslrec.kernels.sampled import sampled_scores
from pslrec.losses import LOSSES, Loss
from pslrec.losses.base import Setup
from pslrec.sampling import PairBatches, item_rows, plant_false_negatives
from pslrec.seeding import derive_seed
from pslrec.training import Checkpoint, Progress, Trainer, scored_tables
from pslrec.training.events import Listener

logger = logging.getLogger(__name__)
SELECTION_K = 20


@dataclass(frozen=True)
class RunResult:
    """A finished run.

    Args:
        config: complete, every default written out.
        metrics: what `metrics.json` holds.
        scorer: scores items by the chosen epoch's model.
        dataset: what it was trained and judged on.
        test: the judgement, with the values of single users.
    """

    config: RunConfig
    metrics: dict[str, Any]
    scorer: EmbeddingScorer
    dataset: Dataset
    test: EvaluationResult


@dataclass(frozen=True)
class TrainingData:
    """What a run trains on and is judged by.

    Args:
        dataset: its training part is what ranked lists hide; its test part is sealed.
        train: the positives, without false negatives that were taken out.
        false_negatives: for the noise setting.
    """

    dataset: Dataset
    train: Interactions
    false_negatives: Interactions | None = None


def run(
    config: RunConfig,
    *,
    out: Path | None = None,
    resume: bool = False,
    listeners: Sequence[Listener] = (),
) -> RunResult:
    """Train, choose the epoch, judge on the test part.

    Args:
        config: what to run.
        out: directory for everything the run leaves behind; without it nothing is written.
        resume: go on with the run in `out`; its configuration must be the same.
        listeners: are told what happens.

    >>> settings = {"data.source": "synthetic", "training.epochs": 1, "sampling.negatives": 10}
    >>> sorted(run(RunConfig.from_settings(settings)).metrics)[:3]
    ['best_epoch', 'protocol', 'seconds_per_epoch']
    """
    config = config.resolved()
    with ExitStack() as stack:
        directory = None if out is None else stack.enter_context(RunDirectory(out, resume=resume))
        if directory is not None and directory.is_started:
            _check_same(directory, config)
        data = load_training_data(config)
        backbone, loss = build_model(config, data.train)
        if directory is not None and not directory.is_started:
            directory.begin(config.to_toml(), data.dataset, loss.similarity)
        store = directory or MemoryStore()
        trainer = Trainer(
            backbone,
            loss,
            build_batches(config, data),
            options=config.training.trainer_options(),
            store=store,
            validate=_validation(config, data.dataset, backbone, loss),
            listeners=(*([directory.listen] if directory else []), *listeners),
        )
        progress = trainer.fit()
        tensors = store.model() if isinstance(store, MemoryStore) else store.read_model()
        result = _judge(config, data.dataset, EmbeddingScorer(*scored_vectors(tensors, loss.similarity)), progress)
        if directory is not None:
            directory.write_metrics(result.metrics)
        return result


def load_dataset(config: RunConfig) -> Dataset:
    """The data of a run, with its validation part."""
    section = config.data
    loaded = load(section.source, repair=section.repair)
    if isinstance(loaded, Interactions):
        if section.minimum_rating is not None or section.k_core:
            loaded = prepare(loaded, Preparation(section.minimum_rating, section.k_core))
        loaded = split_by_name(loaded, section.split, train_fraction=section.train_fraction, seed=section.split_seed)
        loaded = replace(loaded, name=Path(section.source).stem)
    return carve_validation(loaded, section.validation or "fraction", seed=section.validation_seed)


def load_training_data(config: RunConfig) -> TrainingData:
    """The data of a run, its test part sealed, false negatives declared where the noise setting asks for them."""
    noise = config.sampling.noise
    if noise.probability > 0 and noise.before_validation:
        whole = load_dataset(RunConfig.from_settings({"data.validation": "none"}, base=config))
        planted = plant_false_negatives(
            whole.train,
            fraction=noise.fraction,
            scope=noise.scope,
            keep_positives=noise.keep_positives,
            seed=noise.seed,
        )
        rule = config.data.validation or "fraction"
        dataset = carve_validation(replace(whole, train=planted.train), rule, seed=config.data.validation_seed)
        train = dataset.train
    else:
        dataset = load_dataset(config)
        train = dataset.train
        if noise.probability > 0:
            planted = plant_false_negatives(
                train, fraction=noise.fraction, scope=noise.scope, keep_positives=noise.keep_positives, seed=noise.seed
            )
            train = planted.train
    sealed = replace(dataset, test=SealedInteractions.of(dataset.test))
    if noise.probability == 0:
        return TrainingData(sealed, train)
    hidden = sealed if noise.hide_at_test else replace(sealed, train=train)
    return TrainingData(hidden, train, planted.false_negatives)


def build_model(config: RunConfig, train: Interactions) -> tuple[Backbone, Loss]:
    """Backbone and loss of a run, as they are before the first step."""
    seed = config.training.seed
    loss = LOSSES[config.loss.name](**component_options(LOSSES, config.loss, "loss"))
    options = component_options(BACKBONES, config.backbone, "backbone", given_elsewhere=("train", "seed"))
    backbone = BACKBONES[config.backbone.name](train, seed=seed, **options)
    history = item_rows(train)
    loss.build(
        Setup(
            n_users=train.n_users,
            n_items=train.n_items,
            dimension=backbone.dimension,
            generator=torch.Generator().manual_seed(derive_seed(seed, "loss")),
            history=(history.offsets, history.items),
            products=_products,
        )
    )
    return backbone, loss


def _products(users: torch.Tensor, items: torch.Tensor, candidates: torch.Tensor) -> torch.Tensor:
    return sampled_scores(users, items, candidates.int().contiguous())


def build_batches(config: RunConfig, data: TrainingData) -> PairBatches:
    """The batches of a run."""
    sampling = config.sampling
    return PairBatches(
        data.train,
        n_negatives=sampling.negatives or LOSSES[config.loss.name].default_negatives,
        batch_pairs=sampling.batch_pairs,
        false_negatives=data.false_negatives,
        noise=sampling.noise.probability,
        seed=config.training.seed,
    )


def scored_vectors(tensors: dict[str, torch.Tensor], similarity: str) -> tuple[torch.Tensor, torch.Tensor]:
    """User and item vectors of a model whose inner products are its scores."""
    users, items, scale = scored_tables(Representations(tensors["users"], tensors["items"]), similarity)
    return users * scale, items


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

    def model(self) -> dict[str, torch.Tensor]:
        """The best one so far."""
        return self._model


def is_selected_on_test(config: RunConfig, dataset: Dataset) -> bool:
    """Whether the epoch is chosen on the test part: the published way where there is no validation part."""
    return dataset.validation is None and config.evaluation.protocol == "paper"


def _validation(config: RunConfig, dataset: Dataset, backbone: Backbone, loss: Loss):  # type: ignore[no-untyped-def]
    if dataset.validation is None:
        if config.evaluation.protocol != "paper":
            logger.info("there is no validation part, so the last epoch is taken")
            return None
        _unseal(dataset, "the paper protocol chooses the epoch on the test part where there is no validation part")
    split = "validation" if dataset.validation is not None else "test"
    k = loss.selection_k or SELECTION_K

    def validate() -> float:
        scorer = EmbeddingScorer(*scored_vectors(model_tensors(backbone), loss.similarity))
        result = _evaluate(config, scorer, dataset, split=split, k=(k,), metrics=("ndcg",))
        return result[f"ndcg@{k}"]

    return validate


def _evaluate(config: RunConfig, scorer: EmbeddingScorer, dataset: Dataset, **options: Any) -> EvaluationResult:
    section = config.evaluation
    options = {"k": tuple(sorted({*section.k, SELECTION_K})), **options}
    return evaluate(
        scorer, dataset, protocol=section.protocol, memory_budget=section.memory_megabytes * 2**20, **options
    )


def _judge(config: RunConfig, dataset: Dataset, scorer: EmbeddingScorer, progress: Progress) -> RunResult:
    _unseal(dataset, "training has ended")
    test = _evaluate(config, scorer, dataset, split="test")
    metrics: dict[str, Any] = {"test": test.metrics}
    if dataset.validation is not None:
        metrics["validation"] = _evaluate(config, scorer, dataset, split="validation").metrics
    metrics |= {
        "protocol": config.evaluation.protocol,
        "selected_on_test": is_selected_on_test(config, dataset),
        "best_epoch": progress.best_epoch,
        "trained_epochs": progress.epoch,
        "seed": config.training.seed,
        "seconds_per_epoch": progress.total_seconds / max(progress.epoch, 1),
    }
    return RunResult(config, metrics, scorer, dataset, test)


def evaluate_run(
    path: Path, *, k: Sequence[int] = (5, 20, 50), protocol: str | None = None, metrics: Sequence[str] | None = None
) -> dict[str, Any]:
    """Judge a finished run again.

    Args:
        path: its directory.
        k: lengths of the ranked lists.
        protocol: `paper` or `strict`; that of the run if not given.
        metrics: names from `pslrec.evaluation.METRICS`; by default all but those that need the rank of every item.
    """
    check_format(path)
    directory = RunDirectory(path)
    if not (path / "metrics.json").exists():
        raise ArtifactError(f"the run in {path} is not finished; go on with `pslrec train --out {path} --resume`")
    before = json.loads((path / "metrics.json").read_text())
    config = RunConfig.checked(tomllib.loads(directory.read_config()))
    if protocol is not None:
        config = RunConfig.from_settings({"evaluation.protocol": protocol}, base=config)
    dataset = load_training_data(config).dataset
    _unseal(dataset, "the run is finished")
    scorer = EmbeddingScorer(*scored_vectors(directory.read_model(), LOSSES[config.loss.name].similarity))
    options: dict[str, Any] = {"k": tuple(k)} | ({} if metrics is None else {"metrics": tuple(metrics)})
    parts = ["test"] if dataset.validation is None else ["validation", "test"]
    found = {part: _evaluate(config, scorer, dataset, split=part, **options).metrics for part in parts}
    kept = {name: before[name] for name in ("selected_on_test", "best_epoch", "seed")}
    return {**found, "protocol": config.evaluation.protocol, **kept}


def _unseal(dataset: Dataset, reason: str) -> None:
    if isinstance(dataset.test, SealedInteractions):
        dataset.test.unseal(reason)


def _check_same(directory: RunDirectory, config: RunConfig) -> None:
    before, now = tomllib.loads(directory.read_config()), tomllib.loads(config.to_toml())
    for section in now:
        for name in sorted({*before.get(section, {}), *now[section]}):
            old, new = before.get(section, {}).get(name), now[section].get(name)
            if old != new:
                raise ConfigError(
                    f"the run in {directory.path} has `{section}.{name}` = {old!r}, now it is {new!r}; "
                    "resume with the same settings, or start a new run in another directory"
                )
